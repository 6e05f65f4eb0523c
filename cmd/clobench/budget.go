package main

import (
	"context"
	"time"

	"clobd/bench"
)

type budgetCommand struct {
	Rounds   int           `default:"3" help:"Rounds that are added up, after one that only warms up."`
	Duration time.Duration `default:"6s" help:"How long each round takes, 2 s to a minute."`
	Lists    bool          `help:"Post the orders in lists of 15."`

	Connections int `default:"64" help:"Connections that post, at most 64."`
	sited
}

// Run measures and prints.
func (c *budgetCommand) Run() error {
	return c.measure(func(ctx context.Context, at bench.Setting) (measured, error) {
		out, err := bench.MeasureBudget(ctx, bench.Budget{Setting: at, Rounds: c.Rounds,
			Duration: c.Duration, Connections: c.Connections, Lists: c.Lists})
		if err != nil {
			return measured{}, err
		}
		return measured{out.WriteText, out}, nil
	})
}
