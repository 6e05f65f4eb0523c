package bench

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"clobd/bench/lean"
	"clobd/bench/workload"
	"clobd/engine"
)

// counts are what one loop counted. They belong to its goroutine while it runs, but for what the
// mutex guards.
type counts struct {
	rec       Recorder // since the last hand-over
	corrected Recorder // of an open loop, else nil
	late      Recorder // of an open loop, else nil
	crew      *crew
	turn      uint32 // of the last hand-over

	mutex          sync.Mutex
	whole, wholeBy Recorder // handed over of rec and of corrected; nil while nobody has asked
	moment         Recorder // handed over, and not yet asked for
	told           int64    // acked at the last hand-over

	busy    int64
	acked   int64
	refused int64
	unsent  int64            // of an open loop: given up, a whole duration behind
	next    int              // what the loop does next, when it is driven again
	placed  []engine.OrderID // acknowledged and not refused
	err     error
}

// crew is a set of loops that run at once. A loop ends when its work is done, at its first error,
// or when until returns true.
type crew struct {
	counts []*counts
	loops  []func(until func() bool)
	start  time.Time // of drive
	// turn goes up each time somebody asks how the loops come along; each then hands over what it has.
	turn atomic.Uint32
}

// note counts an answer to a request that was sent at an instant, due at another one (zero in a
// closed loop), over a lane that was free since a third one.
func (n *counts) note(sent, due, free time.Time) time.Time {
	now := time.Now()
	n.acked++
	n.rec.Record(now.Sub(sent))
	if !due.IsZero() {
		n.corrected.Record(now.Sub(due))
		if free.After(due) {
			due = free
		}
		n.late.Record(max(sent.Sub(due), 0))
	}
	if turn := n.crew.turn.Load(); turn != n.turn {
		n.turn = turn
		n.handOver()
	}
	return now
}

// handOver lets others see what was recorded so far.
func (n *counts) handOver() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.whole.h == nil {
		n.whole, n.wholeBy, n.moment = NewRecorder(), NewRecorder(), NewRecorder()
	}
	n.whole.h.Merge(n.rec.h)
	if n.corrected.h != nil {
		n.wholeBy.h.Merge(n.corrected.h)
		n.moment.h.Merge(n.corrected.h)
		n.corrected.h.Reset()
	} else {
		n.moment.h.Merge(n.rec.h)
	}
	n.rec.h.Reset()
	n.told = n.acked
}

// ask asks the loops to hand over what they have, and takes what those did that were answered
// something soon after. The others' comes with the next ask.
func (c *crew) ask() (moment Recorder, done int64) {
	c.turn.Add(1)
	time.Sleep(10 * time.Millisecond)
	moment = NewRecorder()
	for _, n := range c.counts {
		n.mutex.Lock()
		if n.moment.h != nil {
			moment.h.Merge(n.moment.h)
			n.moment.h.Reset()
		}
		done += n.told
		n.mutex.Unlock()
	}
	return moment, done
}

// tell calls progress once a second until stop is closed, and returns the seconds as moments.
func (c *crew) tell(d time.Duration, progress func(lean.Progress), stop chan struct{}) (
	list []Moment) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	began := time.Now()
	for before, at := int64(0), began; ; {
		select {
		case <-stop:
			return list
		case <-tick.C:
		}
		rec, done := c.ask()
		now := time.Now()
		l := rec.Latency()
		list = append(list, Moment{Seconds: now.Sub(began).Seconds(), Done: done - before,
			P50: l.P50, P99: l.P99})
		if progress != nil {
			progress(lean.Progress{Rate: float64(done-before) / now.Sub(at).Seconds(),
				P50: micros(l.P50), P99: micros(l.P99), Done: done, Elapsed: now.Sub(began),
				Left: max(d-now.Sub(began), 0)})
		}
		before, at = done, now
	}
}

func micros(v float64) time.Duration { return time.Duration(v * float64(time.Microsecond)) }

// join adds a loop and returns what it counts in.
func (c *crew) join(loop func(n *counts, until func() bool)) {
	n := &counts{rec: NewRecorder(), crew: c}
	c.counts = append(c.counts, n)
	c.loops = append(c.loops, func(until func() bool) { loop(n, until) })
}

// window is the time in which a crew was measured. full reports whether all of the time was used;
// otherwise a loop had nothing left to do.
type window struct {
	took time.Duration
	full bool
}

// drive runs all loops until d has passed or ctx is done; with 0 each runs to its own end. The
// first loop that ends ends the window, because from then on the load is smaller than the report
// says.
func (c *crew) drive(ctx context.Context, d time.Duration) window {
	var over atomic.Bool
	var full atomic.Bool
	start := time.Now()
	c.start = start
	until := func() bool {
		if d > 0 && time.Since(start) >= d && !over.Swap(true) {
			full.Store(true)
		}
		return over.Load() || ctx.Err() != nil
	}
	var wait sync.WaitGroup
	for _, loop := range c.loops {
		wait.Go(func() {
			loop(until)
			if d > 0 {
				over.Store(true)
			}
		})
	}
	wait.Wait()
	return window{time.Since(start), full.Load()}
}

// sum adds up what the loops counted; its err is the first failure among them.
func (c *crew) sum() (all *counts, failed int64) {
	all = &counts{}
	all.rec, all.corrected, all.late = NewRecorder(), NewRecorder(), NewRecorder()
	for _, n := range c.counts {
		all.rec.h.Merge(n.rec.h)
		if n.whole.h != nil {
			all.rec.h.Merge(n.whole.h)
			all.corrected.h.Merge(n.wholeBy.h)
		}
		if n.corrected.h != nil {
			all.corrected.h.Merge(n.corrected.h)
		}
		if n.late.h != nil {
			all.late.h.Merge(n.late.h)
		}
		all.busy += n.busy
		all.acked += n.acked
		all.refused += n.refused
		all.unsent += n.unsent
		all.placed = append(all.placed, n.placed...)
		if n.err != nil {
			failed++
			all.err = cmp.Or(all.err, n.err)
		}
	}
	return all, failed
}

// clock reads the CPU time that the measured process has used so far.
type clock func() (time.Duration, error)

// trial is a run in progress.
type trial struct {
	Run
	report *Report
	dir    string // of the run; empty if it writes nothing
	watch  *Watch
	placed []engine.OrderID // acknowledged and not refused, warm-up included
	score  *workload.Score  // of a replay at L3
	// placedBy are the same by address, if their owners have to be asked for them.
	placedBy map[string][]engine.OrderID
}

// measure drives the crew for the run's time and puts what it counted into the report. The hiccup
// meter and the CPU clock see the same window.
func (t *trial) measure(ctx context.Context, c *crew, cpu clock) error {
	runtime.GC() // what was drawn and signed left garbage: it is nobody's to collect while measured
	if _, err := t.watch.Lap(); err != nil {
		return err
	}
	before, cpuErr := cpu()
	w := t.drive(ctx, c)
	after, err := cpu()
	if cpuErr == nil {
		cpuErr = err
	}
	if t.report.Conditions.Hiccup, err = t.watch.Lap(); err != nil {
		return err
	}
	all, failed := c.sum()
	r := t.report
	if r.Errors = failed; failed > 0 {
		r.Failure = all.err.Error()
	}
	r.Operations, r.Acknowledged, r.Refused, r.Busy = all.acked, all.acked, all.refused, all.busy
	t.placed = append(t.placed, all.placed...)
	r.Connections = len(c.loops)
	r.ServiceMicros, r.Histograms = all.rec.Latency(), histograms(&all.rec, nil)
	if t.Rate > 0 {
		r.CorrectedMicros = new(all.corrected.Latency())
		r.Histograms = histograms(&all.rec, &all.corrected)
		r.Unsent = all.unsent
		r.Generator = &Generator{Processes: 1, LateMicros: all.late.Latency(), goroutines: true}
	}
	r.bound(w)
	r.needWork()
	if n := float64(all.acked); n > 0 {
		r.Rate = n / w.took.Seconds()
		if cpuErr == nil {
			r.CPUMicros = new(float64((after - before).Nanoseconds()) / 1e3 / n)
		}
	}
	return nil
}

// drive runs the crew for the time of the run, and tells how it comes along.
func (t *trial) drive(ctx context.Context, c *crew) window {
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() { t.report.Timeline = c.tell(t.Duration, t.Progress, stop) })
	defer wait.Wait()
	defer close(stop)
	if t.Rate == 0 {
		return c.drive(ctx, t.Duration)
	}
	// A lane that sleeps in the kernel holds what a goroutine needs to run: each has its own.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + len(c.loops)))
	w := c.drive(ctx, 0)
	w.took, w.full = max(w.took, t.Duration), true // the last ones were due before its end
	return w
}

// endedByTime is the EndedBy of a run that took its time.
const endedByTime = "time"

// bound says how long the run measured, and what ended it.
func (r *Report) bound(w window) {
	r.Seconds, r.EndedBy = w.took.Seconds(), endedByTime
	if !w.full {
		r.EndedBy = "operations: a connection had done all that were drawn for it"
	}
}

// needWork fails a run in which nothing was acknowledged: percentiles of nothing hold any
// threshold.
func (r *Report) needWork() {
	if r.Acknowledged == 0 && r.Failure == "" {
		r.Failure = fmt.Sprintf("no operation was acknowledged; the node was busy %d times", r.Busy)
	}
}

// Stopped is the error of a run that ctx ended.
func Stopped(ctx context.Context) error {
	return fmt.Errorf("stopped before its end (%v): there is no figure", context.Cause(ctx))
}
