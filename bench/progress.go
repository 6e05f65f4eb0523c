package bench

import (
	"fmt"
	"io"
	"time"

	"clobd/bench/lean"
)

// Ticker prints how a measurement comes along: on a terminal one line that is rewritten, elsewhere
// a line every five seconds. Its methods are for one goroutine at a time. A nil Ticker prints
// nothing.
type Ticker struct {
	To       io.Writer
	Terminal bool

	last  time.Time
	shown bool // a line stands on the terminal

	// Of a measurement of several steps:
	steps, step int       // how many there are, and which one runs
	what        string    // it does
	began       time.Time // the first step
	stepped     time.Time // the step that runs
}

// plainEvery is how often a line is printed where lines cannot be rewritten.
const plainEvery = 5 * time.Second

// Plan says how many steps the measurement has, at most.
func (t *Ticker) Plan(steps int) {
	if t == nil {
		return
	}
	t.steps, t.step, t.began = steps, 0, time.Now()
	t.last = t.began
}

// Step begins the next step. what says in a few words what it does.
func (t *Ticker) Step(what string, args ...any) {
	if t == nil {
		return
	}
	t.step, t.what, t.stepped = t.step+1, fmt.Sprintf(what, args...), time.Now()
	t.print(t.where())
}

// where is the step that runs, and about how long those after it take if they are like those before
// it. It is empty for a measurement without steps.
func (t *Ticker) where() string {
	if t.step == 0 {
		return ""
	}
	line := fmt.Sprintf("step %d of %d, %s", t.step, t.steps, t.what)
	if done := t.step - 1; done > 0 && t.steps > done {
		each := t.stepped.Sub(t.began) / time.Duration(done)
		rest := each*time.Duration(t.steps-done) - time.Since(t.stepped)
		line += fmt.Sprintf(", all about %s left", max(rest, 0).Round(time.Second))
	}
	return line
}

// Progress is what a load calls to be shown: Show, or nil if nobody looks.
func (t *Ticker) Progress() func(lean.Progress) {
	if t == nil {
		return nil
	}
	return t.Show
}

// Show prints a state of the run, or of the step that runs, if it is time for one.
func (t *Ticker) Show(p lean.Progress) {
	if t != nil {
		t.show(p.Elapsed, progressLine(p))
	}
}

// show prints a state, and before it the step that runs.
func (t *Ticker) show(elapsed time.Duration, line string) {
	if where := t.where(); where != "" {
		line = where + ": " + line
	}
	if t.last.IsZero() { // the first line comes after as long as all others
		t.last = time.Now().Add(-elapsed)
	}
	t.print(line)
}

// Did is Show for work that is no load: so many operations are done, in the time that it took so
// far.
func (t *Ticker) Did(operations int64, took time.Duration) {
	if t != nil {
		t.show(took, fmt.Sprintf("%s  %.0f/s  done %d", took.Round(100*time.Millisecond),
			float64(operations)/max(took, 1).Seconds(), operations))
	}
}

// print prints a line, if it is time for one.
func (t *Ticker) print(line string) {
	if t.Terminal {
		fmt.Fprintf(t.To, "\r%s\x1b[K", line)
		t.shown = true
		return
	}
	if now := time.Now(); now.Sub(t.last) >= plainEvery {
		t.last = now
		fmt.Fprintln(t.To, line)
	}
}

// Done removes the line of a terminal, so that the report begins on an empty one.
func (t *Ticker) Done() {
	if t != nil && t.shown {
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
