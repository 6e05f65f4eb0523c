package bench

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
)

// counts are what one closed loop counted. They belong to its goroutine while it runs.
type counts struct {
	rec     Recorder
	busy    int64
	acked   int64
	refused int64
	next    int              // what the loop does next, when it is driven again
	placed  []engine.OrderID // acknowledged and not refused
	err     error
}

// crew is a set of closed loops that run at once. A loop ends when its work is done, at its first
// error, or when until returns true.
type crew struct {
	counts []*counts
	loops  []func(until func() bool)
}

// join adds a loop and returns what it counts in.
func (c *crew) join(loop func(n *counts, until func() bool)) {
	n := &counts{rec: NewRecorder()}
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
func (c *crew) sum() (all counts, failed int64) {
	all.rec = NewRecorder()
	for _, n := range c.counts {
		all.rec.h.Merge(n.rec.h)
		all.busy += n.busy
		all.acked += n.acked
		all.refused += n.refused
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
}

// measure drives the crew for the run's time and puts what it counted into the report. The hiccup
// meter and the CPU clock see the same window.
func (t *trial) measure(ctx context.Context, c *crew, cpu clock) error {
	runtime.GC() // what was drawn and signed left garbage: it is nobody's to collect while measured
	if _, err := t.watch.Lap(); err != nil {
		return err
	}
	before, cpuErr := cpu()
	w := c.drive(ctx, t.Duration)
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
	r.bound(w)
	if n := float64(all.acked); n > 0 {
		r.Rate = n / w.took.Seconds()
		if cpuErr == nil {
			r.CPUMicros = new(float64((after - before).Nanoseconds()) / 1e3 / n)
		}
	}
	return nil
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

// Stopped is the error of a run that ctx ended.
func Stopped(ctx context.Context) error {
	return fmt.Errorf("stopped before its end (%v): there is no figure", context.Cause(ctx))
}
