package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"clobd/cmd/cli"
	"clobd/cmd/clobsim/cases"
)

type scenariosCommand struct {
	Files []string `arg:"" help:"Files of scenarios: JSON arrays, gzipped or not."`
}

// Run replays every file and names each disagreement and each skip.
func (c *scenariosCommand) Run() error {
	var all cases.Tally
	for _, name := range c.Files {
		err := replay(name, func(r io.Reader) error {
			one, err := cases.Scenarios(name, r, say)
			all.Add(one)
			return err
		})
		if err != nil {
			return err
		}
	}
	return conclude(&all)
}

type flowCommand struct {
	Files []string `arg:"" help:"Order flows: JSON lines, gzipped or not."`
}

// Run replays every flow, and prints how much each held and how long Apply took.
func (c *flowCommand) Run() error {
	var all cases.Tally
	for _, name := range c.Files {
		err := replay(name, func(r io.Reader) error {
			one, err := cases.Flow(name, r, say)
			all.Add(one.Tally)
			if err == nil {
				say(name + ": " + one.Text())
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return conclude(&all)
}

// say prints one line of a report.
func say(line string) { fmt.Println(line) }

// replay opens a file for run.
func replay(name string, run func(io.Reader) error) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open cases: %w", err)
	}
	defer f.Close()
	return run(f)
}

// conclude prints the counts. It is a failure if anything disagrees.
func conclude(t *cases.Tally) error {
	fmt.Println(t)
	if t.Disagree > 0 {
		return cli.Hint(fmt.Errorf("%d of %d cases disagree", t.Disagree, t.Cases()),
			"each is named above, with what was expected and what the engine did")
	}
	if t.Cases() == 0 {
		return errors.New("no cases")
	}
	return nil
}
