package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"clobd/bench"
)

type budgetCommand struct {
	Rounds   int           `default:"3" help:"Rounds that are added up, after one that only warms up."`
	Duration time.Duration `default:"6s" help:"How long each round takes, 2 s to a minute."`
	Lists    bool          `help:"Post the orders in lists of 15."`

	Connections int    `default:"64" help:"Connections that post, at most 64."`
	Seed        uint64 `default:"42" help:"The same seed draws the same operations."`
	Dir         string `help:"Make the data folder in this one. Default: the system's temporary folder."`
	JSON        string `name:"json" help:"Write the report to this file, - for standard output."`
}

// Run measures and prints.
func (c *budgetCommand) Run() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this binary: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out, err := bench.MeasureBudget(ctx, bench.Budget{Setting: bench.Setting{Seed: c.Seed, Dir: c.Dir,
		Node: sibling("clobd"), Self: self, Version: version}, Rounds: c.Rounds, Duration: c.Duration,
		Connections: c.Connections, Lists: c.Lists})
	if err != nil {
		return usage(err)
	}
	if c.JSON != "-" {
		out.WriteText(os.Stdout)
	}
	if c.JSON != "" {
		if err := bench.WriteJSON(c.JSON, out); err != nil {
			return err
		}
	}
	return out.Verdict()
}
