package bench

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"clobd/bench/lean"
	"clobd/bench/process"
)

// Ticker prints how a measurement comes along: on a terminal one line that is rewritten, elsewhere
// a line every five seconds. Its methods are for one goroutine at a time. A nil Ticker prints
// nothing.
type Ticker struct {
	To       io.Writer
	Terminal bool

	width int // columns of the terminal, 0: as To says

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
	t.print(nil)
}

// phrase is a piece of a line. Where a line is too wide, the phrase of the least worth goes first.
type phrase struct {
	text  string
	worth int
}

// where is the step that runs, and about how long those after it take if they are like those before
// it. It is empty for a measurement without steps.
func (t *Ticker) where() []phrase {
	if t.step == 0 {
		return nil
	}
	line := []phrase{{fmt.Sprintf("step %d of %d", t.step, t.steps), 9}, {t.what, 8}}
	if done := t.step - 1; done > 0 && t.steps > done {
		each := t.stepped.Sub(t.began) / time.Duration(done)
		rest := each*time.Duration(t.steps-done) - time.Since(t.stepped)
		line = append(line, phrase{fmt.Sprintf("all about %s left", max(rest, 0).Round(time.Second)), 6})
	}
	return line
}

// joined is a line: where the measurement is, and how the step that runs comes along.
func joined(where, how []phrase) string {
	text := func(all []phrase, between string) string {
		var list []string
		for _, p := range all {
			list = append(list, p.text)
		}
		return strings.Join(list, between)
	}
	if len(where) == 0 || len(how) == 0 {
		return text(where, ", ") + text(how, "  ")
	}
	return text(where, ", ") + ": " + text(how, "  ")
}

// fit is joined in so many columns: phrases are left out, and what remains at last is cut.
func fit(where, how []phrase, columns int) string {
	for {
		line := joined(where, how)
		if utf8.RuneCountInString(line) <= columns {
			return line
		}
		if len(where)+len(how) <= 1 {
			return string([]rune(line)[:max(columns-1, 0)]) + "…"
		}
		least := slices.MinFunc(slices.Concat(where, how),
			func(a, b phrase) int { return cmp.Compare(a.worth, b.worth) })
		same := func(p phrase) bool { return p == least }
		where, how = slices.DeleteFunc(where, same), slices.DeleteFunc(how, same)
	}
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
		t.show(p.Elapsed, progressPhrases(p))
	}
}

// show prints a state, and before it the step that runs.
func (t *Ticker) show(elapsed time.Duration, how []phrase) {
	if t.last.IsZero() { // the first line comes after as long as all others
		t.last = time.Now().Add(-elapsed)
	}
	t.print(how)
}

// Did is Show for work that is no load: so many operations are done, in the time that it took so
// far.
func (t *Ticker) Did(operations int64, took time.Duration) {
	if t != nil {
		t.show(took, []phrase{{took.Round(100 * time.Millisecond).String(), 1},
			{fmt.Sprintf("%.0f/s", float64(operations)/max(took, 1).Seconds()), 7},
			{fmt.Sprintf("done %d", operations), 2}})
	}
}

// usualWidth is how many columns a terminal has if nobody knows.
const usualWidth = 80

// columns is how wide the terminal is: it may change meanwhile.
func (t *Ticker) columns() int {
	n := t.width
	if f, is := t.To.(*os.File); is && n == 0 {
		n = process.Columns(f)
	}
	return cmp.Or(n, usualWidth)
}

// print prints a line, if it is time for one. On a terminal the line must not be broken: only its
// last row would be rewritten. The last column stays empty, as some terminals break a line there.
func (t *Ticker) print(how []phrase) {
	if t.Terminal {
		fmt.Fprintf(t.To, "\r%s\x1b[K", fit(t.where(), how, t.columns()-1))
		t.shown = true
		return
	}
	if now := time.Now(); now.Sub(t.last) >= plainEvery {
		t.last = now
		fmt.Fprintln(t.To, joined(t.where(), how))
	}
}

// Done removes the line of a terminal, so that the report begins on an empty one.
func (t *Ticker) Done() {
	if t != nil && t.shown {
		fmt.Fprint(t.To, "\r\x1b[K")
		t.shown = false
	}
}

// progressPhrases are the state of a load.
func progressPhrases(p lean.Progress) []phrase {
	left := "no end set"
	if p.Left > 0 || p.Elapsed > 0 {
		left = p.Left.Round(time.Second).String() + " left"
	}
	return []phrase{{p.Elapsed.Round(100 * time.Millisecond).String(), 1}, {fmt.Sprintf("%.0f/s", p.Rate), 7},
		{"p50 " + short(p.P50), 3}, {"p99 " + short(p.P99), 5}, {fmt.Sprintf("done %d", p.Done), 0},
		{fmt.Sprintf("errors %d", p.Failed), 4}, {left, 2}}
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
