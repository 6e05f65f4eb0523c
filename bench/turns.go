package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"clobd/bench/trader"
	"clobd/bench/workload"
	"clobd/engine"
)

// Rivalry says how two builds of the node are measured in turns: A, B, then B, A, and so on.
type Rivalry struct {
	Nodes       [2]string     // the binaries
	Rounds      int           // turns of each
	Duration    time.Duration // of a turn, which a quarter of it precedes that does not count
	Connections int           // at most Traders
	Lists       bool          // the orders come in lists of 15
	Seed        uint64
	Dir         string // where the data folders are made; empty is the system's temporary folder
	Self        string // the binary that watches for hiccups
	Version     string // what this program was built from, for the reports
	Ticker      *Ticker
}

// validate returns all problems at once, or nil.
func (r *Rivalry) validate() error {
	all := Problems{Of: "turns"}
	all.Rounds(r.Rounds, r.Duration)
	all.posters("connections", r.Connections)
	return all.Err()
}

// Side names a node as messages do: both may have one binary.
func (r *Rivalry) Side(i int) string { return fmt.Sprintf("node %c, %s", 'A'+i, r.Nodes[i]) }

// rivals is a rivalry in progress.
type rivals struct {
	Rivalry
	dir       string
	watch     *Watch
	markets   [][2]engine.Token
	sides     [2]rival
	perSecond float64 // orders to draw per second: more than the faster side can do
}

// rival is one of the nodes.
type rival struct {
	node    *child
	clients []*trader.Client
	report  *Report
	sum     turnSum
	blamed  []string         // turns whose figures the generator has made
	placed  []engine.OrderID // acknowledged
}

// rivalDraw is for how many orders a second the first turns have orders. Later turns have half as
// many again as the faster node took.
const rivalDraw = 15_000

// MeasureTurns measures both nodes on the same signed orders and returns a report of each. Both
// nodes run all the while, so that a turn finds a warm process; the one that waits does nothing.
// The first round only warms up. A failed check is in a report's Failure.
func MeasureTurns(ctx context.Context, r Rivalry) (a, b *Report, err error) {
	if err := r.validate(); err != nil {
		return nil, nil, err
	}
	k := &rivals{Rivalry: r, perSecond: rivalDraw}
	if k.dir, err = makeFolder(r.Dir); err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(k.dir)
	if k.watch, err = StartWatch(ctx, r.Self); err == nil {
		defer k.watch.End()
		err = k.run(ctx)
	}
	if ctx.Err() != nil {
		return nil, nil, Stopped(ctx)
	}
	return k.sides[0].report, k.sides[1].report, err
}

// run starts both nodes, lets them take turns, and checks what they ended with.
func (k *rivals) run(ctx context.Context) error {
	conditions := NewConditions(k.Version)
	conditions.Data = diskOf(k.dir)
	for i := range k.sides {
		s := &k.sides[i]
		s.report = &Report{Conditions: conditions, Workload: k.workload(), Level: "L3", Loop: "closed",
			Seed: k.Seed, Connections: k.Connections, EndedBy: endedByTime,
			AskedSeconds: k.Duration.Seconds() * float64(k.Rounds)}
		err := k.furnish(ctx, i)
		if s.node != nil {
			defer s.node.end()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k.Side(i), err)
		}
	}
	k.Ticker.Plan(2 * (k.Rounds + 1))
	for round := -1; round < k.Rounds; round++ {
		if err := k.takeTurns(ctx, round); err != nil {
			return err
		}
	}
	for i := range k.sides {
		s := &k.sides[i]
		s.report.Beside = k.sides[1-i].report.besideName()
		s.sum.conclude(s.report)
		k.judge(i)
		if err := s.node.stop(); err != nil {
			return err
		}
		t := &trial{report: s.report, placed: s.placed}
		if err := t.replayNode(ctx, s.node.dir); err != nil {
			return err
		}
	}
	return nil
}

// judge sets Invalid of a node's report if the generator has made the figures of every second turn
// of that node or of more.
func (k *rivals) judge(i int) {
	s := &k.sides[i]
	if err := mostly(k.Side(i), s.blamed, k.Rounds); err != nil {
		s.report.Invalid = strings.TrimPrefix(err.Error(), "INVALID: ")
	}
}

// workload is what the reports call the orders.
func (k *rivals) workload() string {
	if k.Lists {
		return fmt.Sprintf("place, in lists of %d", workload.ListSize)
	}
	return "place"
}

// besideName is how the report of the other node names the node of this one.
func (r *Report) besideName() string { return "version " + r.Conditions.Node.Version }

// RanBeside reports whether both nodes took turns in one run, so that turn i of one report was
// measured right before or after turn i of the other. Two copies of one report look the same if
// the nodes were of one version.
func (r *Report) RanBeside(other *Report) bool {
	a, b := &r.Conditions, &other.Conditions
	return a.Node != nil && b.Node != nil && a.Start.Equal(b.Start) &&
		r.Beside == other.besideName() && other.Beside == r.besideName() &&
		len(r.Turns) > 0 && len(r.Turns) == len(other.Turns)
}

// furnish starts one node, and gives it traders with money.
func (k *rivals) furnish(ctx context.Context, i int) error {
	w, err := workload.Named("place")
	if err != nil {
		return err
	}
	dir := filepath.Join(k.dir, [...]string{"a", "b"}[i])
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	file, markets, err := benchCatalog(dir, w, contestMarkets)
	if err != nil {
		return err
	}
	k.markets = markets
	s := &k.sides[i]
	if s.node, err = startNode(ctx, k.Nodes[i], dir, "--catalog", file); err != nil {
		return err
	}
	c := &s.report.Conditions
	if c.Node, err = s.node.desk.conditions(ctx); err != nil {
		return err
	}
	c.Node.Started, c.Node.Cgo = true, cgoIn(k.Nodes[i])
	s.report.Durability = c.Node.Durability
	if s.clients, err = traders(ctx, "http://"+s.node.addr, k.Seed); err != nil {
		return err
	}
	return s.node.desk.fund(ctx, s.clients, markets)
}

// takeTurns is a turn of each node, on the same orders.
func (k *rivals) takeTurns(ctx context.Context, round int) error {
	w, err := workload.Named("place")
	if err != nil {
		return err
	}
	n := int(k.Duration.Seconds() * 5 / 4 * k.perSecond) // with the start of the turn
	ops, err := (&contest{Comparison: Comparison{Seed: k.Seed}}).draw(ctx, w, round, max(n, 1000))
	if err != nil {
		return err
	}
	s := signing{clients: k.sides[0].clients, markets: k.markets, salt: uint64(round+2) << 40}
	requests, err := s.sign(ctx, ops)
	if err != nil {
		return err
	}
	order := []int{0, 1}
	if round%2 != 0 {
		slices.Reverse(order)
	}
	for _, i := range order {
		k.Ticker.Step("node %c, round %d", 'A'+i, round+1)
		mine := requests
		if i == 1 {
			mine = readdressed(ops, requests, k.sides[1].clients)
		}
		v := newVolley(k.sides[i].node.addr, k.Connections)
		if k.Lists {
			v.dealLists(ops, mine)
		} else {
			v.deal(ops, mine)
		}
		if err := k.settle(ctx); err != nil {
			return err
		}
		if err := k.turn(ctx, &k.sides[i], v, round < 0); err != nil {
			return fmt.Errorf("%s: %w", k.Side(i), err)
		}
	}
	return nil
}

// settle waits until no node works on after its turn, at most two seconds: what the one that went
// first still does (its index, its collector) would slow down the one that goes next.
func (k *rivals) settle(ctx context.Context) error {
	const look, quiet = 50 * time.Millisecond, 10 * time.Millisecond // a tick of the CPU time
	var last time.Duration
	for range 40 {
		a, err := k.sides[0].node.cpu()
		if err != nil {
			return err
		}
		b, err := k.sides[1].node.cpu()
		if err != nil {
			return err
		}
		if last > 0 && a+b-last <= quiet {
			return nil
		}
		last = a + b
		select {
		case <-ctx.Done():
			return Stopped(ctx)
		case <-time.After(look):
		}
	}
	return nil
}

// readdressed are the same orders for a node that has given the traders other API keys. The
// signature of an order does not cover the key.
func readdressed(ops []workload.Op, requests []signed, clients []*trader.Client) []signed {
	out := slices.Clone(requests)
	for i := range out {
		c := clients[ops[i].Trader]
		out[i].body = bytes.Replace(out[i].body, []byte(out[i].client.Trio.Key), []byte(c.Trio.Key), 1)
		out[i].client = c
	}
	return out
}

// turn is one turn of one node. A turn that only warms up is not reported.
func (k *rivals) turn(ctx context.Context, s *rival, v *volley, warmup bool) error {
	// What went before a turn (signing, or the other node's turn) is not a part of it: each turn
	// begins with a quarter of its time that does not count, and goes on where that ended.
	start := &trial{Run: Run{Duration: k.Duration / 4, Rounds: 2}, report: &Report{}, watch: k.watch}
	if err := start.fire(ctx, v, s.node.cpu); err != nil {
		return err
	}
	if start.report.Failure != "" {
		return errors.New(start.report.Failure)
	}
	s.placed = append(s.placed, start.placed...)
	s.report.Warmup += int(start.report.Operations)
	t := &trial{Run: Run{Duration: k.Duration, Progress: k.Ticker.Progress()}, report: &Report{},
		watch: k.watch}
	if err := t.fire(ctx, v, s.node.cpu); err != nil {
		return err
	}
	got, r := t.report, s.report
	if got.Failure != "" {
		return errors.New(got.Failure)
	}
	s.placed = append(s.placed, t.placed...)
	k.perSecond = max(k.perSecond, 1.5*got.Rate)
	if warmup {
		r.Warmup += int(got.Operations)
		return nil
	}
	if got.CPUMicros == nil {
		return fmt.Errorf("in %.3f s nothing was answered, or the CPU time is unknown", got.Seconds)
	}
	if got.blame(); got.Invalid != "" {
		s.blamed = append(s.blamed, fmt.Sprintf("round %d: %s", len(r.Turns)+1, got.Invalid))
	}
	return s.sum.add(r, got)
}

// stretch is a turn on the wall's clock and on that of the report, which stands still between two
// turns.
type stretch struct {
	began           time.Time
	offset, seconds float64
}

// onTimeline is an instant on the clock of the report. An instant between two turns is the start of
// the later one.
func (r *Report) onTimeline(at time.Time) float64 {
	for _, w := range r.windows {
		if into := at.Sub(w.began).Seconds(); into <= w.seconds {
			return w.offset + max(into, 0)
		}
	}
	return r.Seconds
}

// turnSum is what the turns of a report come to.
type turnSum struct {
	cpu     float64 // µs
	unknown bool    // the CPU time of a turn
	service *hdrhistogram.Histogram
}

// add adds a turn, which was measured as a run of its own.
func (s *turnSum) add(r, turn *Report) error {
	r.Turns = append(r.Turns, Part{turn.Seconds, turn.Operations, turn.Rate, turn.CPUMicros,
		turn.ServiceMicros.P50, turn.ServiceMicros.P99})
	r.Conditions.Hiccup.add(turn.Conditions.Hiccup)
	if !turn.began.IsZero() {
		r.windows = append(r.windows, stretch{turn.began, r.Seconds, turn.Seconds})
	}
	for _, m := range turn.Timeline {
		m.Seconds += r.Seconds
		r.Timeline = append(r.Timeline, m)
	}
	r.Generator = r.Generator.with(turn.Generator, turn.Operations, r.Operations)
	r.Connections, r.Seconds = turn.Connections, r.Seconds+turn.Seconds
	r.Operations, r.Acknowledged = r.Operations+turn.Operations, r.Acknowledged+turn.Acknowledged
	r.Refused, r.Busy, r.Errors = r.Refused+turn.Refused, r.Busy+turn.Busy, r.Errors+turn.Errors
	r.requests, r.Unsent = r.requests+turn.requests, r.Unsent+turn.Unsent
	if r.Failure == "" {
		r.Failure = turn.Failure
	}
	if r.EndedBy == "" || turn.EndedBy != endedByTime {
		r.EndedBy = turn.EndedBy
	}
	if turn.CPUMicros != nil {
		s.cpu += *turn.CPUMicros * float64(turn.Operations)
	} else {
		s.unknown = true
	}
	if text := turn.Histograms["service"]; text != "" {
		h, err := hdrhistogram.Decode([]byte(text))
		if err != nil {
			return fmt.Errorf("read the histogram of a turn: %w", err)
		}
		if s.service == nil {
			s.service = h
		} else {
			s.service.Merge(h)
		}
	}
	return nil
}

// with is the generator of n more operations after those of before: the means of both, and the
// later of both delays.
func (g *Generator) with(next *Generator, n, before int64) *Generator {
	if g == nil || next == nil || n+before == 0 {
		return cmp.Or(next, g)
	}
	mean := func(a, b float64) float64 {
		return (a*float64(before) + b*float64(n)) / float64(n+before)
	}
	both := *g
	both.CPUMicros, both.Share = mean(g.CPUMicros, next.CPUMicros), mean(g.Share, next.Share)
	both.Thread = mean(g.Thread, next.Thread)
	l, m := &both.LateMicros, &next.LateMicros
	l.P50, l.P90, l.P99 = max(l.P50, m.P50), max(l.P90, m.P90), max(l.P99, m.P99)
	l.Max = max(l.Max, m.Max)
	if m.P999 != nil && (l.P999 == nil || *l.P999 < *m.P999) {
		l.P999 = m.P999
	}
	return &both
}

// conclude puts what the turns come to into the report.
func (s *turnSum) conclude(r *Report) {
	if r.Operations == 0 || r.Seconds == 0 {
		return
	}
	r.Rate = float64(r.Operations) / r.Seconds
	if !s.unknown {
		r.CPUMicros = new(s.cpu / float64(r.Operations))
	}
	if s.service != nil {
		all := Recorder{s.service}
		r.ServiceMicros, r.Histograms = all.Latency(), histograms(&all, nil)
	}
}

// measureTurns measures the crew in as many turns as the run has.
func (t *trial) measureTurns(ctx context.Context, c *crew, read clock) error {
	return t.inTurns(ctx, func(turn *trial) error {
		c.forget()
		return turn.measure(ctx, c, read)
	})
}

// fireTurns sends the volley in as many turns as the run has; each goes on where the last one has
// ended.
func (t *trial) fireTurns(ctx context.Context, v *volley, read clock) error {
	return t.inTurns(ctx, func(turn *trial) error { return turn.fire(ctx, v, read) })
}

// inTurns measures a run in as many turns as it has. Each follows the one before it on the same
// node: a node of its own would measure starts, and take most of the time for signing.
func (t *trial) inTurns(ctx context.Context, measure func(turn *trial) error) error {
	if t.Rounds <= 1 {
		return measure(t)
	}
	var sum turnSum
	for range t.Rounds {
		turn := &trial{Run: t.Run, report: &Report{}, watch: t.watch, placedBy: t.placedBy}
		turn.Duration = t.turnTime()
		if err := measure(turn); err != nil {
			return err
		}
		t.placed, t.placedBy = append(t.placed, turn.placed...), turn.placedBy
		if err := sum.add(t.report, turn.report); err != nil {
			return err
		}
		if t.report.Failure != "" || t.report.EndedBy != endedByTime || ctx.Err() != nil {
			break
		}
	}
	sum.conclude(t.report)
	return nil
}

// turnTime is how long a turn takes.
func (t *trial) turnTime() time.Duration { return t.Duration / time.Duration(max(t.Rounds, 1)) }

// forget drops what the loops have counted, and not where they are. They do not run.
func (c *crew) forget() {
	for _, n := range c.counts {
		n.rec.h.Reset()
		n.whole, n.wholeBy, n.moment, n.told = Recorder{}, Recorder{}, Recorder{}, 0
		n.busy, n.acked, n.refused, n.placed, n.err = 0, 0, 0, nil, nil
	}
}
