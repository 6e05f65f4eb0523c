package source

import (
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Health is how the reading of a source goes.
type Health struct {
	// Failures counts the looks that failed since the process began.
	Failures uint64
	// Asked counts requests to the source, and looks at its files, by what came of them: something
	// new, nothing new, nothing.
	Asked struct{ New, Unchanged, Failed uint64 }
	// LastSuccess is when the source was last read to its end, also by a process before this one; zero
	// if never.
	LastSuccess time.Time
	// LastError is what went wrong since then, empty if nothing did.
	LastError string
	// Waiting is set while a look is put off until there is room for new records.
	Waiting bool
}

// healthBoard counts for Health.
type healthBoard struct {
	mu sync.Mutex
	s  Health

	file, source string    // where LastSuccess is kept; empty: nowhere
	noted        time.Time // when the file was last written
}

// Health is how it goes now.
func (s *Source) Health() Health {
	s.status.mu.Lock()
	defer s.status.mu.Unlock()
	return s.status.s
}

// note changes the health under the lock.
func (b *healthBoard) note(change func(*Health)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.s)
}

// successFile is a file beside the log: its first line is a source, its time when that was last
// read as far as it goes.
const successFile = "last-success"

// successEvery is how often the file is written at most.
const successEvery = 10 * time.Second

// resume takes over when the source was last read.
func (b *healthBoard) resume(o Options) {
	if o.Dir == "" {
		return
	}
	b.file, b.source = filepath.Join(o.Dir, successFile), o.Address
	about, err := os.Stat(b.file)
	if err != nil {
		return
	}
	if text, err := os.ReadFile(b.file); err == nil && string(text) == b.source+"\n" {
		b.s.LastSuccess = about.ModTime()
	}
}

// succeeded says that the source was read as far as it goes. The error is that of writing it down.
func (b *healthBoard) succeeded() error {
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

// These note what came of a request.
func requestNew(h *Health)       { h.Asked.New++ }
func requestUnchanged(h *Health) { h.Asked.Unchanged++ }
func requestFailed(h *Health)    { h.Asked.Failed++ }
