package bench

import (
	"strings"
	"testing"
)

func TestBlame(t *testing.T) {
	report := func(late, took Latency, thread float64) *Report {
		return &Report{CorrectedMicros: &took, Generator: &Generator{LateMicros: late, Thread: thread}}
	}
	for _, c := range []struct {
		name string
		r    *Report
		says string
	}{
		{"a generator that wakes up late as all do", report(Latency{P50: 60, P99: 99},
			Latency{P50: 70, P99: 120}, 0.5), ""},
		{"a node that is slow", report(Latency{P50: 60, P99: 400}, Latency{P50: 3000, P99: 300_000},
			0.89), ""},
		{"a thread without rest", report(Latency{}, Latency{P50: 3000}, 0.9), "more --processes"},
		{"a generator that stood still", report(Latency{P50: 60, P90: 90, P99: 250_000},
			Latency{P50: 500, P90: 900, P99: 260_000}, 0.1), "p99 of its lateness is 250000 µs"},
		{"the same in a thousandth of the requests", report(Latency{P999: new(250_000.0)},
			Latency{P999: new(260_000.0)}, 0.1), "p99.9 of its lateness"},
		{"a generator that is half of the median", report(Latency{P50: 151}, Latency{P50: 300}, 0.1),
			"p50 of its lateness"},
	} {
		c.r.blame()
		if (c.says == "") != (c.r.Invalid == "") || !strings.Contains(c.r.Invalid, c.says) {
			t.Errorf("%s: %q", c.name, c.r.Invalid)
		}
		if (c.r.Verdict() == nil) != (c.says == "") {
			t.Errorf("%s: verdict %v", c.name, c.r.Verdict())
		}
	}
	closed := &Report{ServiceMicros: Latency{P50: 5000}, Generator: &Generator{}}
	if closed.blame(); closed.Invalid != "" {
		t.Errorf("a closed loop: %s", closed.Invalid)
	}
}
