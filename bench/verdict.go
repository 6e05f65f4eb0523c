package bench

import (
	"errors"
	"fmt"
)

// The bounds beyond which a figure is the generator's and not the node's. DESIGN.md says why.
const (
	lateFloor = 100.0 // µs: what a thread takes to wake up
	latePart  = 0.5   // of the latency at the same percentile
	wholeOf   = 0.9   // of the time of the threads that send
)

// blame sets Invalid if the generator, and not the node, has made the figures of the report.
func (r *Report) blame() {
	g := r.Generator
	if g == nil {
		return
	}
	if g.Thread >= wholeOf {
		r.Invalid = fmt.Sprintf("the generator was at its limit: its threads were on a CPU for %.0f%% "+
			"of the time (the bound is %.0f%%); use more --processes", g.Thread*100, wholeOf*100)
		return
	}
	latency := &r.ServiceMicros
	if r.CorrectedMicros != nil {
		latency = r.CorrectedMicros
	}
	late := &g.LateMicros
	for _, at := range []struct {
		name       string
		late, took float64
	}{{"p50", late.P50, latency.P50}, {"p90", late.P90, latency.P90}, {"p99", late.P99, latency.P99},
		{"p99.9", orNone(late.P999), orNone(latency.P999)}} {
		if at.late > lateFloor && at.late > latePart*at.took {
			r.Invalid = fmt.Sprintf("the generator was late itself: %s of its lateness is %.0f µs, of the "+
				"latency %.0f µs; the machine was busy or stood still, or the rate needs more --processes",
				at.name, at.late, at.took)
			return
		}
	}
}

func orNone(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
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
	for i := range r.Thresholds {
		if j := &r.Thresholds[i]; !j.Held {
			problems = append(problems, fmt.Errorf("threshold broken: %s", j))
		}
	}
	return errors.Join(problems...)
}
