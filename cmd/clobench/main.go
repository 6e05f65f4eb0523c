// Names are looked up in Go: a program that is linked as a whole cannot call the system's resolver.

//go:debug netdns=go
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"clobd/bench"
	"clobd/bench/workload"
	"clobd/cmd/cli"
	"clobd/engine"
)

// version is stamped by the build.
var version = "dev"

type commands struct {
	Run      runCommand       `cmd:"" help:"Measure one workload at one level."`
	Soak     soakCommand      `cmd:"" help:"Load a node for long, and judge whether it stays as it is."`
	Compare  compareCommand   `cmd:"" help:"Measure the node beside a baseline, interleaved."`
	Ramp     rampCommand      `cmd:"" help:"Load a node at rates that step up until it breaks."`
	Agree    agreeCommand     `cmd:"" help:"Hold the figures of clobench against those of wrk, on one node."`
	Flood    floodCommand     `cmd:"" help:"Measure reads beside a flood of signed orders, interleaved."`
	Overload overloadCommand  `cmd:"" help:"Ask a node for more orders than it can take, and see what it refuses."`
	Streams  streamsCommand   `cmd:"" help:"Measure when subscribers have read what orders have changed."`
	Budget   budgetCommand    `cmd:"" help:"Divide a node's CPU time per order among the stages of its way."`
	Stall    stallCommand     `cmd:"" help:"Measure reads while the matcher or the disk stands still."`
	Pages    pagesCommand     `cmd:"" help:"Measure pages of lists anywhere in a long history."`
	Mixes    workloadsCommand `cmd:"" name:"workloads" help:"List the workloads: name, what it is, levels."`
	Turns    turnsCommand     `cmd:"" help:"Measure two builds of the node in turns, and compare them."`
	Diff     diffCommand      `cmd:"" help:"Say with which confidence two sides of measured runs differ."`
	Page     pageCommand      `cmd:"" help:"Join reports that were written before on one HTML page."`
	Order    orderCommand     `cmd:"" help:"Sign one order, place it, print request and answer."`
	Shell    cli.Completion   `cmd:"" name:"completion" help:"Print the completion of this program for a shell."`
	Sign     signCommand      `cmd:"" help:"Print what a wallet signs: an order, or the request for an API key. For curl and scripts."`
	Key      keyCommand       `cmd:"" help:"Derive the API key of a private key, and print it."`
	Cancel   cancelCommand    `cmd:"" help:"Cancel all orders of a private key."`
	Peer     peerCommand      `cmd:"" hidden:"" help:"Serve a baseline for compare."`
	Matching matchingCommand  `cmd:"" help:"Measure matchers beside each other, interleaved."`
	Replay   replayCommand    `cmd:"" hidden:"" help:"Replay a mix for matching."`
	Lean     leanCommand      `cmd:"" hidden:"" help:"Send a share of a load over HTTP."`
	Crowd    crowdCommand     `cmd:"" hidden:"" help:"Subscribe and listen for streams and compare."`
	FanSide  fanSideCommand   `cmd:"" hidden:"" help:"Serve a side of a fan-out for compare."`
	Hiccups  hiccupsCommand   `cmd:"" hidden:"" help:"Watch for pauses of the machine during a run."`
}

func main() {
	os.Exit(cli.Run("clobench", "The load tester of clobd.", &commands{}, os.Args[1:]))
}

type runCommand struct {
	chosen

	Level       string        `default:"L0" enum:"L0,L1,L2,L3" help:"L0 Apply, L1 Sequencer with a memory journal, L2 Pebble with real sync, L3 HTTP with real signatures."`
	Duration    time.Duration `default:"5s" help:"How long to measure."`
	Rounds      int           `default:"1" help:"Cut the duration into so many turns, on the same node: the samples that diff compares."`
	Connections int           `default:"64" help:"Concurrent callers, at most 64: each has wallets of its own."`
	Processes   int           `default:"1" help:"L3: processes that send; 1 is this one."`
	Seed        uint64        `default:"42" help:"The same seed draws the same operations."`
	Durability  string        `default:"fsync" enum:"fsync,async" help:"L2, L3: async acknowledges before the sync: for measuring only."`
	Dir         string        `help:"L2, L3: make the data folder in this one. Default: the system's temporary folder."`
	URL         string        `name:"url" help:"L3: a node that runs already. Empty: start one beside this binary."`
	Admin       string        `help:"L3 with --url: its admin listener, HOST:PORT."`
	TokenFile   string        `help:"L3 with --url: file with its admin token."`
	Market      []string      `help:"L3 with --url: the two token ids of the market to trade."`

	Rate       float64 `help:"Requests per second of an open loop, L1 to L3; a list is one request. Without it the loop is closed: who waits for an answer sends nothing."`
	Arrivals   string  `default:"constant" enum:"constant,poisson" help:"With --rate: equal gaps between due times, or exponential ones drawn from the seed."`
	Warmup     int     `help:"L1 to L3: operations before the clock runs, at least. Default: as many as the workload's books want."`
	Thresholds string  `help:"File with rules as 'corrected.p99 <= 20ms', one a line: exit code 1 if one is broken."`

	Subscribers int    `default:"16" help:"L3, workload streams: sockets that are told of each change."`
	ChainID     uint64 `default:"80002" help:"Chain id of the signing domain of --keys."`
	Keys        string `help:"L3 with --url, instead of --admin and --token-file: file of private keys, 0x and 64 hex digits a line, whose wallets have funds. Their number bounds the connections."`
	Hgrm        string `placeholder:"PATH" help:"Write percentile logs for HdrHistogram's plotter, in µs: into this folder, or to NAME-corrected.hgrm and NAME-uncorrected.hgrm for NAME.hgrm."`

	outputs
}

// Run measures and prints.
func (c *runCommand) Run() error {
	r, err := c.plan()
	if err != nil {
		return err
	}
	like := &bench.Report{Workload: cmp.Or(r.Workload.Name, workload.Replay), Level: r.Level}
	if r.Rate > 0 || r.Pace > 0 {
		like.CorrectedMicros = &bench.Latency{}
	}
	c.logs, c.like = c.Hgrm, like
	if err := c.check(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ticker := c.ticker()
	r.Progress = ticker.Progress()
	report, err := bench.Execute(ctx, *r)
	ticker.Done()
	if err != nil {
		return usage(err)
	}
	if err := c.write(measured{report.WriteText, report}); err != nil {
		return err
	}
	return report.Verdict()
}

// plan makes a run of the flags.
func (c *runCommand) plan() (*bench.Run, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this binary: %w", err)
	}
	r := &bench.Run{Level: c.Level, Seed: c.Seed, Duration: c.Duration, Rounds: c.Rounds,
		Connections: c.Connections, Async: c.Durability == "async", Dir: c.Dir, URL: c.URL,
		Admin: c.Admin, Node: sibling("clobd"), Self: self, Version: version, Rate: c.Rate,
		Poisson: c.Arrivals == "poisson", Processes: c.Processes,
		Warmup: c.Warmup, Subscribers: c.Subscribers}
	if err := c.fill(r); err != nil {
		return nil, err
	}
	switch {
	case c.Connections < 1 || c.Connections > workload.Traders:
		return nil, &cli.UsageError{Err: fmt.Errorf("--connections %d is not in [1, %d]: each has wallets "+
			"of its own", c.Connections, workload.Traders)}
	case c.Duration <= 0 || c.Rounds < 1 || c.Processes < 1:
		return nil, &cli.UsageError{Err: errors.New("--duration, --rounds and --processes are above 0")}
	case c.Rate < 0 || c.Rate == 0 && r.Poisson:
		return nil, &cli.UsageError{Err: errors.New("--arrivals poisson wants --rate, above 0")}
	case c.Rate > 0 && c.Level == "L0":
		return nil, &cli.UsageError{Err: cli.Hint(errors.New("--rate wants --level L1, L2 or L3"),
			"L0 calls Apply and waits for nobody: it has no open loop")}
	}
	if c.Thresholds != "" {
		if r.Thresholds, err = bench.ReadThresholds(c.Thresholds); err != nil {
			return nil, &cli.UsageError{Err: err}
		}
	}
	if c.URL != "" {
		return r, c.aim(r)
	}
	return r, nil
}

// aim fills in the options that a run against somebody's running node needs.
func (c *runCommand) aim(r *bench.Run) (err error) {
	if c.Level != "L3" || c.Durability == "async" || c.Dir != "" {
		return &cli.UsageError{Err: cli.Hint(
			errors.New("--url wants --level L3, and neither --durability nor --dir"),
			"a node that runs already has a durability and a folder of its own")}
	}
	if !strings.HasPrefix(c.URL, "http://") {
		return &cli.UsageError{Err: cli.Hint(fmt.Errorf("--url %q does not begin with http://", c.URL),
			"the load speaks HTTP over TCP: give the node's own listener, not the proxy before it")}
	}
	if len(c.Market) != 2 || c.Keys == "" && (c.Admin == "" || c.TokenFile == "") {
		return &cli.UsageError{Err: cli.Hint(errors.New("--url needs --admin, --token-file and --market, "+
			"or --keys and --market"), "the run trades one market, --market TOKEN,TOKEN, with wallets that "+
			"it funds through the admin listener, or with those of --keys, which have funds")}
	}
	for i, text := range c.Market {
		var ok bool
		if r.Market[i], ok = engine.ParseToken(text); !ok {
			return &cli.UsageError{Err: fmt.Errorf("--market %q: want a token id, an unsigned 256-bit decimal",
				text)}
		}
	}
	if c.Keys == "" {
		r.Token, err = bench.ReadToken(c.TokenFile)
		return err
	}
	if c.Admin != "" {
		return &cli.UsageError{Err: errors.New("--keys and --admin exclude each other")}
	}
	if r.Keys, err = bench.ReadKeys(c.Keys); err != nil {
		return &cli.UsageError{Err: err}
	}
	r.Connections, r.Chain = min(r.Connections, len(r.Keys)), c.ChainID
	return nil
}

// sibling is the path of another program of this project, beside this one.
func sibling(name string) string {
	self, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(self), name)
}

type compareCommand struct {
	What     string        `arg:"" enum:"orders,book,midpoint,price,batch,entry,fanout" help:"orders: signed durable orders against the naive pipeline. book, midpoint, price: GET of that against a bare answer of the same bytes. batch: POST /orders of 15 against single orders, of one node. entry: orders over 8 sockets, 16 in flight on each, against POST /order, of one node. fanout: the market stream against centrifuge and a bare loop."`
	Rounds   int           `default:"10" help:"Interleaved rounds: one turn of each side, whose turn is first alternates."`
	Duration time.Duration `default:"1s" help:"How long each turn takes."`

	Cases []string `placeholder:"SUBSCRIBERSxBURST@RATE" help:"fanout: what is sent to how many, RATE bursts a second; none: no messages. Default: the cases that goals are set for."`
	Idle  int      `default:"5000" help:"fanout: subscribers whose memory is measured, 0 for none."`

	Connections int    `default:"64" help:"Concurrent connections, of orders at most 64."`
	Seed        uint64 `default:"42" help:"The same seed draws the same operations."`
	Dir         string `help:"Make the data folders in this one. Default: the system's temporary folder."`
	ownNode
	outputs
}

// Run measures both sides and prints the ratio of the medians.
func (c *compareCommand) Run() error {
	if c.What == "fanout" {
		return c.fanout()
	}
	if err := errors.Join(c.ownNode.check(), c.outputs.check()); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this binary: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ticker := c.ticker()
	comparison, err := bench.Compare(ctx, bench.Comparison{What: c.What, Rounds: c.Rounds,
		Duration: c.Duration, Connections: c.Connections, Seed: c.Seed, Dir: c.Dir,
		Node: sibling("clobd"), Self: self, Version: version, Ticker: ticker})
	ticker.Done()
	if err != nil {
		return usage(err)
	}
	if err := c.write(measured{comparison.WriteText, comparison}); err != nil {
		return err
	}
	return comparison.Verdict()
}

type peerCommand struct {
	What   string `arg:"" enum:"naive,bare"`
	Listen string `required:""`
	Path   string `required:""`
}

// Run serves until it is told to stop.
func (c *peerCommand) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := bench.Peer{What: c.What, Listen: c.Listen, Path: c.Path, Version: version}
	return p.Serve(ctx)
}

type hiccupsCommand struct{}

// Run watches until standard input ends.
func (hiccupsCommand) Run() error { return bench.WatchHiccups(os.Stdin, os.Stdout) }
