package bench

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"clobd/bench/lean"
	"clobd/bench/workload"
)

// RequestError says that a measurement was asked for with values that it cannot have. Nothing was
// measured.
type RequestError struct{ Err error }

// Error says all that is wrong with them.
func (e *RequestError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *RequestError) Unwrap() error { return e.Err }

// Problems collects what is wrong with the values that a measurement was asked for with.
type Problems struct {
	Of  string // the measurement
	all []error
}

// Add notes a problem if there is one.
func (p *Problems) Add(wrong bool, format string, args ...any) {
	if wrong {
		p.all = append(p.all, fmt.Errorf(p.Of+": "+format, args...))
	}
}

// The most that a measurement takes: more is a slip of the keys, or fills the memory with requests
// that are signed beforehand.
const (
	mostRounds = 10_000
	mostTurn   = time.Minute
	mostRate   = 1e6    // a second
	mostLanes  = 10_000 // connections
)

// Rounds notes what is wrong with a number of rounds and with the time of one turn.
func (p *Problems) Rounds(rounds int, turn time.Duration) {
	p.Add(rounds < 1, "no rounds")
	p.Add(rounds > mostRounds, "more than %d rounds", mostRounds)
	p.Add(turn <= 0, "the duration is not positive")
	p.Add(turn > mostTurn, "the duration is above %v a turn: give more rounds", mostTurn)
}

// rate notes what is wrong with a rate.
func (p *Problems) rate(what string, rate float64) {
	p.Add(!(rate >= 1), "%s is below 1 a second", what)
	p.Add(rate > mostRate, "%s is above %g a second", what, mostRate)
}

// lanes notes what is wrong with a number of connections.
func (p *Problems) lanes(what string, n int) {
	p.Add(n < 1 || n > mostLanes, "the %s are not in [1, %d]", what, mostLanes)
}

// posters notes what is wrong with a number of connections that post orders.
func (p *Problems) posters(what string, n int) {
	p.Add(n < 1 || n > workload.Traders, "the %s are not in [1, %d]: each has wallets of its own", what, workload.Traders)
}

// Err is nil without problems, and else a RequestError of all of them.
func (p *Problems) Err() error {
	if len(p.all) == 0 {
		return nil
	}
	return &RequestError{errors.Join(p.all...)}
}

// The bounds beyond which a figure is the generator's and not the node's. DESIGN.md says why.
const (
	lateFloor = 100.0   // µs: what the thread of package lean takes to wake up
	loopFloor = 300.0   // µs: what a goroutine takes to wake up, at L1 and at L2
	stoodLong = 150_000 // µs: no thread waits so long for a busy core
	latePart  = 0.5     // of the latency at the same percentile
	wholeOf   = 0.9     // of the time of the threads that send
)

// blame sets Invalid if the generator, and not the node, has made the figures of the report. A
// p99.9 that a pause of the whole machine has made is withheld.
func (r *Report) blame() {
	g := r.Generator
	if g == nil {
		return
	}
	floor := lateFloor
	if g.goroutines {
		floor = loopFloor
	}
	if g.Thread >= wholeOf {
		r.Invalid = fmt.Sprintf("the generator was at its limit: its threads were on a CPU for %.0f%% "+
			"of the time (the bound is %.0f%%)", g.Thread*100, wholeOf*100)
		return
	}
	latency := &r.ServiceMicros
	if r.CorrectedMicros != nil {
		latency = r.CorrectedMicros
	}
	late, paused := &g.LateMicros, r.Conditions.Hiccup.MaxMillis*1e3
	accuse := func(name string, late, took, least float64) bool {
		bad := late > least && late > latePart*took
		if bad {
			r.Invalid = fmt.Sprintf("the generator was late itself: %s of its lateness is %.0f µs, of the "+
				"latency %.0f µs; the machine was busy or stood still", name, late, took)
		}
		return bad
	}
	// A percentile with less than ten requests beyond it is not judged.
	n := cmp.Or(r.requests, r.Operations)
	if n >= 20 && accuse("p50", late.P50, latency.P50, floor) ||
		n >= 100 && accuse("p90", late.P90, latency.P90, floor) ||
		n >= 1000 && accuse("p99", late.P99, latency.P99, floor) {
		return
	}
	if paused < late.Max/2 { // the hiccup meter ran while the generator did not
		if accuse("the longest", late.Max, latency.Max, stoodLong) {
			return
		}
	}
	if late.P999 != nil && latency.P999 != nil && *late.P999 > max(floor, latePart**latency.P999) {
		g.Note = fmt.Sprintf("p99.9 withheld: %.0f µs of it are the generator's own lateness, while the "+
			"machine paused for up to %.0f µs", *late.P999, paused)
		latency.P999, r.ServiceMicros.P999 = nil, nil
	}
}

// judged is what a load came to, and whose figures those are. rate is what an open loop was asked
// for, h what the machine paused meanwhile.
func judged(rate float64, m *lean.Measured, h Hiccup) *Report {
	r := &Report{AskedRate: rate}
	r.Conditions.Hiccup = h
	r.take(m)
	r.blame()
	return r
}

// suspects are the loads of a measurement whose figures the generator has made, with the reasons.
type suspects []string

// note notes a load if it is one of them.
func (s *suspects) note(what, invalid string) {
	if invalid != "" {
		*s = append(*s, what+": "+invalid)
	}
}

// verdict is an error if there is one.
func (s suspects) verdict() error {
	switch len(s) {
	case 0:
		return nil
	case 1:
		return errors.New("INVALID: " + s[0])
	}
	return fmt.Errorf("INVALID: %s (and %d more)", s[0], len(s)-1)
}

// Verdict is nil for a run with figures that are the node's and hold all thresholds.
func (r *Report) Verdict() error {
	var problems []error
	if r.Failure != "" {
		problems = append(problems, errors.New(r.Failure))
	}
	if r.Invalid != "" {
		problems = append(problems, errors.New("INVALID: "+r.Invalid))
	}
	if r.Unsent > 0 {
		problems = append(problems, fmt.Errorf("fell behind: %d were never sent", r.Unsent))
	}
	for i := range r.Thresholds {
		if j := &r.Thresholds[i]; !j.Held {
			problems = append(problems, fmt.Errorf("threshold broken: %s", j))
		}
	}
	return errors.Join(problems...)
}
