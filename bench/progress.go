package bench

import (
	"fmt"
	"io"
	"time"

	"clobd/bench/lean"
)

// Ticker prints how a run comes along: on a terminal one line that is rewritten, elsewhere a line
// every five seconds. Its methods are for one goroutine at a time.
type Ticker struct {
	To       io.Writer
	Terminal bool

	last  time.Time
	shown bool // a line stands on the terminal
}

// plainEvery is how often a line is printed where lines cannot be rewritten.
const plainEvery = 5 * time.Second

// Show prints a state of the run, if it is time for one.
func (t *Ticker) Show(p lean.Progress) {
	line := progressLine(p)
	if t.Terminal {
		fmt.Fprintf(t.To, "\r%s\x1b[K", line)
		t.shown = true
		return
	}
	if t.last.IsZero() { // the first line comes after as long as all others
		t.last = time.Now().Add(-p.Elapsed)
	}
	if now := time.Now(); now.Sub(t.last) >= plainEvery {
		t.last = now
		fmt.Fprintln(t.To, line)
	}
}

// Done removes the line of a terminal, so that the report begins on an empty one.
func (t *Ticker) Done() {
	if t.shown {
		fmt.Fprint(t.To, "\r\x1b[K")
		t.shown = false
	}
}

func progressLine(p lean.Progress) string {
	left := "no end set"
	if p.Left > 0 || p.Elapsed > 0 {
		left = p.Left.Round(time.Second).String() + " left"
	}
	return fmt.Sprintf("%s  %.0f/s  p50 %s  p99 %s  done %d  errors %d  %s",
		p.Elapsed.Round(100*time.Millisecond), p.Rate, short(p.P50), short(p.P99), p.Done, p.Failed,
		left)
}

// short is a duration at three digits or so.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Microsecond:
		return d.String()
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
