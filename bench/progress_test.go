package bench

import (
	"cmp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"clobd/bench/lean"
)

func TestTicker(t *testing.T) {
	p := lean.Progress{Rate: 1234.5, P50: 1234567, P99: 45 * time.Microsecond, Done: 7, Failed: 2,
		Elapsed: 200 * time.Millisecond, Left: 3 * time.Second}
	var out strings.Builder
	terminal := Ticker{To: &out, Terminal: true}
	terminal.Show(p)
	terminal.Show(p)
	terminal.Done()
	line := "200ms  1234/s  p50 1.23ms  p99 45µs  done 7  errors 2  3s left"
	if want := strings.Repeat("\r"+line+"\x1b[K", 2) + "\r\x1b[K"; out.String() != want {
		t.Errorf("terminal: %q", out.String())
	}
	out.Reset()
	plain := Ticker{To: &out}
	plain.Show(p)
	plain.Done()
	if out.Len() > 0 {
		t.Errorf("a line after 200 ms: %q", out.String())
	}
	p.Elapsed = plainEvery
	plain.last = time.Time{}
	plain.Show(p)
	plain.Show(p)
	if want := strings.Replace(line, "200ms", "5s", 1) + "\n"; out.String() != want {
		t.Errorf("elsewhere: %q", out.String())
	}
}

// TestTickerSteps: a measurement of several steps says which one runs, what it does, and how long
// it takes about.
func TestTickerSteps(t *testing.T) {
	var out strings.Builder
	k := &Ticker{To: &out, Terminal: true}
	k.Plan(3)
	k.Step("%d a second", 100)
	k.Progress()(lean.Progress{Rate: 99, Elapsed: time.Second, Left: time.Second})
	k.began = k.began.Add(-10 * time.Second)
	k.Step("%d a second", 200)
	k.Did(500, 2*time.Second)
	k.Done()
	for _, want := range []string{"\rstep 1 of 3, 100 a second\x1b[K",
		"\rstep 1 of 3, 100 a second: 1s  99/s  p50 0s  p99 0s  done 0  errors 0  1s left\x1b[K",
		"\rstep 2 of 3, 200 a second, all about 20s left\x1b[K", "left: 2s  250/s  done 500\x1b[K"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q: %q", want, out.String())
		}
	}
	out.Reset()
	k = &Ticker{To: &out}
	k.Plan(2)
	k.Step("a")
	k.last = k.last.Add(-plainEvery)
	k.Step("b")
	k.Step("c")
	if !strings.HasPrefix(out.String(), "step 2 of 2, b, all about ") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("elsewhere: %q", out.String())
	}
	k = nil // nobody looks
	k.Plan(1)
	k.Step("a")
	k.Did(1, 1)
	k.Done()
	if k.Progress() != nil {
		t.Error("a load reports to nobody")
	}
}

// TestTickerWidth: on a terminal a line is never wider than that, and tells what is worth most. It
// is as wide as it wants to be elsewhere.
func TestTickerWidth(t *testing.T) {
	p := lean.Progress{Rate: 123_456.7, P50: 123456 * time.Microsecond, P99: 12345 * time.Millisecond,
		Done: 1234567890, Failed: 12345, Elapsed: 100 * time.Second, Left: time.Hour}
	for width, want := range map[int]string{
		0: "step 12 of 360, node A, round 12, all about 3h52m40s left: 123457/s  p99 12.35s",
		120: "step 12 of 360, node A, round 12, all about 3h52m40s left: 123457/s  p50 123.46ms  " +
			"p99 12.35s  errors 12345",
		40: "step 12 of 360, node A, round 12",
		20: "step 12 of 360",
		10: "step 12 …",
	} {
		var out strings.Builder
		k := &Ticker{To: &out, Terminal: true, width: width}
		k.Plan(360)
		k.step = 11
		k.Step("node %c, round %d", 'A', 12)
		k.began = k.stepped.Add(-440 * time.Second)
		out.Reset()
		k.Show(p)
		line := strings.TrimSuffix(strings.TrimPrefix(out.String(), "\r"), "\x1b[K")
		if n := utf8.RuneCountInString(line); line != want || n >= cmp.Or(width, usualWidth) {
			t.Errorf("%d columns: %d of them, %q, want %q", width, n, line, want)
		}
		k.Terminal, k.last = false, k.last.Add(-plainEvery)
		out.Reset()
		if k.Show(p); !strings.Contains(out.String(), "done 1234567890  errors 12345  1h0m0s left\n") {
			t.Errorf("elsewhere: %q", out.String())
		}
	}
}

// TestApplyTells: level L0 tells how it comes along, about once a second.
func TestApplyTells(t *testing.T) {
	var told []lean.Progress
	r := &trial{Run: Run{Duration: 5 * time.Second,
		Progress: func(p lean.Progress) { told = append(told, p) }}}
	sum := &applied{rec: NewRecorder(), done: 3000, took: time.Second}
	sum.rec.Record(250)
	sum.told.at = time.Now()
	r.tell(sum) // too soon
	sum.told.at = sum.told.at.Add(-time.Second)
	r.tell(sum)
	sum.done, sum.took = 7000, 2*time.Second
	sum.told.at = sum.told.at.Add(-time.Second)
	r.tell(sum)
	if len(told) != 2 || told[0].Rate != 3000 || told[1].Rate != 4000 || told[1].Done != 7000 ||
		told[1].Left != 3*time.Second || told[1].P50 != 250 {
		t.Errorf("%+v", told)
	}
	if line := joined(nil, progressPhrases(told[1])); !strings.Contains(line, "p50 250ns") {
		t.Error(line)
	}
}
