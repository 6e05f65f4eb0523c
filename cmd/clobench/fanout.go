package main

import (
	"context"
	"errors"
	"os"

	"clobd/bench"
	"clobd/cmd/cli"
)

// fanout measures the market stream beside others. A case whose messages did not all arrive, or not
// at their rate, is an error.
func (c *compareCommand) fanout() error {
	cases, err := c.cases()
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	failed := error(nil)
	at := sited{Seed: c.Seed, Dir: c.Dir, JSON: c.JSON}
	err = at.measure(func(ctx context.Context, at bench.Setting) (measured, error) {
		r, err := bench.MeasureFanout(ctx, bench.Fanout{Setting: at, Rounds: c.Rounds,
			Duration: c.Duration, Cases: cases, Idle: c.Idle})
		if err != nil {
			return measured{}, err
		}
		failed = r.Failed()
		return measured{r.WriteText, r}, nil
	})
	return errors.Join(err, failed)
}

// cases are those that were asked for.
func (c *compareCommand) cases() (all []bench.FanCase, err error) {
	if len(c.Cases) == 0 {
		return bench.FanCases(), nil
	}
	for _, text := range c.Cases {
		if text == "none" {
			continue
		}
		one, err := bench.ParseFanCase(text)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

type fanCommand struct {
	What string `arg:"" enum:"server,crowd"`
}

// Run serves or subscribes as standard input says, until that ends.
func (c *fanCommand) Run() error {
	if c.What == "server" {
		return bench.RunFan(os.Stdin, os.Stdout)
	}
	return bench.RunFanCrowd(os.Stdin, os.Stdout)
}
