package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"clobd/bench"
	"clobd/bench/lean"
	"clobd/cmd/cli"
)

// sited holds the options of all measurements that start a node of their own.
type sited struct {
	Seed uint64 `default:"42" help:"The same seed draws the same operations."`
	Dir  string `help:"Make the data folders in this one. Default: the system's temporary folder."`
	ownNode
	outputs
}

// ownNode is of measurements that cannot go against a node that runs already. What that node is
// asked for by name, it refuses with the reason.
type ownNode struct {
	URL string `name:"url" hidden:"" env:"-"`

	reason string // of a measurement that starts no process of a node, else ownNodes
}

// Help is printed below the help of the command.
func (ownNode) Help() string { return ownNodes + " " + useRun }

// The reasons, and what to do.
const (
	ownNodes = "It starts nodes of its own, and has no --url: its figures want a fresh node with empty " +
		"books in many markets, whose process it may watch, stop and replay."
	nodesInside = "It makes nodes of its own inside this process, each on a disk in memory, and has no " +
		"--url: it holds up their matchers and their disks."
	noNode = "It writes a history of its own and reads that inside this process, without a node, and has " +
		"no --url: its figures want a history of known length."
	useRun = "run and soak load a node that runs already."
)

// check refuses a node that runs already.
func (o *ownNode) check() error {
	if o.URL == "" {
		return nil
	}
	reason := cmp.Or(o.reason, ownNodes)
	return &cli.UsageError{Err: cli.Hint(errors.New("no --url here: "+strings.ToLower(reason[:1])+
		reason[1:]), "%s", useRun)}
}

// setting is where the measurement runs.
func (s *sited) setting() (bench.Setting, error) {
	if err := s.ownNode.check(); err != nil {
		return bench.Setting{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return bench.Setting{}, fmt.Errorf("find this binary: %w", err)
	}
	return bench.Setting{Seed: s.Seed, Dir: s.Dir, Node: sibling("clobd"), Self: self,
		Version: version, Ticker: s.ticker()}, nil
}

// measured is a finished measurement, for people and for programs.
type measured struct {
	text   func(w io.Writer)
	report any
}

// usage is a failure that the caller's values have caused as the error of a wrong command line.
func usage(err error) error {
	var asked *bench.RequestError
	if errors.As(err, &asked) {
		return &cli.UsageError{Err: asked.Err}
	}
	return err
}

// measure runs a measurement until it ends or is interrupted, and prints it. Figures that are the
// generator's and not the node's are an error.
func (s *sited) measure(
	run func(ctx context.Context, at bench.Setting) (measured, error),
) error {
	at, err := s.setting()
	if err != nil {
		return err
	}
	if err := s.outputs.check(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := run(ctx, at)
	at.Ticker.Done()
	if err != nil {
		return usage(err)
	}
	if err := s.write(r); err != nil {
		return err
	}
	if judged, is := r.report.(interface{ Verdict() error }); is {
		return judged.Verdict()
	}
	return nil
}

type leanCommand struct{}

// Run sends the share of a load that standard input names.
func (leanCommand) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return lean.Serve(ctx, os.Stdin, os.Stdout)
}

type rampCommand struct {
	What        string        `arg:"" enum:"book,orders,lists" help:"book: GET /book. orders: signed durable POST /order. lists: 15 of them in a POST /orders; rates count orders."`
	Start       float64       `default:"1000" help:"Requests per second of the first step."`
	Factor      float64       `default:"1.5" help:"Each step's rate is that of the one before it times this."`
	Steps       int           `default:"20" help:"At most so many steps."`
	Duration    time.Duration `default:"2s" help:"How long a step takes."`
	Connections int           `default:"64" help:"Connections. A request that is due while its connection is busy is sent late."`
	Limit       time.Duration `default:"100ms" help:"A step breaks if its corrected p99 is above this."`
	Hgrm        string        `placeholder:"PATH" help:"Write percentile logs for HdrHistogram's plotter, in µs, into this folder, or to NAME-1-corrected.hgrm, NAME-1-uncorrected.hgrm and so on by step for NAME.hgrm."`
	sited
}

// Run raises the rate until the node cannot keep it.
func (c *rampCommand) Run() error {
	c.logs, c.like = c.Hgrm, c.steps()
	return c.measure(func(ctx context.Context, at bench.Setting) (measured, error) {
		r, err := bench.MeasureRamp(ctx, bench.Ramp{Setting: at, What: c.What, Start: c.Start,
			Factor: c.Factor, Steps: c.Steps, Duration: c.Duration, Connections: c.Connections,
			Limit: c.Limit})
		if err != nil {
			return measured{}, err
		}
		return measured{r.WriteText, r}, nil
	})
}

// steps is a ramp that does not break, as far as its percentile logs go: the first hundred of them.
func (c *rampCommand) steps() *bench.Ramped {
	r := &bench.Ramped{What: c.What}
	for rate := c.Start; len(r.Steps) < min(c.Steps, 100); rate *= c.Factor {
		r.Steps = append(r.Steps, bench.Step{Paced: bench.Paced{Asked: rate}})
	}
	return r
}

type agreeCommand struct {
	Wrk         string        `default:"wrk" help:"The program to compare with."`
	Rounds      int           `default:"9" help:"Turns of each tool, whose turn is first alternates."`
	Duration    time.Duration `default:"2s" help:"How long each turn takes: whole seconds, as wrk wants them."`
	Connections int           `default:"16" help:"Connections that read; orders go over one."`
	sited
}

// Run holds the figures of clobench against those of wrk.
func (c *agreeCommand) Run() error {
	return c.measure(func(ctx context.Context, at bench.Setting) (measured, error) {
		r, err := bench.MeasureAgreement(ctx, bench.Agreement{Setting: at, Wrk: c.Wrk, Rounds: c.Rounds,
			Duration: c.Duration, Connections: c.Connections})
		if err != nil {
			return measured{}, err
		}
		return measured{r.WriteText, r}, nil
	})
}

type floodCommand struct {
	Rounds      int           `default:"10" help:"Interleaved rounds: idle and flooded, whose turn is first alternates."`
	Duration    time.Duration `default:"2s" help:"How long each turn takes."`
	Rate        float64       `default:"500" help:"Reads per second."`
	Readers     int           `default:"4" help:"Connections that read."`
	Connections int           `default:"16" help:"Connections that post signed orders, at most 64."`
	Lists       bool          `help:"Post them in lists of 15."`
	sited
}

// Run measures reads beside a flood of orders.
func (c *floodCommand) Run() error {
	return c.measure(func(ctx context.Context, at bench.Setting) (measured, error) {
		r, err := bench.MeasureFlood(ctx, bench.Flood{Setting: at, Rounds: c.Rounds, Duration: c.Duration,
			Rate: c.Rate, Readers: c.Readers, Connections: c.Connections, Lists: c.Lists})
		if err != nil {
			return measured{}, err
		}
		return measured{r.WriteText, r}, nil
	})
}

type overloadCommand struct {
	Rounds      int           `default:"3" help:"Rounds, each with its own measure of the capacity."`
	Duration    time.Duration `default:"2s" help:"How long each step takes."`
	Factors     []float64     `default:"0.5,0.8,1,1.5,2,3" help:"What the steps ask for, in multiples of the capacity."`
	Connections int           `default:"2048" help:"Connections that post signed orders."`
	Lists       bool          `help:"Post them in lists of 15."`
	sited
}

// Run measures a node that is asked for more than it can do.
func (c *overloadCommand) Run() error {
	return c.measure(func(ctx context.Context, at bench.Setting) (measured, error) {
		r, err := bench.MeasureOverload(ctx, bench.Overload{Setting: at, Rounds: c.Rounds,
			Duration: c.Duration, Factors: c.Factors, Connections: c.Connections, Lists: c.Lists})
		if err != nil {
			return measured{}, err
		}
		return measured{r.WriteText, r}, nil
	})
}

type streamsCommand struct {
	Rounds      int           `default:"3" help:"Interleaved rounds: orders alone and beside the subscribers, whose turn is first alternates."`
	Duration    time.Duration `default:"5s" help:"How long each turn takes."`
	Rate        float64       `default:"160" help:"Signed durable orders per second; each changes a book."`
	Burst       int           `default:"1" help:"Orders that are due together."`
	Connections int           `default:"8" help:"Connections that post."`
	Subscribers int           `default:"16" help:"Sockets that are told of each change."`
	Markets     int           `default:"1" help:"Markets of the orders, at most 15; each subscriber names all of them."`
	sited
}

// Run measures when subscribers have read what orders have changed.
func (c *streamsCommand) Run() error {
	return c.measure(func(ctx context.Context, at bench.Setting) (measured, error) {
		r, err := bench.MeasureStreams(ctx, bench.Streams{Setting: at, Rounds: c.Rounds,
			Duration: c.Duration, Rate: c.Rate, Burst: c.Burst, Connections: c.Connections,
			Subscribers: c.Subscribers, Markets: c.Markets})
		if err != nil {
			return measured{}, err
		}
		return measured{r.WriteText, r}, nil
	})
}

type stallCommand struct {
	Rounds  int           `default:"3" help:"Rounds, each with a node of its own in this process."`
	Length  time.Duration `default:"10s" help:"How long the matcher, and then the disk, stands still."`
	Rate    float64       `default:"1000" help:"Reads per second."`
	Readers int           `default:"8" help:"Connections that read."`
	Writers int           `default:"8" help:"Connections that post and cancel orders all the while, at most 64."`
	Seed    uint64        `default:"42" help:"The same seed draws the same operations."`
	ownNode
	outputs
}

// Help is printed below the help of the command.
func (stallCommand) Help() string { return nodesInside + " " + useRun }

// Run measures reads while nothing is written.
func (c *stallCommand) Run() error {
	c.reason = nodesInside
	at := sited{Seed: c.Seed, ownNode: c.ownNode, outputs: c.outputs}
	return at.measure(func(ctx context.Context, at bench.Setting) (measured, error) {
		r, err := bench.MeasureStall(ctx, bench.Stall{Setting: at, Rounds: c.Rounds, Length: c.Length,
			Rate: c.Rate, Readers: c.Readers, Writers: c.Writers})
		if err != nil {
			return measured{}, err
		}
		return measured{r.WriteText, r}, nil
	})
}

type pagesCommand struct {
	Trades int `default:"1000000" help:"Trades in the history; there are more orders."`
	Rounds int `default:"10" help:"Rounds of each list."`
	Reads  int `default:"300" help:"Reads of a round."`
	sited
}

// Help is printed below the help of the command.
func (pagesCommand) Help() string { return noNode + " " + useRun }

// Run measures pages of lists.
func (c *pagesCommand) Run() error {
	c.reason = noNode
	return c.measure(func(ctx context.Context, at bench.Setting) (measured, error) {
		r, err := bench.MeasurePages(ctx, bench.Pages{Seed: at.Seed, Dir: at.Dir, Trades: c.Trades,
			Rounds: c.Rounds, Reads: c.Reads, Self: at.Self, Version: at.Version, Ticker: at.Ticker})
		if err != nil {
			return measured{}, err
		}
		return measured{r.WriteText, r}, nil
	})
}
