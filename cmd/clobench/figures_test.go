package main

import (
	"strings"
	"testing"

	"clobd/bench"
)

// TestRamp raises the rate over what any node keeps: the table shows where it broke.
func TestRamp(t *testing.T) {
	var r bench.Ramped
	out := measure(t, &r, "ramp", "book", "--start", "200", "--factor", "5000", "--steps", "3",
		"--duration", "200ms", "--connections", "4", "--limit", "1m", "--dir", t.TempDir())
	if len(r.Steps) != 2 || r.Kept != 200 || r.Steps[0].Broke != "" || r.Steps[1].Broke == "" {
		t.Fatalf("steps %+v, kept %v", r.Steps, r.Kept)
	}
	if !strings.Contains(out, "BREAKS") || !strings.Contains(out, "uncorrected") || r.Loop != "open" {
		t.Errorf("printed\n%s", out)
	}
	if s := r.Steps[1]; s.CorrectedMicros.P50 <= s.ServiceMicros.P50 {
		t.Errorf("behind its rate it waits: %+v", s)
	}
	var orders bench.Ramped
	measure(t, &orders, "ramp", "orders", "--start", "50", "--steps", "1", "--duration", "200ms",
		"--connections", "2", "--limit", "1m", "--dir", t.TempDir())
	if len(orders.Steps) != 1 || orders.Steps[0].Failed != 0 || orders.Steps[0].Sent != 10 {
		t.Errorf("orders: %+v", orders.Steps)
	}
}

// TestFlood reads beside orders for a moment.
func TestFlood(t *testing.T) {
	var r bench.Flooded
	out := measure(t, &r, "flood", "--rounds", "2", "--duration", "300ms", "--rate", "100",
		"--readers", "2", "--connections", "2", "--dir", t.TempDir())
	if len(r.Idle) != 2 || len(r.Busy) != 2 || r.Orders[0] <= 0 || r.Idle[0].Sent != 30 ||
		r.Nice < 10 || r.Corrected <= 0 || r.Uncorrected <= 0 || len(r.CPUMicros) != 2 ||
		r.CPUMicros[0] <= 0 || !strings.Contains(out, "idle") {
		t.Errorf("%+v\n%s", r, out)
	}
	var lists bench.Flooded
	out = measure(t, &lists, "flood", "--rounds", "1", "--duration", "300ms", "--rate", "100",
		"--readers", "2", "--connections", "2", "--lists", "--dir", t.TempDir())
	if !lists.Lists || lists.Orders[0] <= 0 || !strings.Contains(out, "in lists of 15") {
		t.Errorf("%+v\n%s", lists, out)
	}
}

// TestStall stops the matcher and the disk of a node for a moment: it is read on.
func TestStall(t *testing.T) {
	var r bench.Stalled
	measure(t, &r, "stall", "--rounds", "1", "--length", "300ms", "--rate", "100", "--readers", "2",
		"--writers", "2")
	if len(r.Parts) != 2 || r.Parts[0].What != "matcher" || r.Parts[1].What != "disk" {
		t.Fatalf("%+v", r)
	}
	for _, p := range r.Parts {
		if len(p.During) != 1 || p.During[0].Sent != 30 || p.Before[0].Sent != 30 || p.Corrected <= 0 {
			t.Errorf("%+v", p)
		}
	}
}

// TestPages reads pages of a short history.
func TestPages(t *testing.T) {
	var r bench.Paged
	measure(t, &r, "pages", "--trades", "3000", "--rounds", "2", "--reads", "20", "--dir", t.TempDir())
	if r.Trades < 3000 || r.Orders < 6000 || len(r.Lists) != 4 {
		t.Fatalf("%+v", r)
	}
	for _, l := range r.Lists {
		if len(l.Rounds) != 2 || l.Pages == 0 || l.Rounds[0].P90 <= 0 {
			t.Errorf("%+v", l)
		}
	}
}

// TestCompareMore runs the comparisons of small reads and of lists of orders for a moment.
func TestCompareMore(t *testing.T) {
	for _, what := range []string{"midpoint", "price", "batch"} {
		var c bench.Compared
		out := measure(t, &c, "compare", what, "--rounds", "1", "--duration", "200ms",
			"--connections", "4", "--dir", t.TempDir())
		if c.Ratio <= 0 || len(c.Node.Rates) != 1 || c.Checked == "" || !strings.Contains(out, what) {
			t.Errorf("%s: %+v", what, c)
		}
	}
}
