package bench

import (
	"strings"
	"testing"
	"time"

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
	if line := progressLine(told[1]); !strings.Contains(line, "p50 250ns") {
		t.Error(line)
	}
}
