package main

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/trace"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestQuantiles: a quantile is that of the samples since the look before, and nothing if these are
// too few.
func TestQuantiles(t *testing.T) {
	bounds := []float64{0.1, 0.2, 0.4}
	before := &quantiles{bounds, []uint64{1000, 1000, 1000}, 1000}
	for _, c := range []struct {
		now  quantiles
		want float64
		some bool
	}{
		{quantiles{bounds, []uint64{1099, 1099, 1099}, 1099}, 0, false},
		{quantiles{bounds, []uint64{1100, 1100, 1100}, 1100}, 0.099, true},
		{quantiles{bounds, []uint64{1198, 1199, 1200}, 1200}, 0.1, true},
		{quantiles{bounds, []uint64{1196, 1200, 1200}, 1200}, 0.15, true},
		{quantiles{bounds, []uint64{1000, 1000, 1200}, 1200}, 0.398, true},
		{quantiles{bounds, []uint64{1000, 1000, 1190}, 1200}, 0.4, true},
	} {
		got, some := c.now.since(before, 0.99)
		if math.Abs(got-c.want) > 1e-9 || some != c.some {
			t.Errorf("%v: %v, %v, want %v, %v", c.now.below, got, some, c.want, c.some)
		}
	}
	first := quantiles{bounds, []uint64{0, 100, 100}, 100}
	if got, some := first.since(&quantiles{}, 0.99); math.Abs(got-0.199) > 1e-9 || !some {
		t.Errorf("at the first look: %v, %v", got, some)
	}
}

// TestBlackBox: slow orders leave a trace, one a minute at most, and few files. Fast or few orders
// leave none.
func TestBlackBox(t *testing.T) {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "clobd_http_request_seconds",
		Buckets: []float64{0.1, 0.2, 0.4}}, []string{"route"})
	n := &node{settings: &settings{}, doorMetrics: prometheus.NewRegistry()}
	n.serveCommand = &serveCommand{Data: t.TempDir(), TraceSlow: 100 * time.Millisecond}
	n.log = slog.New(slog.DiscardHandler)
	n.doorMetrics.MustRegister(seconds)
	b := blackBox{node: n, recorder: trace.NewFlightRecorder(trace.FlightRecorderConfig{})}
	if err := b.recorder.Start(); err != nil {
		t.Fatal(err)
	}
	defer b.recorder.Stop()
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	look := func(route string, count int, took float64, files int) {
		t.Helper()
		for range count {
			seconds.WithLabelValues(route).Observe(took)
		}
		if err := b.look(now); err != nil {
			t.Fatal(err)
		}
		found, err := filepath.Glob(filepath.Join(n.Data, "traces", "*"))
		if err != nil || len(found) != files {
			t.Errorf("%d files, want %d: %v, %v", len(found), files, found, err)
		}
	}
	look("post_order", boxLeast, 0.05, 0)
	look("post_order", boxLeast-1, 0.3, 0)
	look("get_book", boxLeast, 0.3, 0)
	look("post_order", boxLeast, 0.3, 1)
	half := filepath.Join(n.Data, "traces", "part") // of a process that was killed
	if err := os.WriteFile(half, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(boxPause - time.Second)
	look("post_order", boxLeast, 0.3, 2)
	for n := range 2 * boxFiles {
		now = now.Add(boxPause)
		look("post_order", boxLeast, 0.3, min(n+2, boxFiles))
	}
	newest := filepath.Join(n.Data, "traces", now.Format("20060102T150405Z")+".trace")
	text, err := os.ReadFile(newest)
	if err != nil || len(text) < 1000 || !strings.HasPrefix(string(text), "go 1.") {
		t.Errorf("%d bytes, %.16q, %v", len(text), text, err)
	}
}

// TestCapped: what is written beyond the bound is an error, and never reaches the file.
func TestCapped(t *testing.T) {
	var file strings.Builder
	c := capped{&file, 10}
	for _, text := range []string{"12345", "67890", ""} {
		if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	if _, err := c.Write([]byte("1")); err == nil || file.String() != "1234567890" {
		t.Errorf("%q, %v", file.String(), err)
	}
}

// TestTraceSlow: a node that is asked to keep traces writes one when its orders are slower.
func TestTraceSlow(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: the node looks at its orders every 5 s")
	}
	w := newWorldOf(t, 1, 1, "--trace-slow", "1us")
	x := w.traders[0]
	for range 2 * boxLeast {
		if status, text, err := x.post(x.draw(t)); err != nil || status != 200 {
			t.Fatalf("%d %s %v", status, text, err)
		}
	}
	w.node.awaitLog(t, "orders were slow")
	found, err := filepath.Glob(filepath.Join(w.node.data, "traces", "*.trace"))
	if err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	w.node.stop(t)
}
