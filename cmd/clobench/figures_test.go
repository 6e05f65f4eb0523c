package main

import (
	"strings"
	"testing"

	"clobd/bench"
)

// TestRamp raises the rate over what any node keeps: the table shows where it broke.
func TestRamp(t *testing.T) {
	var r bench.Ramped
	steady := func() bool { return len(r.Steps) > 0 && r.Steps[0].Broke == "" }
	out := measure(t, &r, steady, "ramp", "book", "--start", "200", "--factor", "5000", "--steps", "3",
		"--duration", "200ms", "--connections", "4", "--limit", "1m", "--dir", t.TempDir())
	if len(r.Steps) != 2 || r.Kept != 200 || r.Steps[1].Broke == "" {
		t.Fatalf("steps %+v, kept %v", r.Steps, r.Kept)
	}
	if !strings.Contains(out, "BREAKS") || !strings.Contains(out, "uncorrected") || r.Loop != "open" {
		t.Errorf("printed\n%s", out)
	}
	if s := r.Steps[1]; s.CorrectedMicros.P50 <= s.ServiceMicros.P50 {
		t.Errorf("behind its rate it waits: %+v", s)
	}
	var orders bench.Ramped
	measure(t, &orders, func() bool {
		return len(orders.Steps) == 1 && orders.Steps[0].Failed == 0 && orders.Steps[0].Sent == 10
	}, "ramp", "orders", "--start", "50", "--steps", "1", "--duration", "200ms", "--connections", "2",
		"--limit", "1m", "--dir", t.TempDir())
}

// TestFlood reads beside orders for a moment.
func TestFlood(t *testing.T) {
	var r bench.Flooded
	steady := func() bool { return r.Orders[0] > 0 && r.Idle[0].Sent == 30 && r.CPUMicros[0] > 0 }
	out := measure(t, &r, steady, "flood", "--rounds", "2", "--duration", "300ms", "--rate", "100",
		"--readers", "2", "--connections", "2", "--dir", t.TempDir())
	if len(r.Idle) != 2 || len(r.Busy) != 2 || r.Nice < 10 || r.Corrected <= 0 ||
		r.Uncorrected <= 0 || len(r.CPUMicros) != 2 || !strings.Contains(out, "idle") {
		t.Errorf("%+v\n%s", r, out)
	}
	var lists bench.Flooded
	out = measure(t, &lists, func() bool { return lists.Orders[0] > 0 }, "flood", "--rounds", "1",
		"--duration", "300ms", "--rate", "100", "--readers", "2", "--connections", "2", "--lists", "--dir",
		t.TempDir())
	if !lists.Lists || !strings.Contains(out, "in lists of 15") {
		t.Errorf("%+v\n%s", lists, out)
	}
}

// TestStall stops the matcher and the disk of a node for a moment: it is read on.
func TestStall(t *testing.T) {
	var r bench.Stalled
	steady := func() bool {
		for _, p := range r.Parts {
			if p.Before[0].Sent != 30 || p.During[0].Sent != 30 {
				return false
			}
		}
		return true
	}
	measure(t, &r, steady, "stall", "--rounds", "1", "--length", "300ms", "--rate", "100", "--readers", "2",
		"--writers", "2")
	if len(r.Parts) != 2 || r.Parts[0].What != "matcher" || r.Parts[1].What != "disk" {
		t.Fatalf("%+v", r)
	}
	for _, p := range r.Parts {
		if len(p.During) != 1 || p.Corrected <= 0 {
			t.Errorf("%+v", p)
		}
	}
}

// always is for a report in which nothing hangs on the machine's speed.
func always() bool { return true }

// TestPages reads pages of a short history.
func TestPages(t *testing.T) {
	var r bench.Paged
	measure(t, &r, always, "pages", "--trades", "3000", "--rounds", "2", "--reads", "20", "--dir", t.TempDir())
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
		out := measure(t, &c, func() bool { return c.Ratio > 0 }, "compare", what, "--rounds", "1",
			"--duration", "200ms", "--connections", "4", "--dir", t.TempDir())
		if len(c.Node.Rates) != 1 || c.Checked == "" || !strings.Contains(out, what) {
			t.Errorf("%s: %+v", what, c)
		}
	}
}
