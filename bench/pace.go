package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"clobd/bench/trader"
	"clobd/bench/workload"
	"clobd/engine"
)

// Paced is the result of an open loop.
type Paced struct {
	Asked    float64 `json:"asked_per_second"`
	Achieved float64 `json:"achieved_per_second"` // answered with success, until the last answer
	Sent     int64   `json:"sent"`
	Failed   int64   `json:"failed"` // answered otherwise, or not at all
	Unsent   int64   `json:"unsent"` // given up: a whole duration behind
	// CorrectedMicros is from the instant at which a request was due to its answer. It includes the
	// wait for a busy lane, and how late the load woke up. ServiceMicros is from its sending.
	CorrectedMicros Latency `json:"corrected_micros"`
	ServiceMicros   Latency `json:"uncorrected_micros"`
	FirstFailure    string  `json:"first_failure,omitempty"`
	// Histograms are the latencies as in Report.Histograms.
	Histograms map[string]string `json:"histograms,omitempty"`
	// Generator is how well the load kept its times, nil where nothing measured that. Invalid says
	// why the figures are the generator's and not the node's, "" if they are the node's.
	Generator *Generator `json:"generator,omitempty"`
	Invalid   string     `json:"invalid,omitempty"`
}

// blame sets Invalid by the rules of Report.blame. h is what the machine paused meanwhile.
func (p *Paced) blame(h Hiccup) {
	r := &Report{Operations: p.Sent - p.Failed, CorrectedMicros: &p.CorrectedMicros,
		ServiceMicros: p.ServiceMicros, Generator: p.Generator}
	r.Conditions.Hiccup = h
	r.blame()
	p.ServiceMicros, p.Invalid = r.ServiceMicros, r.Invalid
}

// pacedSide are the loads of one side of a measurement, round by round.
type pacedSide struct {
	name string
	list []Paced
}

// blamed returns an error if the generator was too slow in half of a side's loads or more: the
// side's figures are medians of its loads, and would be the generator's. The error names each such
// side.
func blamed(sides ...pacedSide) error {
	var problems []error
	for _, side := range sides {
		var late []string
		for i := range side.list {
			if side.list[i].Invalid != "" {
				late = append(late, fmt.Sprintf("round %d: %s", i+1, side.list[i].Invalid))
			}
		}
		problems = append(problems, mostly(side.name, late, len(side.list)))
	}
	return errors.Join(problems...)
}

// String is the row of a table.
func (p *Paced) String() string {
	c, s := &p.CorrectedMicros, &p.ServiceMicros
	return fmt.Sprintf("%9.0f %9.0f %7d %7d  %8.0f %8.0f %8.0f %8.1f  %8.0f %8.0f %8.0f %8.1f",
		p.Asked, p.Achieved, p.Failed, p.Unsent, c.P50, c.P90, c.P99, c.Max/1e3, s.P50, s.P90,
		s.P99, s.Max/1e3)
}

// pacedHead is the head of a table of such rows.
const pacedHead = "  asked/s    kept/s  failed  unsent  corrected µs: p50  p90     p99   max ms  " +
	"uncorrected: p50  p90     p99   max ms"

// arrivals are the instants at which n operations are due, after the start: with equal gaps, or
// with exponential ones that are drawn from the seed.
func arrivals(rate float64, poisson bool, seed uint64, n int) []time.Duration {
	dice := rand.New(rand.NewPCG(seed, 0x706f6973))
	list, at := make([]time.Duration, n), 0.0
	for i := range list {
		list[i] = time.Duration(at * float64(time.Second))
		if poisson {
			at += dice.ExpFloat64() / rate
		} else {
			at = float64(i+1) / rate
		}
	}
	return list
}

// sleepUntil wakes at an instant. Go's timers may be a millisecond late, many times what is
// measured, so it sleeps the last part in the kernel.
func sleepUntil(due time.Time) {
	const rough = 2 * time.Millisecond
	d := time.Until(due)
	if d > rough {
		time.Sleep(d - rough)
		d = time.Until(due)
	}
	if d > 0 {
		t := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&t, nil) // woken early it is sent early, by microseconds
	}
}

// Setting is common to all measurements that start a node.
type Setting struct {
	Seed    uint64
	Dir     string // where the data folder is made; empty is the system's temporary folder
	Node    string // the node's binary
	Self    string // the binary that watches for hiccups
	Version string // what this program was built from, for the report
	Ticker  *Ticker
}

// site is a node that was started for a measurement, with traders that have money and a book with
// 49 levels a side in the first of its markets.
type site struct {
	dir        string
	watch      *Watch
	node       *child
	clients    []*trader.Client
	markets    [][2]engine.Token
	conditions Conditions
}

// open starts the node. The caller calls close also after an error.
func (s *Setting) open(ctx context.Context) (*site, error) {
	w, err := workload.Named("place")
	if err != nil {
		return nil, err
	}
	t := &site{conditions: NewConditions(s.Version)}
	if t.dir, err = makeFolder(s.Dir); err != nil {
		return t, err
	}
	t.conditions.Data = diskOf(t.dir)
	if t.watch, err = StartWatch(ctx, s.Self); err != nil {
		return t, err
	}
	file, markets, err := benchCatalog(t.dir, w, contestMarkets)
	if err != nil {
		return t, err
	}
	t.markets = markets
	if t.node, err = startNode(ctx, s.Node, t.dir, "--catalog", file); err != nil {
		return t, err
	}
	if t.conditions.Node, err = t.node.desk.conditions(ctx); err != nil {
		return t, err
	}
	t.conditions.Node.Started, t.conditions.Node.Cgo = true, cgoIn(s.Node)
	if t.clients, err = traders(ctx, "http://"+t.node.addr, s.Seed); err != nil {
		return t, err
	}
	if err := t.node.desk.fund(ctx, t.clients, markets); err != nil {
		return t, err
	}
	return t, restLadder(ctx, t.clients[0], markets[0][0])
}

// measure runs a measurement on a node of its own, and returns the conditions that it was taken
// under. A measurement that ctx has ended has no figures, whatever it returns.
func (s *Setting) measure(ctx context.Context, run func(t *site) error) (Conditions, error) {
	t, err := s.open(ctx)
	defer t.close()
	if err == nil {
		err = run(t)
	}
	switch {
	case ctx.Err() != nil:
		return Conditions{}, Stopped(ctx)
	case err != nil:
		return Conditions{}, err
	}
	return t.conditions, nil
}

// close ends the node and removes its folder.
func (t *site) close() {
	if t == nil {
		return
	}
	if t.node != nil {
		t.node.end()
	}
	if t.watch != nil {
		t.watch.End()
	}
	_ = os.RemoveAll(t.dir) // of the temporary folder; what is left there is told by nobody
}

// orders draws and signs n orders for all markets but the first, whose book the reads look at.
func (t *site) orders(ctx context.Context, seed uint64, n int) ([]workload.Op, []signed, error) {
	w, err := workload.Named("place")
	if err != nil {
		return nil, nil, err
	}
	ops, err := w.DrawApart(ctx, seed, contestMarkets, max(n, 2000))
	if err != nil {
		return nil, nil, err
	}
	for i := range ops {
		ops[i].Book = max(ops[i].Book, 1)
	}
	s := signing{clients: t.clients, markets: t.markets, salt: seed << 32}
	requests, err := s.sign(ctx, ops)
	return ops, requests, err
}

// Reads is an open loop of reads, in a process of its own, so that other work of the load does not
// delay it.
type Reads struct {
	Addr, Path string
	Rate       float64
	Duration   time.Duration
	Lanes      int
	Ticker     *Ticker
}

// apart runs the reads in a process of self. A read that fails is an error.
func (r *Reads) apart(ctx context.Context, self string) (p Paced, err error) {
	v := reads(r.Addr, r.Path, r.Lanes, nil)
	v.Rate, v.Duration, v.Progress = r.Rate, r.Duration, r.Ticker.Progress()
	apart, err := v.Dispatch(ctx, self, 1, false)
	if err != nil {
		return p, errors.Join(ctx.Err(), err)
	}
	m, err := apart.Wait()
	switch {
	case ctx.Err() != nil:
		return p, ctx.Err()
	case err != nil:
		return p, fmt.Errorf("read from another process: %w", err)
	case m.Failed > 0:
		return p, fmt.Errorf("%d reads failed: %s", m.Failed, m.Failure)
	}
	return paced(r.Rate, r.Duration, m), nil
}
