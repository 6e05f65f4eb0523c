package catalog

import (
	"sync"
	"time"
)

// Status is how the catalog's keeping goes.
type Status struct {
	// Loads counts the loads that were entered since the process began, Refused and Broken count
	// records.
	Loads, Refused, Broken uint64
	// LastLoad is how long the last load took.
	LastLoad                      time.Duration
	Markets, Events, Series, Tags int
	// Cut is the end of the log that was put aside when it was opened; of no bytes if none was.
	Cut Cut
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

// note changes the status under the lock.
func (b *statusBoard) note(change func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.s)
}
