package bench

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"clobd/bench/lean"
)

func TestBlame(t *testing.T) {
	report := func(late, took Latency, thread float64) *Report {
		return &Report{Operations: 1000, CorrectedMicros: &took,
			Generator: &Generator{LateMicros: late, Thread: thread}}
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
		{"a thread without rest", report(Latency{}, Latency{P50: 3000}, 0.9), "at its limit"},
		{"a generator that stood still", report(Latency{P50: 60, P90: 90, P99: 250_000},
			Latency{P50: 500, P90: 900, P99: 260_000}, 0.1), "p99 of its lateness is 250000 µs"},
		{"the same once in a long run", report(Latency{Max: 250_000}, Latency{Max: 260_000}, 0.1),
			"the longest of its lateness"},
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
	paused := report(Latency{P999: new(250_000.0), Max: 250_000},
		Latency{P999: new(260_000.0), Max: 260_000}, 0.1)
	paused.Conditions.Hiccup.MaxMillis = 250
	if paused.blame(); paused.Invalid != "" || paused.CorrectedMicros.P999 != nil ||
		!strings.Contains(paused.Generator.Note, "p99.9 withheld") {
		t.Errorf("the machine paused: %+v", paused)
	}
	behind := report(Latency{}, Latency{P50: 300}, 0.1)
	behind.Unsent = 3
	if err := behind.Verdict(); err == nil || err.Error() != "fell behind: 3 were never sent" {
		t.Errorf("three were given up: %v", err)
	}
	few := report(Latency{P99: 250_000}, Latency{P99: 260_000}, 0.1)
	few.Operations = 999
	if few.blame(); few.Invalid != "" {
		t.Errorf("nine requests beyond the p99: %s", few.Invalid)
	}
	goroutines := report(Latency{P50: 250}, Latency{P50: 300}, 0.5)
	goroutines.Generator.goroutines = true
	if goroutines.blame(); goroutines.Invalid != "" {
		t.Errorf("goroutines that wake up late as all do: %s", goroutines.Invalid)
	}
	goroutines.Generator.Thread = 0.95
	if goroutines.blame(); !strings.Contains(goroutines.Invalid, "at its limit") {
		t.Errorf("goroutines without rest: %s", goroutines.Invalid)
	}
	closed := &Report{ServiceMicros: Latency{P50: 5000}, Generator: &Generator{}}
	if closed.blame(); closed.Invalid != "" {
		t.Errorf("a closed loop: %s", closed.Invalid)
	}
}

// TestAdvice: only the runs that can send from several processes are told to.
func TestAdvice(t *testing.T) {
	for _, c := range []struct {
		level, invalid string
		says           bool
	}{{"L3", "late", true}, {"L3", "", false}, {"L1", "late", false}} {
		r := &trial{Run: Run{Level: c.level}, report: &Report{Invalid: c.invalid}}
		if r.advise(); strings.Contains(r.report.Invalid, "--processes") != c.says ||
			!strings.HasPrefix(r.report.Invalid, c.invalid) {
			t.Errorf("%s, %q: %q", c.level, c.invalid, r.report.Invalid)
		}
	}
}

// TestOpenLoop asks L1 for so many operations a second: so many are done, at times that do not
// depend on the answers.
func TestOpenLoop(t *testing.T) {
	for _, poisson := range []bool{false, true} {
		d := 1500 * time.Millisecond
		for try := 1; !openLoop(t, d, poisson) && !t.Failed(); try, d = try+1, 2*d {
			if try == 4 {
				t.Fatalf("the timeline of %v does not have half of the operations", d)
			}
		}
	}
	even, uneven := arrivals(100, false, 1, 1000), arrivals(100, true, 1, 1000)
	if even[999] != 9990*time.Millisecond || uneven[999] < 8*time.Second ||
		uneven[999] > 12*time.Second || !slices.IsSorted(uneven) {
		t.Errorf("the last of 1000 at 100/s is due after %v and %v", even[999], uneven[999])
	}
	if again := arrivals(100, true, 1, 1000); !slices.Equal(again, uneven) {
		t.Error("the same seed draws other instants")
	}
}

// openLoop asks for 1000 operations a second, and reports whether the timeline has half of them:
// what is done after its last full second is not in it, and a busy machine lets that be late.
func openLoop(t *testing.T, d time.Duration, poisson bool) (told bool) {
	t.Helper()
	progress := 0
	r, err := Execute(t.Context(), Run{Workload: workloadNamed(t, "canonical"), Level: "L1", Seed: 7,
		Duration: d, Connections: 4, Self: self(t), Rate: 1000, prefill: 100, Poisson: poisson,
		Progress: func(lean.Progress) { progress++ }})
	if err != nil || r.Failure != "" {
		t.Fatal(err, r)
	}
	want, due := int64(0), arrivals(1000, poisson, 7, int(d.Milliseconds())*2)
	for due[want] < d {
		want++
	}
	if r.Operations+r.Unsent != want || r.Loop != "open" || r.CorrectedMicros == nil ||
		r.CorrectedMicros.Max < r.ServiceMicros.Max || r.Generator == nil || r.Checked == "" {
		t.Errorf("report: %+v", r)
	}
	done := int64(0)
	for _, m := range r.Timeline {
		done += m.Done
	}
	if done > r.Operations || progress != len(r.Timeline) {
		t.Errorf("%d operations, %d times of progress, timeline %+v", r.Operations, progress, r.Timeline)
	}
	return done >= r.Operations/2 && done > 0
}

// TestPacedBlame ends a ramp and condemns a flood whose generator was late itself.
func TestPacedBlame(t *testing.T) {
	p := Paced{Asked: 500, Sent: 1000, CorrectedMicros: Latency{P50: 300},
		Generator: &Generator{LateMicros: Latency{P50: 151}}}
	p.blame(Hiccup{})
	r := &Ramped{Steps: []Step{{Paced: p}}}
	if err := r.Verdict(); err == nil || !strings.Contains(err.Error(), "clobench's own") {
		t.Errorf("ramp: %v", err)
	}
	for side, f := range map[string]interface{ Verdict() error }{
		"while the disk stands still: 1 of 1 turns: round 1: ": &Stalled{Parts: []StallPart{
			{What: "matcher", Before: []Paced{{}}, During: []Paced{{}}}, {What: "disk", During: []Paced{p}}}},
		"idle: ":                          &Flooded{Idle: []Paced{p}, Busy: []Paced{{}}},
		"flooded: ":                       &Flooded{Idle: []Paced{{}}, Busy: []Paced{p}},
		"orders alone: ":                  &Streamed{Alone: []Paced{p}},
		"orders beside the subscribers: ": &Streamed{Beside: []Paced{p}},
		"step (and 1 more)":               &Overloaded{Steps: []Push{{}}, Invalid: suspects{"step", "reads"}},
		"reads: ": &Agreed{Parts: []AgreedPart{{What: "reads", Agree: true, Clobench: make([]Said, 2),
			Blamed: []string{"late"}}}},
	} {
		if err := f.Verdict(); err == nil || !strings.HasPrefix(err.Error(), "INVALID: "+side) {
			t.Errorf("%T: %v, want %q", f, err, side)
		}
	}
	p.Generator.LateMicros.P50 = 90
	if p.blame(Hiccup{}); p.Invalid != "" || (&Flooded{Busy: []Paced{p}}).Verdict() != nil {
		t.Errorf("a generator in time: %s", p.Invalid)
	}
}

// TestOverloadBlame: a step, and each other load of an overload, is judged by what its thread did.
func TestOverloadBlame(t *testing.T) {
	v := reads("127.0.0.1:1", "/", 1, nil)
	m, err := func() (*lean.Measured, error) {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer s.Close()
		v.Addr, v.Duration = s.Listener.Addr().String(), 50*time.Millisecond
		return v.Run(t.Context())
	}()
	if err != nil {
		t.Fatal(err)
	}
	p := &pusher{Overload: &Overload{Duration: time.Second}, out: &Overloaded{}}
	for _, c := range []struct {
		thread time.Duration
		bad    bool
	}{{m.Took / 2, false}, {m.Took, true}} {
		m.ThreadCPU = c.thread
		s := p.pushed(1.5, judged(300, m, Hiccup{}), m)
		if (s.Invalid != "") != c.bad || s.Asked != 300 {
			t.Errorf("%v of %v: %+v", c.thread, m.Took, s)
		}
		p.suspect("a step", s.Invalid)
	}
	if err := p.out.Verdict(); err == nil ||
		!strings.HasPrefix(err.Error(), "INVALID: round 1, a step: the generator was at its limit") {
		t.Errorf("verdict %v", err)
	}
}

// TestEntryVerdict: the paced half of a comparison is judged by side, as its closed half is.
func TestEntryVerdict(t *testing.T) {
	good, bad := Paced{}, Paced{Invalid: "late"}
	for _, c := range []struct {
		sockets, http []Paced
		says          string // "" for a good verdict
	}{
		{[]Paced{good, good, bad}, []Paced{good, good, bad}, ""},
		{[]Paced{bad, good}, []Paced{good, good}, "INVALID: sockets at 7 orders a second: 1 of 2 turns: round 1: late"},
		{[]Paced{good}, []Paced{bad}, "INVALID: HTTP at 7 orders a second: 1 of 1 turns: round 1: late"},
	} {
		p := &EntryPaced{Rate: 7, Sockets: c.sockets, HTTP: c.http}
		err := (&Compared{Paced: p}).Verdict()
		if (err == nil) != (c.says == "") || err != nil && err.Error() != c.says {
			t.Errorf("%v, want %q", err, c.says)
		}
		var text strings.Builder
		if p.writeText(&text); !strings.Contains(text.String(), "INVALID\n") {
			t.Errorf("printed\n%s", &text)
		}
	}
}

// TestMostly: medians are the generator's if every second turn of a side is, and the side is named.
func TestMostly(t *testing.T) {
	side := func(name string, turns, blamed int) Side {
		return Side{Name: name, Rates: make([]float64, turns), Blamed: slices.Repeat([]string{"late"}, blamed)}
	}
	for _, c := range []struct {
		a, b Side
		says string // "" for a good verdict
	}{
		{side("a", 4, 0), side("b", 4, 0), ""},
		{side("a", 4, 1), side("b", 4, 1), ""},
		{side("a", 4, 0), side("b", 4, 2), "INVALID: b: 2 of 4 turns: late"},
		{side("a", 1, 1), side("b", 4, 0), "INVALID: a: 1 of 1 turns: late"},
	} {
		err := (&Compared{Node: c.a, Baseline: c.b}).Verdict()
		if (err == nil) != (c.says == "") || err != nil && err.Error() != c.says {
			t.Errorf("%d and %d blamed: %v, want %q", len(c.a.Blamed), len(c.b.Blamed), err, c.says)
		}
	}
}

// TestRivalNamed: two nodes of one binary are told apart.
func TestRivalNamed(t *testing.T) {
	k := &rivals{Rivalry: Rivalry{Nodes: [2]string{"clobd", "clobd"}, Rounds: 3}}
	for i, late := range [][]string{{"round 2: late"}, {"round 1: late", "round 2: late"}} {
		k.sides[i] = rival{report: &Report{}, blamed: late}
		k.judge(i)
	}
	if a, b := k.sides[0].report.Invalid, k.sides[1].report.Invalid; a != "" ||
		b != "node B, clobd: 2 of 3 turns: round 1: late" {
		t.Errorf("%q and %q", a, b)
	}
}

// TestEnough: requests are due at random times. A node that answers all of them has nearly always
// done enough in a fifth of a second; a node that answers a third never has.
func TestEnough(t *testing.T) {
	const asked, each = 1200.0, 15.0 // 80 lists
	r := rand.New(rand.NewPCG(1, 2))
	short := 0
	for range 1000 {
		due := 0
		for at := r.ExpFloat64(); at < asked/each; at += r.ExpFloat64() {
			due++
		}
		if float64(due)*each < enough(asked, each) {
			short++
		}
		if float64(due)*each/3 >= enough(asked, each) {
			t.Errorf("a third of %d lists is enough", due)
		}
	}
	if short > 5 {
		t.Errorf("%d of 1000 spans are not enough", short)
	}
}
