package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"clobd/api/catalog"
)

// screen is standard error. At a terminal its last line changes, and other lines go above it.
type screen struct {
	out      io.Writer
	terminal bool

	mu    sync.Mutex
	shown string // the line that changes; empty: there is none
}

func newScreen() *screen {
	about, err := os.Stderr.Stat()
	return &screen{out: os.Stderr, terminal: err == nil && about.Mode()&os.ModeCharDevice != 0}
}

func (s *screen) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown == "" {
		return s.out.Write(lines)
	}
	// In one piece, so that nobody sees half of it.
	if _, err := s.out.Write([]byte("\r\x1b[K" + string(lines) + s.shown)); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// show changes the last line of a terminal, erasing after writing; elsewhere it writes a line.
func (s *screen) show(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line == s.shown {
		return
	}
	text := line + "\n"
	if s.terminal {
		text, s.shown = "\r"+line+"\x1b[K", line
	}
	_, _ = io.WriteString(s.out, text) // an error could only be written to the same place
}

// leave goes on below the last line; erase goes on in its place.
func (s *screen) leave() { s.end("\n") }
func (s *screen) erase() { s.end("\r\x1b[K") }

func (s *screen) end(with string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown != "" {
		s.shown = ""
		_, _ = io.WriteString(s.out, with)
	}
}

// progress shows how far a task is. A task shorter than progressDelay shows nothing.
type progress struct {
	on    *screen
	what  string // such as "journal"
	unit  string // of what is counted, such as "frames"
	now   func() time.Time
	began time.Time
	told  time.Time
}

const (
	progressBlink = 200 * time.Millisecond
	progressDelay = time.Second
	progressEvery = 5 * time.Second
)

func newProgress(on *screen, what, unit string) *progress {
	return &progress{on: on, what: what, unit: unit, now: time.Now, began: time.Now()}
}

func (p *progress) due(now time.Time) bool {
	every := progressEvery
	if p.on.terminal {
		every = progressBlink
	}
	if now.Sub(p.began) < progressDelay || now.Sub(p.told) < every {
		return false
	}
	p.told = now
	return true
}

// show prints a line if one is due; a total of 0 is unknown.
func (p *progress) show(done, total uint64) {
	if now := p.now(); p.due(now) {
		p.on.show(p.line(done, total, now.Sub(p.began)))
	}
}

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

func (p *progress) end() { p.on.erase() }

type loadBar struct {
	*progress
	last string // what there is to show, shown or not
	over bool
}

func newLoadBar(on *screen) *loadBar {
	return &loadBar{progress: newProgress(on, "catalog", "records")}
}

// show shows how far a load is, but nothing after the end.
func (b *loadBar) show(p catalog.Progress) {
	if b.over {
		return
	}
	now := b.now()
	b.last = b.line(p, now.Sub(b.began))
	if b.due(now) {
		b.on.show(b.last)
	}
}

// line is a bar if the size of the source is known.
func (b *loadBar) line(p catalog.Progress, took time.Duration) string {
	const length, million = 30, 1_000_000
	if p.Total <= 0 {
		return fmt.Sprintf("catalog: %d records in %.0f s", p.Records, took.Seconds())
	}
	done := min(p.Done, p.Total)
	line := fmt.Sprintf("%3d %%, %d records, %d of %d MB", done*100/p.Total, p.Records,
		done/million, p.Total/million)
	if !b.on.terminal {
		return "catalog: " + strings.TrimSpace(line)
	}
	full := int(done * length / p.Total)
	return fmt.Sprintf("catalog [%s%s] %s", strings.Repeat("=", full),
		strings.Repeat(" ", length-full), line)
}

// end leaves the latest progress on the terminal, if any was shown.
func (b *loadBar) end() {
	if b.on.terminal && !b.told.IsZero() && !b.over {
		b.on.show(b.last)
	}
	b.over = true
	b.on.leave()
}
