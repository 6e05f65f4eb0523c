package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"clobd/bench/matching"
)

type matchingCommand struct {
	Rounds int      `default:"7" help:"Interleaved rounds of each matcher."`
	Books  []int    `default:"1,1000" help:"Numbers of books, drawn by Zipf(1.1)."`
	Ticks  []int    `default:"99,999" help:"Price levels of a book."`
	Seed   uint64   `default:"42" help:"The same seed draws the same operations."`
	Ops    int      `help:"Operations of each mix. Default: 2,000,000."`
	Peer   []string `placeholder:"NAME=PROGRAM" help:"Other matchers, each started as PROGRAM FILE; bench/DESIGN.md says what they read and print."`
	outputs
}

// Run measures the matchers beside each other. A wrong result of any of them is an error.
func (c *matchingCommand) Run() error {
	if err := c.check(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this binary: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ticker := c.ticker()
	matched, err := matching.Compare(ctx, matching.Comparison{Rounds: c.Rounds, Books: c.Books,
		Ticks: c.Ticks, Seed: c.Seed, Ops: c.Ops, Self: self, Peers: c.Peer, Version: version,
		Ticker: ticker})
	ticker.Done()
	if err != nil {
		return usage(err)
	}
	return c.write(measured{matched.WriteText, matched})
}

type replayCommand struct {
	Matcher string `arg:"" enum:"bare,apply,textbook"`
	File    string `arg:""`
}

// Run replays once for each line of standard input.
func (c *replayCommand) Run() error {
	return matching.Serve(c.Matcher, c.File, os.Stdin, os.Stdout)
}
