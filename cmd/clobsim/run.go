package main

import (
	"errors"
	"fmt"
	"time"

	"clobd/cmd/cli"
	"clobd/cmd/clobsim/simulator"
)

type runCommand struct {
	Seed         uint64        `default:"1" help:"The first seed: the same seed is the same run."`
	Seeds        uint64        `default:"1" help:"How many seeds, one after the other."`
	UntilFailure bool          `help:"Go on with the next seed until one fails."`
	For          time.Duration `help:"Begin no further seed after this time. 0: no limit."`
	Steps        int           `default:"2000" help:"How many things happen in a run."`
	Disk         string        `enum:",memory,pebble" default:"" help:"memory or pebble; drawn from the seed if left out."`
	Faults       []string      `default:"all" help:"What may go wrong: all, none, or some of crash, torn, sync, full, flip, duplicate, late, burst, clock."`
	Sabotage     string        `enum:",early-ack,lost-frame,second-order,early-publish" default:"" help:"Build in a mistake, to see that it is found."`
	Trace        bool          `help:"Print all that happens."`
}

// Run carries out the runs, and stops at the first that fails.
func (c *runCommand) Run() error {
	faults, err := simulator.ParseFaults(c.Faults)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	if c.Steps < 1 || c.Seeds < 1 {
		return &cli.UsageError{Err: errors.New("--steps and --seeds: at least 1")}
	}
	begun, done := time.Now(), uint64(0)
	for ; done < c.Seeds || c.UntilFailure; done++ {
		if c.For > 0 && time.Since(begun) > c.For {
			break
		}
		if err := c.one(c.Seed+done, faults); err != nil {
			return err
		}
	}
	fmt.Printf("%d seeds, 0 failed\n", done)
	return nil
}

// one carries out one run. It prints the seed before anything can go wrong.
func (c *runCommand) one(seed uint64, faults simulator.Faults) error {
	fmt.Printf("seed %d\n", seed)
	o := simulator.Options{Seed: seed, Steps: c.Steps, Disk: c.Disk, Faults: faults,
		Sabotage: c.Sabotage}
	if c.Trace {
		o.Say = say
	}
	r, err := simulator.Run(o)
	if r.Plan != "" {
		fmt.Printf("seed %d: %s\nseed %d: %s\n", seed, r.Plan, seed, r.String())
	}
	if err == nil {
		return nil
	}
	again := fmt.Sprintf("clobsim run --seed %d --steps %d --faults %s", seed, c.Steps, faults)
	if c.Disk != "" {
		again += " --disk " + c.Disk
	}
	if c.Sabotage != "" {
		again += " --sabotage " + c.Sabotage
	}
	fmt.Printf("seed %d: FAILED: %v\nrepeat it: %s\n", seed, err, again)
	return cli.Hint(fmt.Errorf("seed %d: %w", seed, err), "%s --trace", again)
}
