package main

import (
	"fmt"
	"os"
	"time"
)

// progress shows how far something long is: on a terminal as one line that changes, elsewhere as a
// line every few seconds. What is done soon is not worth a word.
type progress struct {
	out      *os.File
	what     string // such as "journal"
	unit     string // of what is counted, such as "frames"
	terminal bool
	began    time.Time
	told     time.Time
}

// How often a terminal's line changes, and how long something may take without a word.
const (
	progressBlink = 200 * time.Millisecond
	progressDelay = time.Second
	progressEvery = 5 * time.Second
)

// newProgress begins one on standard error, where no report is.
func newProgress(what, unit string) *progress {
	about, err := os.Stderr.Stat()
	return &progress{out: os.Stderr, what: what, unit: unit, began: time.Now(),
		terminal: err == nil && about.Mode()&os.ModeCharDevice != 0}
}

// show is told how much of how much is done.
func (p *progress) show(done, total uint64) {
	now, every := time.Now(), progressEvery
	if p.terminal {
		every = progressBlink
	}
	if now.Sub(p.began) < progressDelay || now.Sub(p.told) < every {
		return
	}
	p.told = now
	line := p.line(done, total, now.Sub(p.began))
	if p.terminal {
		line = "\r\x1b[K" + line
	} else {
		line += "\n"
	}
	_, _ = p.out.WriteString(line) // nobody is left to be told that nobody can be told
}

// line is what is shown: done of total, how fast, how long it will take.
func (p *progress) line(done, total uint64, took time.Duration) string {
	rate := float64(done) / max(took.Seconds(), 1e-3)
	line := fmt.Sprintf("%s: %d %s, %.0f/s", p.what, done, p.unit, rate)
	if total > 0 {
		line = fmt.Sprintf("%s: %d of %d %s, %d %%, %.0f/s", p.what, done, total, p.unit,
			min(done, total)*100/total, rate)
	}
	if rate > 0 && total > 0 && done <= total {
		left := time.Duration(float64(total-done) / rate * float64(time.Second))
		line += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	return line
}

// end takes the terminal's line away.
func (p *progress) end() {
	if p.terminal && !p.told.IsZero() {
		_, _ = p.out.WriteString("\r\x1b[K")
	}
}
