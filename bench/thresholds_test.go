package bench

import (
	"strings"
	"testing"
)

func TestThresholds(t *testing.T) {
	rules, err := ParseThresholds(strings.NewReader(`
# what we promise
p99 <= 20ms
corrected.p99 <= 40ms   # from the due instant
errors == 0
rate >= 5000
cpu < 90us
generator.share <= 50%
p999 <= 30ms
`))
	if err != nil || len(rules) != 7 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	good := &Report{Rate: 5000, CPUMicros: new(89.9), ServiceMicros: Latency{P99: 20_000,
		P999: new(29_000.0), Max: 30_000}, CorrectedMicros: &Latency{P99: 39_999, Max: 40_000},
		Generator: &Generator{Share: 0.5}}
	good.judge(rules)
	if err := good.Verdict(); err != nil || len(good.Thresholds) != 7 {
		t.Errorf("a good run: %v, %+v", err, good.Thresholds)
	}
	nothing := &Report{Generator: &Generator{}}
	nothing.judge(rules)
	for _, j := range nothing.Thresholds {
		if strings.HasPrefix(j.Rule, "p99") || strings.HasPrefix(j.Rule, "generator") {
			if j.Held || !j.Missing {
				t.Errorf("a run without samples: %+v", j)
			}
		}
	}
	bad := &Report{Rate: 4999.9, CPUMicros: new(90.0), ServiceMicros: Latency{P99: 20_001,
		Max: 20_001}, Errors: 1}
	bad.judge(rules)
	err = bad.Verdict()
	for _, says := range []string{
		"threshold broken: p99 <= 20ms: had 20001.0 µs",
		"corrected.p99 <= 40ms: the run has no such figure", "errors == 0: had 1",
		"rate >= 5000", "cpu < 90us: had 90.0 µs", "generator.share <= 50%: the run has no such figure",
		"p999 <= 30ms: the run has no such figure",
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("does not say %q: %v", says, err)
		}
	}
}

func TestBadThresholds(t *testing.T) {
	for text, says := range map[string]string{
		"":                       "there is no rule",
		"p99 <= 20ms\np98 <= 1s": `line 2: no figure is called "p98": choose one of busy corrected.max`,
		"p99 << 20ms":            `line 1: no operator is called "<<"`,
		"p99 <= 20":              `line 1: limit "20" of p99: want a time`,
		"rate >= fast":           `line 1: limit "fast" of rate: want a number`,
		"rate >= -1":             `line 1: limit "-1" of rate`,
		"generator.share <= 0.5": "want a share, as 50%",
		"\n\nrate>=5":            `line 3: "rate>=5": want FIGURE OPERATOR LIMIT`,
		"x.p99 <= 1s":            "no figure is called",
	} {
		if _, err := ParseThresholds(strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
	}
}
