package source

import (
	"os"
	"path/filepath"
	"time"
)

// Health tells how the reading of a source goes.
type Health struct {
	// Failures counts the looks that failed since the process began.
	Failures uint64
	// Asked counts requests to a service, or looks at files, by their outcome.
	Asked struct{ New, Unchanged, Failed uint64 }
	// LastSuccess is when the source was last read to its end, also by an earlier process. It is zero
	// if that never happened.
	LastSuccess time.Time
	// LastError is the latest error since LastSuccess, empty if there was none.
	LastError string
	// Waiting is set while a look is put off until there is room for new records.
	Waiting bool
}

// Health returns a copy of the present health. Any goroutine may call Health.
func (s *Source) Health() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health
}

func (s *Source) note(change func(*Health)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.health)
}

// asked counts a request, or a look at files, by its outcome.
func (s *Source) asked(unchanged bool, err error) {
	s.note(func(h *Health) {
		switch {
		case err != nil:
			h.Asked.Failed++
		case unchanged:
			h.Asked.Unchanged++
		default:
			h.Asked.New++
		}
	})
}

const (
	// successFile lies beside the log. It holds the address of a source; its time is LastSuccess.
	successFile = "last-success"
	// successEvery is the least time between two writes of the file.
	successEvery = 10 * time.Second
)

// resume reads LastSuccess of an earlier process.
func (s *Source) resume() {
	file := filepath.Join(s.o.Dir, successFile)
	about, err := os.Stat(file)
	if s.o.Dir == "" || err != nil {
		return
	}
	if text, err := os.ReadFile(file); err == nil && string(text) == s.o.Address+"\n" {
		s.health.LastSuccess = about.ModTime()
	}
}

// succeeded notes that the source was read to its end. The error is that of writing the file.
func (s *Source) succeeded() error {
	now := time.Now()
	s.note(func(h *Health) { h.LastSuccess, h.LastError = now, "" })
	if s.o.Dir == "" || now.Sub(s.written) < successEvery {
		return nil
	}
	s.written = now
	return os.WriteFile(filepath.Join(s.o.Dir, successFile), []byte(s.o.Address+"\n"), 0o600)
}
