package sequencer

import (
	"sync"
	"time"
)

// stall remembers where the writer was when somebody last found that Commands wait for it.
type stall struct {
	mutex    sync.Mutex
	answered uint64    // Commands that were answered by then
	since    time.Time // zero while none waits
}

// Stalled returns for how long Commands have waited while the writer has answered none; 0 if none
// waits. The writer's own clock would stand still with it, so a stall is measured from the first
// call that meets it: the result is too small by up to the time between two calls. A node asks a
// few times a second. Any goroutine.
func (s *Sequencer) Stalled() time.Duration {
	now := time.Now()
	t := &s.stall
	t.mutex.Lock()
	defer t.mutex.Unlock()
	c := s.Counters()
	switch {
	case c.Waiting == 0:
		t.since = time.Time{}
		return 0
	case t.since.IsZero() || t.answered != c.Answered:
		t.answered, t.since = c.Answered, now
	}
	return max(now.Sub(t.since), 0)
}
