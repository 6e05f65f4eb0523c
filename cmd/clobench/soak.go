package main

import (
	"context"
	"errors"
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
	Keys        string        `help:"With --url, instead of --admin and --token-file: file of private keys, 0x and 64 hex digits a line, whose wallets have funds. Their number bounds the connections."`
	ChainID     uint64        `default:"80002" help:"Chain id of the signing domain of --keys."`
	Thresholds  string        `help:"File with rules as 'corrected.p99 <= 20ms', one a line: exit code 1 if one is broken."`
	outputs
}

// Run loads the node, prints the laps, and fails if it has drifted.
func (c *soakCommand) Run(ctx context.Context) error {
	if c.Rate <= 0 || c.Duration < time.Second {
		return &cli.UsageError{Err: errors.New("--rate is not above 0, or --duration below a second")}
	}
	plan := runCommand{chosen: c.chosen, Level: "L3", Duration: c.Duration, Rounds: 1, Processes: 1,
		Connections: c.Connections, Seed: c.Seed, Durability: c.Durability, Dir: c.Dir, URL: c.URL,
		Admin: c.Admin, TokenFile: c.TokenFile, Market: c.Market, Keys: c.Keys, ChainID: c.ChainID,
		Rate: c.Rate, Arrivals: c.Arrivals, Thresholds: c.Thresholds}
	r, err := plan.plan()
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	ticker := c.ticker()
	r.Progress = ticker.Progress()
	report, err := bench.MeasureSoak(ctx, bench.Soak{Run: *r})
	ticker.Done()
	if err != nil {
		return usage(err)
	}
	if err := c.write(measured{report.WriteText, report}); err != nil {
		return err
	}
	return report.Verdict()
}
