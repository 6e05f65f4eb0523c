package diff

import (
	"math"
	"strings"
	"testing"
	"time"

	"clobd/bench"
)

// TestKnownValues holds the test against the exact tables of Mann and Whitney's U.
func TestKnownValues(t *testing.T) {
	g := gauges()[0]
	for _, c := range []struct {
		a, b    []float64
		p       float64
		verdict string
	}{
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 2. / 20, Same},
		{[]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 2. / 70, Worse},
		{[]float64{5, 6, 7, 8}, []float64{1, 2, 3, 4}, 2. / 70, Better},
		{[]float64{78, 64, 75, 45, 82}, []float64{110, 70, 53, 51}, 2 * 57. / 126, Same}, // U = 9
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8}, []float64{9, 10, 11, 12, 13, 14, 15, 16}, 2. / 12870, Worse},
		{[]float64{7, 7, 7}, []float64{7, 7, 7}, 1, Same},
	} {
		got, some := g.compare(turnsWith(c.a), turnsWith(c.b), false)
		if !some || math.Abs(got.P-c.p) > 1e-9 || got.Verdict != c.verdict ||
			got.Test != Unpaired {
			t.Errorf("%v and %v: p %v, %s; want %v, %s", c.a, c.b, got.P, got.Verdict, c.p, c.verdict)
		}
	}
	if _, some := g.compare(turnsWith(nil), turnsWith([]float64{1}), false); some {
		t.Error("compared with a side that does not know the figure")
	}
}

// turnsWith are turns of the given CPU times.
func turnsWith(cpu []float64) (all []turn) {
	for i, c := range cpu {
		all = append(all, turn{Part: bench.Part{CPUMicros: &c}, round: i})
	}
	return all
}

// run is a report whose turns took the given CPU times.
func run(start int64, cpu ...float64) *bench.Report {
	r := &bench.Report{Workload: "canonical", Level: "L3", AskedSeconds: float64(len(cpu)),
		Conditions: bench.Conditions{Start: time.Unix(start, 0), CPU: "x", Cores: 2}}
	for i, c := range cpu {
		r.Turns = append(r.Turns, bench.Part{Seconds: 1, Rate: 1000 + float64(i), CPUMicros: &c,
			P50: 10, P99: 20})
	}
	return r
}

func TestReports(t *testing.T) {
	a := run(1, 50, 51, 52, 50.5, 51.5, 49.5)
	b := run(1, 55, 56.1, 57.2, 55.5, 56.6, 54.5)
	one := []*bench.Report{a}
	same, err := Reports(one, one, false)
	if err != nil || same.Verdict != Same || same.Decides != cpuName || len(same.Gauges) != 4 {
		t.Fatalf("a run and itself: %+v, %v", same, err)
	}
	worse, err := Reports(one, []*bench.Report{b}, false)
	if err != nil || worse.Verdict != Worse || len(worse.Warnings) != 0 {
		t.Fatalf("10 %% slower: %+v, %v", worse, err)
	}
	var text strings.Builder
	worse.WriteText(&text)
	for _, want := range []string{"n=6+6", "+10.0%", "B is worse: CPU µs/op +10.0%, medians 50.75 ± 2% and 55.80 ± 3% (Mann-Whitney",
		"~ no difference found"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
	better, err := Reports([]*bench.Report{b}, one, false)
	if err != nil || better.Verdict != Better {
		t.Errorf("the other way round: %+v, %v", better, err)
	}
	// Without CPU times the rate decides: more is better.
	for _, r := range []*bench.Report{a, b} {
		for i := range r.Turns {
			r.Turns[i].CPUMicros = nil
		}
	}
	for i := range b.Turns {
		b.Turns[i].Rate *= 2
	}
	if rate, err := Reports(one, []*bench.Report{b}, false); err != nil || rate.Decides != rateName ||
		rate.Verdict != Better {
		t.Errorf("twice the rate: %+v, %v", rate, err)
	}
}

func TestNotAlike(t *testing.T) {
	a, b := run(1, 1, 2), run(2, 1, 2)
	out, err := Reports([]*bench.Report{a}, []*bench.Report{b}, false)
	if err != nil || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "take turns") {
		t.Errorf("runs apart: %+v, %v", out, err)
	}
	b.Seed = 7
	if out, err = Reports([]*bench.Report{a}, []*bench.Report{b}, false); err != nil ||
		!strings.Contains(out.Warnings[0], `the seed differs: "0" and "7"`) {
		t.Errorf("another seed: %+v, %v", out, err)
	}
	b.Level, b.Conditions.CPU = "L1", "y"
	if _, err = Reports([]*bench.Report{a}, []*bench.Report{b}, false); err == nil ||
		!strings.Contains(err.Error(), "the level differs") ||
		!strings.Contains(err.Error(), "the CPU differs") {
		t.Errorf("other level and machine: %v", err)
	}
	if out, err = Reports([]*bench.Report{a}, []*bench.Report{b}, true); err != nil ||
		len(out.Warnings) != 4 {
		t.Errorf("forced: %+v, %v", out, err)
	}
	b.Failure = "replay: digests differ"
	if _, err = Reports([]*bench.Report{a}, []*bench.Report{b}, true); err == nil {
		t.Error("compared with a run that has no figure")
	}
}
