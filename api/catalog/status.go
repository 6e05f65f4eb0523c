package catalog

import (
	"sync"
	"time"
)

// Status tells how the keeping of the catalog goes.
type Status struct {
	// Loads counts the loads that were entered since the process began, Refused and Broken their
	// records.
	Loads, Refused, Broken uint64
	// LastLoad is how long the last load took.
	LastLoad                      time.Duration
	Markets, Events, Series, Tags int
	// Cut is the end of the log that Open put aside; of no bytes if it did not.
	Cut Cut
}

// statusBoard counts for Status.
type statusBoard struct {
	mu sync.Mutex
	s  Status
}

// Status returns the present Status.
func (s *Store) Status() Status {
	s.status.mu.Lock()
	defer s.status.mu.Unlock()
	return s.status.s
}

func (b *statusBoard) note(change func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.s)
}
