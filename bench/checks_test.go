package bench

import (
	"strings"
	"testing"
	"time"

	"clobd/bench/workload"
	"clobd/engine"
)

func TestExecuteChecksWhatItMeasured(t *testing.T) {
	for _, level := range []string{"L0", "L1", "L2"} {
		w, err := workload.Named("canonical")
		if err != nil {
			t.Fatal(err)
		}
		report := executeUntil(t, Run{Workload: w, Level: level, Seed: 5, Connections: 8,
			Duration: 100 * time.Millisecond, Self: self(t), Dir: t.TempDir(), prefill: 500},
			func(r *Report) bool { return r.Operations > 0 })
		if report.Checked == "" {
			t.Errorf("%s: nothing was checked", level)
		}
		var text strings.Builder
		report.WriteText(&text)
		for _, want := range []string{"seed 5", "conditions", "digest " + report.Digest} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s: the report does not say %q:\n%s", level, want, &text)
			}
		}
	}
}

// TestCheckFails shows that a run which ends otherwise has no figure.
func TestCheckFails(t *testing.T) {
	exp := workload.Expected{Fills: 2, Volume: 3 * engine.Unit, Live: 1}
	good := workload.Tally{Fills: 2, Volume: 3 * engine.Unit, Live: 1}
	if err := good.Check(exp); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []workload.Tally{
		{Fills: 1, Volume: 3 * engine.Unit, Live: 1},
		{Fills: 2, Volume: 2 * engine.Unit, Live: 1},
		{Fills: 2, Volume: 3 * engine.Unit, Live: 2},
		{Fills: 2, Volume: 3 * engine.Unit, Live: 1, Rejected: 1},
	} {
		if bad.Check(exp) == nil {
			t.Errorf("%+v passed for %+v", bad, exp)
		}
	}
	report := Report{Failure: "lost an order", Rate: 1e6}
	var text strings.Builder
	report.WriteText(&text)
	if !strings.Contains(text.String(), "NO FIGURE: lost an order") ||
		strings.Contains(text.String(), "1000000") {
		t.Errorf("a failed run prints a figure: %s", &text)
	}
}

func TestParseDecimal(t *testing.T) {
	for _, c := range []struct {
		text   string
		digits int
		want   int64
	}{{"0.51", 4, 5100}, {"10", 6, 10_000_000}, {".5", 4, 5000}, {"0.0001", 4, 1}} {
		if got, err := parseDecimal(c.text, c.digits); err != nil || got != c.want {
			t.Errorf("%q: got %d, %v, want %d", c.text, got, err, c.want)
		}
	}
	for _, bad := range []string{"", ".", "-1", "1e3", "0.00001", "1.2.3", "x"} {
		if got, err := parseDecimal(bad, 4); err == nil {
			t.Errorf("%q: read as %d", bad, got)
		}
	}
}
