package catalog

import (
	"sync"
	"time"
)

// Status is how the catalog's keeping goes.
type Status struct {
	// Loads and Failures count what was tried since the process began. Refused and Broken count
	// records.
	Loads, Failures, Refused, Broken uint64
	// Asked counts requests to the source, Unchanged those that were answered with nothing new.
	Asked, Unchanged uint64
	// LastSuccess is when the source was last read as far as it goes, zero if never; LastError what
	// went wrong since, empty if nothing did.
	LastSuccess time.Time
	LastError   string
	// LastLoad is how long the last load took.
	LastLoad                      time.Duration
	Markets, Events, Series, Tags int
}

// statusBoard counts for Status.
type statusBoard struct {
	mu sync.Mutex
	s  Status
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

// succeeded says that the source was read as far as it goes.
func (b *statusBoard) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.s.LastSuccess, b.s.LastError = time.Now(), ""
}

func (b *statusBoard) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.s.Failures++
	b.s.LastError = err.Error()
}

// asked counts a request to the source.
func (b *statusBoard) asked(unchanged bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.s.Asked++
	if unchanged {
		b.s.Unchanged++
	}
}
