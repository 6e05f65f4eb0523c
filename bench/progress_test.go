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
