package bench

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"clobd/engine"
)

func TestGenerateSameSeedSameOperations(t *testing.T) {
	for _, w := range Workloads() {
		w.Books = min(w.Books, 20)
		a, expA := Generate(w, 7, 200, 3000)
		b, expB := Generate(w, 7, 200, 3000)
		if !reflect.DeepEqual(a, b) || expA != expB {
			t.Errorf("%s: two draws from one seed differ", w.Name)
		}
		c, _ := Generate(w, 8, 200, 3000)
		if reflect.DeepEqual(a, c) {
			t.Errorf("%s: seeds 7 and 8 draw the same operations", w.Name)
		}
		// A run that ends early is checked against the draw of what it did.
		if prefix, _ := Generate(w, 7, 200, 1000); !reflect.DeepEqual(a[:len(prefix)], prefix) {
			t.Errorf("%s: the draw of 1,000 operations is no prefix of that of 3,000", w.Name)
		}
	}
}

// TestEngineAgreesWithModel applies every mix and compares fills, volume, resting orders and
// refusals with the generator's own queues, which share no code with the engine.
func TestEngineAgreesWithModel(t *testing.T) {
	for _, w := range Workloads() {
		w.Books = min(w.Books, 20)
		ops, exp := Generate(w, 11, 2000, 30_000)
		x := engine.NewExchange(3)
		var tally Tally
		var events []engine.Event
		seq := engine.Sequence(0)
		apply := func(commands []engine.Command) {
			for i := range commands {
				commands[i].Seen = seq
				seq++
				events = x.Apply(&commands[i], seq, 1, events[:0])
				tally.Add(events)
			}
		}
		apply(NewWorld(w).Setup)
		if tally.Rejected != 0 {
			t.Fatalf("%s: %d commands of the setup were refused", w.Name, tally.Rejected)
		}
		tally = Tally{}
		apply(Commands(ops))
		if err := tally.Check(exp); err != nil {
			t.Errorf("%s: %v", w.Name, err)
		}
		if exp.Fills == 0 || exp.Live == 0 {
			t.Errorf("%s: nothing traded or nothing rests: %+v", w.Name, exp)
		}
	}
}

func TestExecuteChecksWhatItMeasured(t *testing.T) {
	for _, level := range []string{"L0", "L1", "L2"} {
		w, err := WorkloadNamed("canonical")
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
	exp := Expected{Fills: 2, Volume: 3 * engine.Unit, Live: 1}
	good := Tally{Fills: 2, Volume: 3 * engine.Unit, Live: 1}
	if err := good.Check(exp); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []Tally{
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
