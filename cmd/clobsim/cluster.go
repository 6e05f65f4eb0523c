package main

import (
	"errors"
	"fmt"
	"time"

	"clobd/cmd/cli"
	"clobd/cmd/clobsim/simulator"
)

type clusterCommand struct {
	Seed     uint64        `default:"1" help:"The first seed: the same seed is the same run."`
	Seeds    uint64        `default:"1" help:"How many seeds, one after the other."`
	For      time.Duration `help:"Begin no further seed after this time. 0: no limit."`
	Events   int           `default:"5000" help:"How many things happen in a run before everything is healed."`
	Sabotage string        `enum:",early-commit,early-answer,unsynced-vote,forgotten-vote,kept-tail,lost-ack,twice-taken,own-clock,early-read,old-disk,impostor,stale-cancel,blind-heal,forgetful-heal,early-raise" default:"" help:"Build in a mistake, to see that it is found; early-raise needs a build with -tags nextrules."`
	Trace    bool          `help:"Print all that happens."`
}

// Run carries out the runs, and stops at the first that fails.
func (c *clusterCommand) Run() error {
	if c.Events < 1 || c.Seeds < 1 {
		return &cli.UsageError{Err: errors.New("--events and --seeds: at least 1")}
	}
	begun, done := time.Now(), uint64(0)
	for ; done < c.Seeds && (c.For == 0 || time.Since(begun) < c.For); done++ {
		if err := c.one(c.Seed + done); err != nil {
			return err
		}
	}
	fmt.Printf("%d seeds, 0 failed\n", done)
	return nil
}

// one carries out one run. It prints the seed before anything can go wrong.
func (c *clusterCommand) one(seed uint64) error {
	fmt.Printf("seed %d\n", seed)
	o := simulator.ClusterOptions{Seed: seed, Events: c.Events, Sabotage: c.Sabotage}
	if c.Trace {
		o.Say = say
	}
	r, err := simulator.RunCluster(o)
	fmt.Printf("seed %d: %s\n", seed, r.String())
	if err == nil {
		return nil
	}
	again := fmt.Sprintf("clobsim cluster --seed %d --events %d", seed, c.Events)
	if c.Sabotage != "" {
		again += " --sabotage " + c.Sabotage
	}
	fmt.Printf("seed %d: FAILED: %v\nrepeat it: %s\n", seed, err, again)
	return cli.Hint(fmt.Errorf("seed %d: %w", seed, err), "%s --trace", again)
}
