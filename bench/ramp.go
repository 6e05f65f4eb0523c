package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"clobd/bench/lean"
	"clobd/bench/workload"
)

// Ramp says at which rates a node is loaded, step by step, until it no longer keeps up.
type Ramp struct {
	Setting
	What        string        // "book": GET /book; "orders": signed POST /order; "lists": 15 at once
	Start       float64       // requests per second of the first step; of lists: orders
	Factor      float64       // from one step to the next, above 1
	Steps       int           // at most
	Duration    time.Duration // of a step
	Connections int
	Limit       time.Duration // of the corrected p99
}

// validate returns all problems at once, or nil.
func (r *Ramp) validate() error {
	all := Problems{Of: "ramp"}
	bad := all.Add
	bad(r.What != "book" && r.What != "orders" && r.What != "lists",
		"%q is none of book, orders and lists", r.What)
	all.rate("the first rate", r.Start)
	bad(!(r.Factor > 1) || math.IsInf(r.Factor, 1), "the factor is not above 1, or infinite")
	bad(r.Steps < 1, "no steps")
	bad(r.Duration <= 0, "the duration is not positive")
	bad(r.Duration > mostTurn, "the duration is above %v a step", mostTurn)
	if r.What == "book" {
		all.lanes("connections", r.Connections)
	} else {
		all.posters("connections", r.Connections)
	}
	bad(r.Limit <= 0, "the limit is not positive")
	return all.Err()
}

// A step must reach the share kept of its rate, and at most the share slips of its requests may
// fail.
const (
	kept  = 0.97
	slips = 0.001
)

// Step is one rate. Broke says why it was not kept, "" if it was.
type Step struct {
	Paced
	Broke string `json:"broke,omitempty"`
	// Slowest are the slowest orders inside the node, and Hiccup is what the machine paused meanwhile.
	Slowest []Slow `json:"slowest,omitempty"`
	Hiccup  Hiccup `json:"hiccup"`
}

// Ramped is the result. Kept is the highest rate that held, 0 if the first one did not.
type Ramped struct {
	Conditions  Conditions `json:"conditions"`
	What        string     `json:"what"`
	Loop        string     `json:"loop"`
	Seed        uint64     `json:"seed"`
	Connections int        `json:"connections"`
	Seconds     float64    `json:"seconds_per_step"`
	LimitMillis float64    `json:"limit_p99_millis"`
	Steps       []Step     `json:"steps"`
	Kept        float64    `json:"kept_per_second"`
}

// MeasureRamp runs the ramp.
func MeasureRamp(ctx context.Context, r Ramp) (*Ramped, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	out := &Ramped{What: r.What, Loop: "open", Seed: r.Seed, Connections: r.Connections,
		Seconds: r.Duration.Seconds(), LimitMillis: float64(r.Limit.Microseconds()) / 1e3}
	var err error
	out.Conditions, err = r.measure(ctx, func(t *site) error { return r.climb(ctx, t, out) })
	if err != nil {
		return nil, err
	}
	return out, nil
}

// climb runs one step after the other. The first one only warms up.
func (r *Ramp) climb(ctx context.Context, t *site, out *Ramped) error {
	r.Ticker.Plan(r.Steps + 1)
	rate := r.Start
	for step := -1; step < r.Steps; step++ {
		d := r.Duration
		if step < 0 {
			d = min(d, time.Second)
		}
		r.Ticker.Step("%.0f a second", rate)
		v, err := r.volley(ctx, t, step, int(rate*d.Seconds()))
		if err != nil {
			return err
		}
		v.Rate, v.Duration, v.Progress = rate/r.each(), d, r.Ticker.Progress()
		var m *lean.Measured
		began := time.Now()
		h, err := t.watch.during(func() (err error) { m, err = v.Run(ctx); return err })
		if err != nil {
			return err
		}
		paced := paced(rate, d, m)
		paced.Achieved *= r.each() // of lists that were answered well, all orders were
		if step < 0 {
			continue
		}
		t.conditions.Hiccup.add(h)
		paced.blame(h)
		s := Step{Paced: paced, Hiccup: h}
		if s.Slowest, err = t.node.desk.slowest(ctx, began, time.Now()); err != nil {
			return err
		}
		if s.Invalid == "" {
			s.Broke = r.broke(&paced)
		}
		out.Steps = append(out.Steps, s)
		if s.Broke != "" || s.Invalid != "" {
			return nil
		}
		out.Kept = rate
		rate *= r.Factor
	}
	return nil
}

// volley prepares the requests of a step, n of them.
func (r *Ramp) volley(ctx context.Context, t *site, step, n int) (*volley, error) {
	if r.What == "book" {
		return reads(t.node.addr, readPaths["book"]+t.markets[0][0].String(), r.Connections, nil), nil
	}
	spare := contestMarkets
	if r.What == "lists" {
		spare = workload.Traders * workload.ListSize // orders that fill no list are left out
	}
	ops, requests, err := t.orders(ctx, r.Seed+uint64(step+2), n+spare)
	if err != nil {
		return nil, err
	}
	v := newVolley(t.node.addr, r.Connections)
	if r.What == "lists" {
		v.dealLists(ops, requests)
	} else {
		v.dealRound(requests)
	}
	return v, nil
}

// each is how many operations a request has.
func (r *Ramp) each() float64 {
	if r.What == "lists" {
		return workload.ListSize
	}
	return 1
}

// broke says why a step was not kept.
func (r *Ramp) broke(p *Paced) string {
	limit := float64(r.Limit.Microseconds())
	switch {
	case float64(p.Failed) > slips*float64(p.Sent):
		return fmt.Sprintf("%d of %d failed: %s", p.Failed, p.Sent, p.FirstFailure)
	case p.Unsent > 0 || p.Achieved < kept*p.Asked:
		return fmt.Sprintf("it fell behind: %.0f of %.0f a second", p.Achieved, p.Asked)
	case p.CorrectedMicros.P99 > limit:
		return fmt.Sprintf("p99 %.1f ms is above %.1f ms", p.CorrectedMicros.P99/1e3, limit/1e3)
	}
	return ""
}

// Verdict is nil unless the generator, and not the node, ended the ramp.
func (r *Ramped) Verdict() error {
	for i := range r.Steps {
		if s := &r.Steps[i]; s.Invalid != "" {
			return fmt.Errorf("INVALID at %.0f a second: %s; the break point is clobench's own",
				s.Asked, s.Invalid)
		}
	}
	return nil
}

// WriteText prints the table, and where it broke.
func (r *Ramped) WriteText(w io.Writer) {
	what := r.What
	if what == "lists" {
		what = fmt.Sprintf("orders in lists of %d (failed and unsent count lists)", workload.ListSize)
	}
	fmt.Fprintf(w, "%s, open loop, %d connections, %.1f s a step, seed %d: a request is due at a "+
		"constant rate; corrected is from then to its answer, uncorrected from its sending\n", what,
		r.Connections, r.Seconds, r.Seed)
	fmt.Fprintln(w, pacedHead)
	broke := "no step broke"
	for i := range r.Steps {
		fmt.Fprintf(w, "%s", &r.Steps[i].Paced)
		if s := r.Steps[i].Broke; s != "" {
			fmt.Fprintf(w, "  BREAKS")
			broke = fmt.Sprintf("%.0f a second broke: %s", r.Steps[i].Asked, s)
		}
		if r.Steps[i].Invalid != "" {
			fmt.Fprintf(w, "  INVALID")
		}
		if g := r.Steps[i].Generator; g != nil {
			fmt.Fprintf(w, "  generator %.1f µs CPU an operation, thread %.0f%%, all %.0f%% of the machine",
				g.CPUMicros, g.Thread*100, g.Share*100)
		}
		fmt.Fprintln(w)
		writeSlowest(w, r.Steps[i].Slowest, &r.Steps[i].Hiccup)
	}
	if err := r.Verdict(); err != nil {
		broke = err.Error()
	}
	fmt.Fprintf(w, "  kept %.0f a second; %s\n", r.Kept, broke)
	r.Conditions.WriteText(w)
}
