package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"clobd/bench"
	"clobd/bench/diff"
	"clobd/cmd/cli"
)

type turnsCommand struct {
	Nodes       []string      `name:"node" required:"" help:"The node's binary, twice: --node A --node B, or --node A,B."`
	Rounds      int           `default:"16" help:"Turns of each node: A, B, then B, A, and so on; less than 12 find no difference."`
	Duration    time.Duration `default:"1s" help:"How long each turn takes, after a quarter of it that does not count."`
	Connections int           `default:"64" help:"Connections that post signed orders, at most 64."`
	Lists       bool          `help:"Post the orders in lists of 15."`
	Seed        uint64        `default:"42" help:"The same seed draws the same operations."`
	Dir         string        `help:"Make the data folders in this one. Default: the system's temporary folder."`
	JSON        []string      `name:"json" help:"Write the reports to these two files: --json A.json --json B.json."`
	FailOn      string        `default:"never" enum:"never,worse,different" help:"Exit with 1 if B is worse, or if any difference is found."`
	Quiet       bool          `help:"No progress on standard error."`
	ownNode
}

// Run measures both nodes, and compares them.
func (c *turnsCommand) Run(ctx context.Context) error {
	if len(c.Nodes) != 2 || len(c.JSON) != 0 && len(c.JSON) != 2 {
		return &cli.UsageError{Err: errors.New("turns wants two nodes, and two files for reports or none")}
	}
	problems := []error{c.check()}
	for _, file := range c.JSON {
		problems = append(problems, writable("--json", file))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this binary: %w", err)
	}
	ticker := (&outputs{Quiet: c.Quiet}).ticker()
	rivalry := bench.Rivalry{Nodes: [2]string(c.Nodes), Rounds: c.Rounds,
		Duration: c.Duration, Connections: c.Connections, Lists: c.Lists, Seed: c.Seed, Dir: c.Dir,
		Self: self, Version: version, Ticker: ticker}
	a, b, err := bench.MeasureTurns(ctx, rivalry)
	ticker.Done()
	if err != nil {
		return usage(err)
	}
	for i, r := range []*bench.Report{a, b} {
		r.WriteText(os.Stdout)
		if len(c.JSON) == 2 {
			if err := bench.WriteJSON(c.JSON[i], r); err != nil {
				return err
			}
		}
		if r.Failure != "" {
			return fmt.Errorf("%s: %s", rivalry.Side(i), r.Failure)
		}
	}
	out, err := diff.Reports([]*bench.Report{a}, []*bench.Report{b}, false)
	if err != nil {
		return err
	}
	out.WriteText(os.Stdout)
	if err := errors.Join(a.Verdict(), b.Verdict()); err != nil {
		return err
	}
	return judge(out, c.FailOn)
}

type diffCommand struct {
	A      string `arg:"" help:"The reports of side A, as run and turns write them with --json: FILE, or FILE,FILE,…"`
	B      string `arg:"" help:"The reports of side B."`
	Force  bool   `help:"Compare other workloads, levels or machines, too."`
	JSON   string `name:"json" help:"Write the comparison to this file, - for standard output."`
	FailOn string `default:"never" enum:"never,worse,different" help:"Exit with 1 if B is worse, or if any difference is found."`
}

// Run compares what was measured before.
func (c *diffCommand) Run() error {
	var sides [2][]*bench.Report
	for i, list := range []string{c.A, c.B} {
		for _, file := range strings.Split(list, ",") {
			r, err := readRun(file)
			if err != nil {
				return err
			}
			sides[i] = append(sides[i], r)
		}
	}
	out, err := diff.Reports(sides[0], sides[1], c.Force)
	if err != nil {
		return cli.Hint(err, "--force compares them all the same")
	}
	if c.JSON != "-" {
		out.WriteText(os.Stdout)
	}
	if c.JSON != "" {
		if err := bench.WriteJSON(c.JSON, out); err != nil {
			return err
		}
	}
	return judge(out, c.FailOn)
}

// judge is an error if the outcome is what the caller wants to fail on.
func judge(out *diff.Outcome, on string) error {
	if on == "worse" && out.Verdict == diff.Worse || on == "different" && out.Verdict != diff.Same {
		return errors.New(out.Sentence())
	}
	return nil
}

// readRun reads the report of a run.
func readRun(file string) (*bench.Report, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	r := &bench.Report{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("read report %s: %w", file, err)
	}
	if r.Workload == "" || r.Level == "" {
		return nil, cli.Hint(fmt.Errorf("%s is not the report of a run", file),
			"diff compares what clobench run and clobench turns write with --json")
	}
	return r, nil
}
