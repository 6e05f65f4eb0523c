package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clobd/bench"
	"clobd/bench/fanout"
	"clobd/scripts/setting"
)

// TestRamp raises the rate over what any node keeps: the table shows where it broke.
func TestRamp(t *testing.T) {
	var r bench.Ramped
	steady := func() bool { return allSent(t, r.Steps) && r.Steps[0].Broke == "" }
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
	if testing.Short() {
		return // the same way, with orders
	}
	var orders bench.Ramped
	measure(t, &orders, func() bool { return allSent(t, orders.Steps) }, "ramp", "orders", "--start",
		"50", "--steps", "1", "--duration", "200ms", "--connections", "2", "--limit", "1m", "--dir",
		t.TempDir())
	if s := orders.Steps; len(s) != 1 || s[0].Sent != int64(50*orders.Seconds+0.5) {
		t.Errorf("50 a second for %v s: %+v", orders.Seconds, s)
	}
}

// allSent reports whether all requests of the first step were sent and answered in time. A failure
// for any other reason ends the test.
func allSent(t *testing.T, steps []bench.Step) bool {
	t.Helper()
	if len(steps) == 0 {
		t.Fatal("there is no step")
	}
	s := &steps[0]
	if s.Failed > 0 && slowness(s.FirstFailure) == "" {
		t.Fatalf("%d of %d failed: %s", s.Failed, s.Sent, s.FirstFailure)
	}
	return s.Failed == 0 && s.Unsent == 0
}

// TestFlood reads beside orders for a moment.
func TestFlood(t *testing.T) {
	setting.Full(t, "a node is flooded for seconds")
	var r bench.Flooded
	steady := func() bool {
		return r.Orders[0] > 0 && r.Idle[0].Unsent == 0 && r.CPUMicros[0] > 0
	}
	const rounds = 2
	out := measure(t, &r, steady, "flood", "--rounds", fmt.Sprint(rounds), "--duration", "300ms",
		"--rate", "100", "--readers", "2", "--connections", "2", "--dir", t.TempDir())
	if len(r.Idle) != rounds || r.Idle[0].Sent != int64(100*r.Seconds+0.5) ||
		len(r.Busy) != rounds || r.Nice < 10 || r.Corrected <= 0 || r.Uncorrected <= 0 ||
		len(r.CPUMicros) != rounds || !strings.Contains(out, "idle") {
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

// TestOverload asks a node for more than it can do, for a moment: what is refused is in no journal,
// and what is accepted is.
func TestOverload(t *testing.T) {
	setting.Full(t, "it drives a node beyond its capacity for seconds")
	var r bench.Overloaded
	out := judged(t, &r, func() bool { return r.Steps[0].Good > 0 }, "overload", "--rounds", "1",
		"--duration", "1s", "--factors", "0.5,2", "--connections", "256", "--dir", t.TempDir())
	if len(r.Steps) != 2 || r.Capacity[0] <= 0 || r.Steps[1].Asked < 3*r.Steps[0].Asked ||
		r.Failure != "" || len(r.Healed) != 1 || r.Book[1][0].P50 <= 0 || r.Cancel[1][0].P50 <= 0 ||
		!strings.Contains(out, "accepted orders and no other") ||
		(len(r.Invalid) > 0) != strings.Contains(out, "error: INVALID: ") {
		t.Errorf("%+v\n%s", r, out)
	}
}

// TestStreams tells some subscribers of orders for a moment: each message comes, and none is late
// for ever.
func TestStreams(t *testing.T) {
	var r bench.Streamed
	// Each order changes a book: some share a message, more of them on a busy machine, and trades have
	// messages of their own.
	steady := func() bool {
		return r.Beside[0].Failed == 0 && r.Beside[0].Unsent == 0 && r.Messages[0] >= 60
	}
	out := measure(t, &r, steady, "streams", "--rounds", "1", "--duration", "500ms", "--rate", "100",
		"--burst", "2", "--connections", "2", "--subscribers", "3", "--markets", "2", "--dir",
		t.TempDir())
	if len(r.Alone) != 1 || len(r.Beside) != 1 || r.Gaps != 0 || r.Cuts != 0 ||
		r.Delivered[0].P50 <= r.Answered[0].P50 || r.Last[0].P50 < r.Delivered[0].P50 ||
		r.Bytes[0] < 100*r.Messages[0] || !strings.Contains(out, "3 subscribers") {
		t.Errorf("%+v\n%s", r, out)
	}
}

// TestStall stops the matcher and the disk of a node for a moment, and reads go on.
func TestStall(t *testing.T) {
	setting.Full(t, "a node stands still in parts")
	var r bench.Stalled
	steady := func() bool {
		for _, p := range r.Parts {
			if p.Before[0].Unsent > 0 || p.During[0].Unsent > 0 {
				return false
			}
		}
		return true
	}
	judged(t, &r, steady, "stall", "--rounds", "1", "--length", "300ms", "--rate", "100", "--readers", "2",
		"--writers", "2")
	if len(r.Parts) != 2 || r.Parts[0].What != "matcher" || r.Parts[1].What != "disk" {
		t.Fatalf("%+v", r)
	}
	for _, p := range r.Parts {
		if all := int64(100*r.Seconds + 0.5); len(p.During) != 1 || p.Corrected <= 0 ||
			p.Before[0].Sent != all || p.During[0].Sent != all {
			t.Errorf("%+v", p)
		}
	}
}

// always accepts a report that does not depend on the machine's speed.
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
	setting.Full(t, "TestCompare stays")
	for _, what := range []string{"midpoint", "price", "batch"} {
		var c bench.Compared
		out := judged(t, &c, func() bool { return c.Ratio > 0 }, "compare", what, "--rounds", "1",
			"--duration", "200ms", "--connections", "4", "--dir", t.TempDir())
		if len(c.Node.Rates) != 1 || c.Checked == "" || !strings.Contains(out, what) {
			t.Errorf("%s: %+v", what, c)
		}
	}
}

// TestCompareEntry: the sockets tell how late the load was itself, in turns and at equal rate, and
// the HTTP side does, too.
func TestCompareEntry(t *testing.T) {
	setting.Full(t, "TestCompare stays")
	var c bench.Compared
	out := judged(t, &c, func() bool { return c.Ratio > 0 }, "compare", "entry", "--rounds", "1",
		"--duration", "200ms", "--connections", "4", "--dir", t.TempDir())
	unsent := c.Paced != nil && c.Paced.Sockets[0].Unsent+c.Paced.HTTP[0].Unsent > 0
	if unsent != strings.Contains(out, "fell behind: ") {
		t.Errorf("%+v\n%s", c.Paced, out)
	}
	if len(c.Node.LoadMicros) != 1 || c.Node.LoadMicros[0] <= 0 ||
		len(c.Baseline.LoadMicros) != 1 || c.Paced == nil || len(c.Paced.Sockets) != 1 ||
		len(c.Paced.HTTP) != 1 {
		t.Fatalf("%+v\n%s", c, out)
	}
	for _, p := range []bench.Paced{c.Paced.Sockets[0], c.Paced.HTTP[0]} {
		if g := p.Generator; g == nil || g.LateMicros.Max <= 0 || g.Thread <= 0 || g.Share <= 0 {
			t.Errorf("%+v", p)
		}
	}
}

// TestCompareFanout sends a few bursts from each side. The stream of each subscriber must have no
// gap, and the report must name the sides.
func TestCompareFanout(t *testing.T) {
	setting.Full(t, "three servers take turns")
	var r fanout.Measured
	out := measure(t, &r, always, "compare", "fanout", "--rounds", "1", "--duration", "200ms",
		"--cases", "3x2@50", "--idle", "20")
	if len(r.Cases) != 1 || r.Verdict() != nil || !strings.HasSuffix(r.Peer, " v0.40.1") || r.Nice < 10 {
		t.Fatalf("%+v\n%s", r, out)
	}
	for _, c := range r.Cases {
		for i, name := range []string{"clobd", "bare", "centrifuge"} {
			s := c.Sides[i]
			most := float64(c.Subscribers*c.Burst) * c.Rate
			if s.Name != name || len(s.CPUMicros) != 1 || s.CPUMicros[0] <= 0 || s.Last[0].P50 <= 0 ||
				s.Gaps+s.Cuts != 0 || s.Messages[0] < most/10 || s.Messages[0] > 1.3*most ||
				s.Bytes[0] < float64(c.MessageBytes-10)*s.Messages[0] || c.MessageBytes < 500 {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if c.OfBare.Median <= 0 || c.OfPeer.Median <= 0 || c.Sides[0].Made[0] <= 0 {
			t.Errorf("%+v", c)
		}
	}
	if r.Idle == nil || len(r.Idle.Sides) != 3 || len(r.Idle.Sides[0].RSS) != 1 ||
		r.Idle.Sides[0].Heap[0] <= 0 || !strings.Contains(out, "20 idle subscribers") {
		t.Errorf("%+v\n%s", r.Idle, out)
	}
}

// TestFanoutProgress: a fan-out says which side of which case runs, and what came of it.
func TestFanoutProgress(t *testing.T) {
	setting.Full(t, "three servers take turns")
	var out strings.Builder
	ticker := &bench.Ticker{To: &out, Terminal: true}
	if _, err := fanout.Measure(t.Context(), fanout.Plan{Setting: bench.Setting{Ticker: ticker,
		Self: filepath.Join(programs, "clobench")}, Rounds: 1, Duration: 100 * time.Millisecond,
		Cases: []fanout.Case{{Subscribers: 1, Burst: 1, Rate: 40}}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\rstep 1 of 4, 1x1@40, what the messages are\x1b[K",
		"\rstep 2 of 4, 1x1@40 of clobd: 40 messages a second", "\rstep 3 of 4, 1x1@40 of bare: 40 m",
		"\rstep 4 of 4, 1x1@40 of centrifuge: 40 m"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "/s\x1b[K"); n < 3 {
		t.Errorf("%d turns tell their rate: %q", n, out.String())
	}
}

// TestCompareFanoutTooFast asks for more than a server carries: there is no verdict then.
func TestCompareFanoutTooFast(t *testing.T) {
	setting.Full(t, "the sides work for seconds")
	ctx, stop := context.WithDeadline(t.Context(), deadline(t))
	defer stop()
	out, err := exec.CommandContext(ctx, filepath.Join(programs, "clobench"), "compare", "fanout",
		"--rounds", "1", "--duration", "5ms", "--cases", "6x200@40000", "--idle", "0").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "INVALID: ") ||
		strings.Contains(string(out), "goal") {
		t.Errorf("%v\n%s", err, out)
	}
}
