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

// forget drops what the loops have counted, and not where they are.
func (c *crew) forget() {
	for _, n := range c.counts {
		n.rec.h.Reset()
		n.busy, n.acked, n.refused, n.placed, n.err = 0, 0, 0, nil, nil
	}
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
	rec    Recorder         // of measure
}

// measure drives the crew for the run's time, in so many turns as the run has, and puts what it
// counted into the report. The hiccup meter and the CPU clock see the same windows.
func (t *trial) measure(ctx context.Context, c *crew, cpu clock) error {
	r := t.report
	t.rec = NewRecorder()
	r.Connections, r.Conditions.Hiccup = len(c.loops), Hiccup{}
	total, spent, known := window{full: true}, time.Duration(0), true
	for turn := 0; turn < max(t.Rounds, 1) && total.full && r.Errors == 0; turn++ {
		w, took, err := t.turn(ctx, c, cpu)
		if err != nil {
			return err
		}
		total.took, total.full = total.took+w.took, w.full
		if known = known && took >= 0; known {
			spent += took
		}
	}
	r.ServiceMicros, r.Histograms = t.rec.Latency(), histograms(&t.rec, nil)
	r.bound(total)
	if n := float64(r.Acknowledged); n > 0 {
		r.Rate = n / total.took.Seconds()
		if known {
			r.CPUMicros = new(float64(spent.Nanoseconds()) / 1e3 / n)
		}
	}
	return nil
}

// turn is one turn of measure. cpu is what it took of the measured process, below 0 if that is not
// known.
func (t *trial) turn(ctx context.Context, c *crew, read clock) (
	w window, cpu time.Duration, err error) {
	runtime.GC() // what was drawn and signed left garbage: it is nobody's to collect while measured
	if _, err := t.watch.Lap(); err != nil {
		return w, 0, err
	}
	before, beforeErr := read()
	w = c.drive(ctx, t.turnTime())
	after, afterErr := read()
	cpu = after - before
	if beforeErr != nil || afterErr != nil {
		cpu = -1
	}
	h, err := t.watch.Lap()
	if err != nil {
		return w, cpu, err
	}
	r := t.report
	r.Conditions.Hiccup.add(h)
	all, failed := c.sum()
	if r.Errors = failed; failed > 0 {
		r.Failure = all.err.Error()
	}
	r.Operations, r.Acknowledged = r.Operations+all.acked, r.Acknowledged+all.acked
	r.Refused, r.Busy = r.Refused+all.refused, r.Busy+all.busy
	t.placed = append(t.placed, all.placed...)
	t.rec.h.Merge(all.rec.h)
	if t.Rounds > 1 {
		p := part(w, &all)
		p.setCPU(cpu)
		r.Turns = append(r.Turns, p)
		c.forget()
	}
	return w, cpu, nil
}

// turnTime is how long a turn takes.
func (t *trial) turnTime() time.Duration { return t.Duration / time.Duration(max(t.Rounds, 1)) }

// part is a turn with what was counted in it.
func part(w window, all *counts) Part {
	l := all.rec.Latency()
	return Part{Seconds: w.took.Seconds(), Operations: all.acked, P50: l.P50, P99: l.P99,
		Rate: float64(all.acked) / w.took.Seconds()}
}

// setCPU sets what the turn took of the measured process, unless that is not known.
func (p *Part) setCPU(cpu time.Duration) {
	if cpu >= 0 && p.Operations > 0 {
		p.CPUMicros = new(float64(cpu.Nanoseconds()) / 1e3 / float64(p.Operations))
	}
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
