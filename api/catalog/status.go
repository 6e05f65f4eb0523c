package catalog

import (
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Status is how the catalog's keeping goes.
type Status struct {
	// Loads and Failures count what was tried since the process began. Refused and Broken count
	// records.
	Loads, Failures, Refused, Broken uint64
	// Asked counts requests to the source, and looks at its files, by what came of them: something
	// new, nothing new, nothing.
	Asked struct{ New, Unchanged, Failed uint64 }
	// LastSuccess is when the source was last read as far as it goes, also by a process before this
	// one, zero if never; LastError what went wrong since, empty if nothing did.
	LastSuccess time.Time
	LastError   string
	// LastLoad is how long the last load took.
	LastLoad                      time.Duration
	Markets, Events, Series, Tags int
	// Cut is the end of the log that was put aside when it was opened; of no bytes if none was.
	Cut Cut
	// Waiting says that a look is put off until there is room for what may be new.
	Waiting bool
}

// statusBoard counts for Status.
type statusBoard struct {
	mu sync.Mutex
	s  Status

	file, source string    // where LastSuccess is kept; empty: nowhere
	noted        time.Time // when it was last written
}

// Status is how it goes now.
func (s *Store) Status() Status {
	s.status.mu.Lock()
	defer s.status.mu.Unlock()
	return s.status.s
}

func (b *statusBoard) swapped(c *Catalog) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.s.Markets, b.s.Events = c.Markets.Len(), c.Events.Len()
	b.s.Series, b.s.Tags = c.Series.Len(), c.Tags.Len()
}

func (b *statusBoard) loaded(r *Report, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.s.Loads++
	b.s.Refused += uint64(r.Refused)
	b.s.Broken += uint64(r.Broken)
	b.s.LastLoad = took
}

func (b *statusBoard) cut(c *Cut) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.s.Cut = *c
}

func (b *statusBoard) waiting(is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.s.Waiting = is
}

// successFile is a file beside the log: its first line is a source, its time when that was last
// read as far as it goes.
const successFile = "last-success"

// successEvery is how often the file is written at most.
const successEvery = 10 * time.Second

// resume takes over when the source was last read.
func (b *statusBoard) resume(o Options) {
	if o.Dir == "" {
		return
	}
	b.file, b.source = filepath.Join(o.Dir, successFile), o.Source
	about, err := os.Stat(b.file)
	if err != nil {
		return
	}
	if text, err := os.ReadFile(b.file); err == nil && string(text) == b.source+"\n" {
		b.s.LastSuccess = about.ModTime()
	}
}

// succeeded says that the source was read as far as it goes. The error is that of writing it down.
func (b *statusBoard) succeeded() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.s.LastSuccess, b.s.LastError = now, ""
	if b.file == "" || now.Sub(b.noted) < successEvery {
		return nil
	}
	b.noted = now
	return os.WriteFile(b.file, []byte(b.source+"\n"), 0o600)
}

func (b *statusBoard) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.s.Failures++
	b.s.LastError = err.Error()
}

// requestOutcome is what came of a request.
type requestOutcome uint8

const (
	requestNew requestOutcome = iota
	requestUnchanged
	requestFailed
)

// asked counts a request to the source.
func (b *statusBoard) asked(outcome requestOutcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch outcome {
	case requestNew:
		b.s.Asked.New++
	case requestUnchanged:
		b.s.Asked.Unchanged++
	case requestFailed:
		b.s.Asked.Failed++
	}
}
