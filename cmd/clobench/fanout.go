package main

import (
	"context"
	"os"

	"clobd/bench"
	"clobd/bench/crowd"
	"clobd/bench/fanout"
	"clobd/cmd/cli"
)

// fanout measures the market stream beside others. A case whose messages did not all arrive, or not
// at their rate, is an error.
func (c *compareCommand) fanout() error {
	cases, err := c.cases()
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	at := sited{Seed: c.Seed, Dir: c.Dir, ownNode: c.ownNode, outputs: c.outputs}
	return at.measure(func(ctx context.Context, at bench.Setting) (measured, error) {
		r, err := fanout.Measure(ctx, fanout.Plan{Setting: at, Rounds: c.Rounds,
			Duration: c.Duration, Cases: cases, Idle: c.Idle})
		if err != nil {
			return measured{}, err
		}
		return measured{r.WriteText, r}, nil
	})
}

// cases are those that were asked for.
func (c *compareCommand) cases() (all []fanout.Case, err error) {
	if len(c.Cases) == 0 {
		return fanout.GoalCases(), nil
	}
	for _, text := range c.Cases {
		if text == "none" {
			continue
		}
		one, err := fanout.ParseCase(text)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

type fanSideCommand struct{}

// Run serves as standard input says, until that ends.
func (fanSideCommand) Run() error { return fanout.Serve(os.Stdin, os.Stdout) }

type crowdCommand struct{}

// Run subscribes as standard input says, and listens until all is there or that ends.
func (crowdCommand) Run() error { return crowd.Run(os.Stdin, os.Stdout) }
