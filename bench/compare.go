package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/bench/workload"
	"clobd/engine"
)

// Comparison says what Compare measures. What is "orders" (signed durable orders, against the naive
// exchange), "book", "midpoint" or "price" (GET of that, against a bare answer of the same bytes),
// "batch" (POST /orders of 15 against single orders, of one node), or "entry" (orders over sockets
// against POST /order, of one node).
type Comparison struct {
	What        string
	Rounds      int
	Duration    time.Duration // of one side's turn
	Connections int           // orders: at most Traders, each has wallets of its own
	Seed        uint64
	Dir         string // where the data folders are made; empty is the system's temporary folder
	Node        string // the node's binary
	Self        string // the binary that serves the baseline and watches for hiccups
	Version     string // what this program was built from, for the report
	Ticker      *Ticker
}

// validate returns all problems of the comparison at once, or nil.
func (c *Comparison) validate() error {
	all := Problems{Of: "comparison"}
	all.Add(!writes(c.What) && readPaths[c.What] == "",
		"%q is none of orders, batch, entry, book, midpoint and price", c.What)
	all.Rounds(c.Rounds, c.Duration)
	if writes(c.What) {
		all.posters("connections", c.Connections)
	} else {
		all.lanes("connections", c.Connections)
	}
	return all.Err()
}

// writes reports whether a comparison posts orders.
func writes(what string) bool { return what == "orders" || what == "batch" || what == "entry" }

// readPaths are the paths of the comparisons of reads, without the token at the end.
var readPaths = map[string]string{"book": "/book?token_id=", "midpoint": "/midpoint?token_id=",
	"price": "/price?side=BUY&token_id="}

// Side is one side's rounds: operations per second, CPU time of its process per operation in µs,
// service times in µs, and how long each turn took.
type Side struct {
	Name      string    `json:"name"`
	Rates     []float64 `json:"operations_per_second"`
	CPUMicros []float64 `json:"cpu_micros_per_operation"`
	P50Micros []float64 `json:"p50_micros"`
	P90Micros []float64 `json:"p90_micros"`
	P99Micros []float64 `json:"p99_micros"`
	MaxMicros []float64 `json:"max_micros"`
	Seconds   []float64 `json:"seconds"`
	EndedBy   []string  `json:"ended_by"` // time, or operations if those that were drawn ran out
	// LoadMicros is the CPU time of the process that sent, per operation.
	LoadMicros []float64 `json:"generator_cpu_micros_per_operation,omitempty"`
	// Blamed are the turns whose figures the generator has made, as far as it tells.
	Blamed []string `json:"invalid_turns,omitempty"`

	server *child
}

// verdict is an error if the generator has made the figures of every second turn or of more: then
// the medians are its own.
func (s *Side) verdict() error { return mostly(s.Name, s.Blamed, len(s.Rates)) }

// mostly is the error of medians over n turns, of which the generator is to blame for some.
func mostly(name string, blamed []string, n int) error {
	if 2*len(blamed) < n || len(blamed) == 0 {
		return nil
	}
	return fmt.Errorf("INVALID: %s: %d of %d turns: %s", name, len(blamed), n, blamed[0])
}

// Compared is the result: node and baseline, round by round, and the ratios of the medians.
type Compared struct {
	Conditions  Conditions `json:"conditions"`
	What        string     `json:"what"`
	Loop        string     `json:"loop"`
	Seed        uint64     `json:"seed"`
	Connections int        `json:"connections"`
	Seconds     float64    `json:"seconds_per_turn_asked"`
	First       []string   `json:"first"` // by round: whose turn came first
	Node        Side       `json:"node"`
	Baseline    Side       `json:"baseline"`
	// Ratio is the node's median rate divided by the baseline's, CPURatio the same for CPU time per
	// operation.
	Ratio    float64 `json:"ratio_of_median_rates"`
	CPURatio float64 `json:"ratio_of_median_cpu"`
	Checked  string  `json:"checked"`
	// Paced is set for "entry".
	Paced *EntryPaced `json:"equal_rate,omitempty"`
}

// The sides' names in First.
const (
	sideNode     = "node"
	sideBaseline = "baseline"
)

// Verdict is nil if the medians of both sides are theirs and not the generator's.
func (c *Compared) Verdict() error {
	err := errors.Join(c.Node.verdict(), c.Baseline.verdict())
	if c.Paced != nil {
		err = errors.Join(err, c.Paced.verdict())
	}
	return err
}

// WriteText prints the comparison for people.
func (c *Compared) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%s: %.2f times the baseline's rate, %.2f times its CPU per operation (medians of "+
		"%d interleaved rounds of 2 x %.1f s, %d connections, closed loop, seed %d)\n", c.What, c.Ratio,
		c.CPURatio, len(c.Node.Rates), c.Seconds, c.Connections, c.Seed)
	for _, s := range []*Side{&c.Node, &c.Baseline} {
		fmt.Fprintf(w, "  %-28s %7.0f/s (%.0f to %.0f)  CPU %.1f µs (%.1f to %.1f)  service p50 %.0f "+
			"p90 %.0f p99 %.0f µs  max %.1f ms\n", s.Name, Median(s.Rates), slices.Min(s.Rates),
			slices.Max(s.Rates), Median(s.CPUMicros), slices.Min(s.CPUMicros), slices.Max(s.CPUMicros),
			Median(s.P50Micros), Median(s.P90Micros), Median(s.P99Micros), slices.Max(s.MaxMicros)/1e3)
	}
	for _, s := range []*Side{&c.Node, &c.Baseline} {
		if len(s.LoadMicros) > 0 {
			fmt.Fprintf(w, "  sending to %-17s CPU %.1f µs (%.1f to %.1f) per operation of this process\n",
				s.Name, Median(s.LoadMicros), slices.Min(s.LoadMicros), slices.Max(s.LoadMicros))
		}
	}
	c.writeRounds(w)
	if err := c.Verdict(); err != nil {
		fmt.Fprintf(w, "  %v\n", err)
	}
	if c.Paced != nil {
		c.Paced.writeText(w)
	}
	m := &c.Conditions
	for _, line := range [][2]string{{"machine", m.machine()}, {"clobench", m.Program.String()},
		{"node", m.Node.String()}, {"baseline", m.Baseline.String()}, {"data", m.Data.String()},
		{"hiccups", m.Hiccup.String()}, {"checked", c.Checked}} {
		fmt.Fprintf(w, "  %s: %s\n", line[0], line[1])
	}
}

// writeRounds prints every round, the ratios within it, and what ended a turn before its time.
func (c *Compared) writeRounds(w io.Writer) {
	fmt.Fprintf(w, "  round  first       node/s  baseline/s  ratio  node CPU µs  baseline  ratio\n")
	early := 0
	for i := range c.Node.Rates {
		fmt.Fprintf(w, "  %5d  %-8s %9.0f %11.0f  %5.2f %12.1f %9.1f  %5.2f\n", i+1, c.First[i],
			c.Node.Rates[i], c.Baseline.Rates[i], c.Node.Rates[i]/c.Baseline.Rates[i],
			c.Node.CPUMicros[i], c.Baseline.CPUMicros[i], c.Node.CPUMicros[i]/c.Baseline.CPUMicros[i])
		for _, s := range []*Side{&c.Node, &c.Baseline} {
			if s.EndedBy[i] != endedByTime {
				early++
			}
		}
	}
	if early > 0 {
		fmt.Fprintf(w, "  %d of %d turns ended before their time: a connection had done all that were "+
			"drawn for it\n", early, 2*len(c.Node.Rates))
	}
}

// contest is a comparison in progress.
type contest struct {
	Comparison
	out       *Compared
	dir       string
	watch     *Watch
	markets   [][2]engine.Token
	perSecond float64          // operations to draw per second: more than the faster side can do
	placed    []engine.OrderID // acknowledged by the node
}

// Compare runs the rounds in turn: baseline, node to warm up, then node, baseline, then baseline,
// node, and so on. If ctx ends it leaves no process and no folder behind.
func Compare(ctx context.Context, c Comparison) (*Compared, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	dir, err := makeFolder(c.Dir)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	k := &contest{Comparison: c, dir: dir, perSecond: 30_000,
		out: &Compared{Conditions: NewConditions(c.Version), What: c.What, Loop: "closed",
			Seed: c.Seed, Connections: c.Connections, Seconds: c.Duration.Seconds()}}
	k.out.Conditions.Data = diskOf(dir)
	if k.watch, err = StartWatch(ctx, c.Self); err == nil {
		defer k.watch.End()
		err = k.run(ctx)
	}
	if ctx.Err() != nil {
		return nil, Stopped(ctx)
	} else if err != nil {
		return nil, err
	}
	return k.out, k.out.conclude()
}

// conclude computes the ratios.
func (c *Compared) conclude() error {
	rate, cpu := Median(c.Baseline.Rates), Median(c.Baseline.CPUMicros)
	if rate == 0 || cpu == 0 {
		return errors.New("the rounds are too short: the baseline's median rate or CPU time is 0")
	}
	c.Ratio, c.CPURatio = Median(c.Node.Rates)/rate, Median(c.Node.CPUMicros)/cpu
	return nil
}

// run starts both sides, lets them take turns, stops them, and checks.
func (k *contest) run(ctx context.Context) error {
	w, err := workload.Named("place")
	if err != nil {
		return err
	}
	file, markets, err := benchCatalog(k.dir, w, contestMarkets)
	if err != nil {
		return err
	}
	k.markets = markets
	node, err := startNode(ctx, k.Comparison.Node, k.dir, "--catalog", file)
	if err != nil {
		return err
	}
	defer node.end()
	clients, err := traders(ctx, "http://"+node.addr, k.Seed)
	if err != nil {
		return err
	}
	if err := node.desk.fund(ctx, clients, markets); err != nil {
		return err
	}
	conditions := &k.out.Conditions
	if conditions.Node, err = node.desk.conditions(ctx); err != nil {
		return err
	}
	conditions.Node.Started, conditions.Node.Cgo = true, cgoIn(k.Comparison.Node)
	k.out.Node.server = node
	if err := k.against(ctx, w, clients); err != nil {
		return err
	}
	if err := node.stop(); err != nil {
		return err
	}
	return k.check(ctx, node.dir)
}

// against runs the rounds with the other side: the node itself, or a baseline that is started.
func (k *contest) against(ctx context.Context, w workload.Workload,
	clients []*trader.Client) error {
	if k.What == "batch" || k.What == "entry" {
		k.out.Baseline.server = k.out.Node.server
		k.out.Conditions.Baseline = &k.out.Conditions.Node.Program
	}
	switch k.What {
	case "batch":
		return k.rounds(ctx, k.batch(ctx, w, clients), k.turn)
	case "entry":
		if err := k.rounds(ctx, k.entry(ctx, clients), k.turn); err != nil {
			return err
		}
		return k.halfLoad(ctx, clients)
	}
	kind, path, prepare := "naive", filepath.Join(k.dir, "naive"), k.orders(ctx, w, clients)
	if !writes(k.What) {
		var err error
		kind, path = "bare", filepath.Join(k.dir, "answer.json")
		if prepare, err = k.reads(ctx, clients[0], path); err != nil {
			return err
		}
	}
	peer, err := startPeer(ctx, k.Self, kind, path)
	if err != nil {
		return err
	}
	defer peer.end()
	if k.out.Conditions.Baseline, err = peer.conditions(ctx); err != nil {
		return err
	}
	k.out.Baseline.server = peer
	if err := k.rounds(ctx, prepare, k.turn); err != nil {
		return err
	}
	return peer.stop()
}

// loads makes one side's load from the requests of a round.
type loads func(s *Side) *volley

// rounds gives each side one turn a round, on the same work. The first round only warms up. Who
// goes first changes from round to round: the second turn meets a machine, a disk and caches that
// the first one has used, and that must not always be the same side's luck.
func (k *contest) rounds(ctx context.Context, prepare func(round int) (loads, error),
	turn func(context.Context, *Side, loads) error) error {
	out := k.out
	k.Ticker.Plan(k.steps())
	for round := -1; round < k.Rounds; round++ {
		work, err := prepare(round)
		if err != nil {
			return err
		}
		order, first := []*Side{&out.Node, &out.Baseline}, sideNode
		if round%2 != 0 {
			slices.Reverse(order)
			first = sideBaseline
		}
		for _, side := range order {
			k.Ticker.Step("%s, round %d", side.Name, round+1)
			if err := turn(ctx, side, work); err != nil {
				return fmt.Errorf("%s: %w", side.Name, err)
			}
		}
		if round < 0 {
			out.Node.forget()
			out.Baseline.forget()
			out.Conditions.Hiccup = Hiccup{}
			continue
		}
		out.First = append(out.First, first)
	}
	return nil
}

// steps is how many turns both sides have: with those that warm up, and those at an equal rate.
func (k *contest) steps() int {
	n := 2 * (k.Rounds + 1)
	if k.What == "entry" {
		n += 2 * k.Rounds
	}
	return n
}

// forget drops the rounds so far: they were the warm-up.
func (s *Side) forget() { *s = Side{Name: s.Name, server: s.server} }

// turn measures one side once, over new connections, and closes them.
func (k *contest) turn(ctx context.Context, s *Side, work loads) error {
	t := &trial{Run: Run{Duration: k.Duration, Progress: k.Ticker.Progress()}, report: &Report{},
		watch: k.watch}
	if err := t.fire(ctx, work(s), s.server.cpu); err != nil {
		return err
	}
	r := t.report
	if r.Failure != "" {
		return errors.New(r.Failure)
	}
	if r.CPUMicros == nil {
		return fmt.Errorf("in %.3f s nothing was answered, or the CPU time is unknown", r.Seconds)
	}
	k.out.Conditions.Hiccup.add(r.Conditions.Hiccup)
	s.Rates = append(s.Rates, r.Rate)
	s.CPUMicros = append(s.CPUMicros, *r.CPUMicros)
	s.P50Micros = append(s.P50Micros, r.ServiceMicros.P50)
	s.P90Micros = append(s.P90Micros, r.ServiceMicros.P90)
	s.P99Micros = append(s.P99Micros, r.ServiceMicros.P99)
	s.MaxMicros = append(s.MaxMicros, r.ServiceMicros.Max)
	s.Seconds, s.EndedBy = append(s.Seconds, r.Seconds), append(s.EndedBy, r.EndedBy)
	k.perSecond = max(k.perSecond, 1.5*r.Rate)
	if g := r.Generator; g != nil {
		s.LoadMicros = append(s.LoadMicros, g.CPUMicros)
	}
	if r.blame(); r.Invalid != "" {
		s.Blamed = append(s.Blamed, fmt.Sprintf("round %d: %s", len(s.Rates), r.Invalid))
	}
	k.keep(s, t.placed)
	return nil
}

// keep notes the orders that the node has acknowledged on a side: on either, if it serves both.
func (k *contest) keep(s *Side, placed []engine.OrderID) {
	if s.server == k.out.Node.server {
		k.placed = append(k.placed, placed...)
	}
}

// orders prepares rounds that post the same signed orders to both sides.
func (k *contest) orders(ctx context.Context, w workload.Workload,
	clients []*trader.Client) func(int) (loads, error) {
	k.out.Node.Name = "node, fsync before answer"
	k.out.Baseline.Name = "naive, fsync before answer"
	return func(round int) (loads, error) {
		n := int(k.Duration.Seconds() * k.perSecond)
		ops, err := k.draw(ctx, w, round, max(n, 1000))
		if err != nil {
			return nil, err
		}
		s := signing{clients: clients, markets: k.markets, salt: uint64(round+2) << 40}
		requests, err := s.sign(ctx, ops)
		if err != nil {
			return nil, err
		}
		return func(s *Side) *volley {
			v := newVolley(s.server.addr, k.Connections)
			v.deal(ops, requests)
			return v
		}, nil
	}
}

// contestMarkets is how many markets the orders of a comparison are spread over. One takes 65,536
// resting orders, and a fast node gets that many within seconds.
const contestMarkets = 16

// draw draws the operations of a round.
func (k *contest) draw(ctx context.Context, w workload.Workload, round, n int) (
	[]workload.Op, error) {
	return w.DrawApart(ctx, k.Seed+uint64(round*contestMarkets), contestMarkets, n)
}

// reads places 49 levels a side, saves the node's answer about that book in file, and prepares
// rounds that read it from both sides.
func (k *contest) reads(ctx context.Context, c *trader.Client, file string) (
	func(int) (loads, error), error) {
	if err := restLadder(ctx, c, k.markets[0][0]); err != nil {
		return nil, err
	}
	path := readPaths[k.What] + k.markets[0][0].String()
	body, err := c.Get(path)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, body, 0o644); err != nil {
		return nil, fmt.Errorf("save the answer: %w", err)
	}
	k.out.Node.Name = fmt.Sprintf("node, %d bytes", len(body))
	k.out.Baseline.Name = fmt.Sprintf("bare fasthttp, %d bytes", len(body))
	return func(int) (loads, error) {
		return func(s *Side) *volley {
			return reads(s.server.addr, path, k.Connections, body)
		}, nil
	}, nil
}

// restLadder places 49 levels a side in the book of a token.
func restLadder(ctx context.Context, c *trader.Client, token engine.Token) error {
	for i := 1; i < 100; i++ {
		l := trader.Limit{Token: token, Price: engine.Price(i * 100), Type: "GTC", Salt: uint64(i),
			Size: engine.Size(5+i) * engine.Unit}
		if i == 50 {
			continue
		}
		if i > 50 {
			l.Side = engine.Sell
		}
		if err := rest(c, l); err != nil {
			return fmt.Errorf("fill book: %w", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// rest places one order. Any answer but 200 is an error.
func rest(c *trader.Client, l trader.Limit) error {
	_, err := restNamed(c, l)
	return err
}

// restNamed is rest, and returns the order's id.
func restNamed(c *trader.Client, l trader.Limit) (engine.OrderID, error) {
	body, id, err := c.Sign(l)
	if err != nil {
		return id, err
	}
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	if err := c.Do(http.MethodPost, "/order", body, resp); err != nil {
		return id, err
	}
	if resp.StatusCode() != 200 {
		return id, fmt.Errorf("status %d: %s", resp.StatusCode(), resp.Body())
	}
	return id, nil
}

// check replays the journal of the node that was stopped.
func (k *contest) check(ctx context.Context, dir string) error {
	if !writes(k.What) {
		k.out.Checked = "every answer has the same bytes on both sides"
		return nil
	}
	t := &trial{report: &Report{Seed: k.Seed}, placed: k.placed}
	report := t.report
	if err := t.replayNode(ctx, dir); err != nil {
		return err
	}
	if report.Failure != "" {
		return errors.New(report.Failure)
	}
	k.out.Checked = report.Checked + "; every order of both sides was answered with success"
	return nil
}
