package main

import (
	"context"
	"errors"
	"os"
	"time"

	"clobd/bench"
	"clobd/cmd/cli"
)

type soakCommand struct {
	chosen

	Rate        float64       `default:"1000" help:"Requests per second, in an open loop; a list is one request."`
	Duration    time.Duration `default:"1h" help:"How long to load the node."`
	Connections int           `default:"64" help:"Connections, at most 64. A request that is due while its connection is busy is sent late."`
	Seed        uint64        `default:"42" help:"The same seed draws the same operations."`
	Arrivals    string        `default:"constant" enum:"constant,poisson" help:"Equal gaps between due times, or exponential ones drawn from the seed."`
	Durability  string        `default:"fsync" enum:"fsync,async" help:"async acknowledges before the sync: for measuring only."`
	Dir         string        `help:"Make the data folder in this one. Default: the system's temporary folder."`
	URL         string        `name:"url" help:"A node that runs already. Empty: start one beside this binary."`
	Admin       string        `help:"With --url: its admin listener, HOST:PORT."`
	TokenFile   string        `help:"With --url: file with its admin token."`
	Market      []string      `help:"With --url: the two token ids of the market to trade."`
	Thresholds  string        `help:"File with rules as 'corrected.p99 <= 20ms', one a line: exit code 1 if one is broken."`
	JSON        string        `name:"json" help:"Write the report to this file, - for standard output."`
	HTML        string        `name:"html" help:"Write the report as one page that opens offline to this file."`
	Quiet       bool          `help:"No progress on standard error."`
}

// Run loads the node, prints the laps, and fails if it has drifted.
func (c *soakCommand) Run(ctx context.Context) error {
	if c.Rate <= 0 || c.Duration < time.Second {
		return &cli.UsageError{Err: errors.New("--rate is not above 0, or --duration below a second")}
	}
	plan := runCommand{chosen: c.chosen, Level: "L3", Duration: c.Duration, Rounds: 1, Processes: 1,
		Connections: c.Connections, Seed: c.Seed, Durability: c.Durability, Dir: c.Dir, URL: c.URL,
		Admin: c.Admin, TokenFile: c.TokenFile, Market: c.Market, Rate: c.Rate, Arrivals: c.Arrivals,
		Thresholds: c.Thresholds}
	r, err := plan.plan()
	if err != nil {
		return err
	}
	ticker := progressOn(os.Stderr)
	if !c.Quiet {
		r.Progress = ticker.Show
	}
	report, err := bench.MeasureSoak(ctx, bench.Soak{Run: *r})
	ticker.Done()
	if err != nil {
		return usage(err)
	}
	o := outputs{JSON: c.JSON, HTML: c.HTML}
	if err := o.write(measured{report.WriteText, report}); err != nil {
		return err
	}
	return report.Verdict()
}
