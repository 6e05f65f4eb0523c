package answer

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// StageNames are the stages of an order, in the order in which it passes them.
var StageNames = [...]string{"authenticate", "parse", "verify", "wait", "match", "append", "sync",
	"publish", "answer"}

// Took is how long an order spent in each stage of StageNames, 0 in a stage that it did not reach.
type Took [len(StageNames)]time.Duration

// Late is one of the slowest orders.
type Late struct {
	At       time.Time // its answer
	Total    time.Duration
	Stages   Took
	Status   int    // of the answer
	Sequence uint64 // 0: the order did not enter
}

const (
	lateKept = 20               // orders that are kept of each span, and told of the last minute
	lateSpan = 10 * time.Second // orders are forgotten a span at a time
	lateAll  = 6                // spans
)

// Slowest keeps the slowest orders of about the last minute. All methods may be called at once.
type Slowest struct {
	// An order that took no longer than bound, before the span ends, is not one of the slowest of its
	// span. Nearly all orders are like that, and take no lock.
	bound, ends atomic.Int64 // nanoseconds, and unix nanoseconds

	mutex sync.Mutex
	spans [lateAll][]Late // the present one first, each with its slowest order first
}

// Note keeps an order if it is one of the slowest of the present span.
func (s *Slowest) Note(l *Late) {
	now := l.At.UnixNano()
	if now < s.ends.Load() && int64(l.Total) <= s.bound.Load() {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.turn(now)
	span := s.spans[0]
	at, _ := slices.BinarySearchFunc(span, l.Total, func(o Late, total time.Duration) int {
		return cmp.Compare(total, o.Total)
	})
	if at == lateKept {
		return
	}
	if len(span) == lateKept {
		span = span[:lateKept-1]
	}
	s.spans[0] = slices.Insert(span, at, *l)
	if len(s.spans[0]) == lateKept {
		s.bound.Store(int64(s.spans[0][lateKept-1].Total))
	}
}

// turn begins a new span for each that has ended.
func (s *Slowest) turn(now int64) {
	ends := s.ends.Load()
	for past := 0; now >= ends && past < lateAll; past++ {
		oldest := s.spans[lateAll-1][:0]
		copy(s.spans[1:], s.spans[:])
		s.spans[0] = oldest
		s.bound.Store(0)
		ends += int64(lateSpan)
	}
	if now >= ends {
		ends = now + int64(lateSpan)
	}
	s.ends.Store(ends)
}

// Last returns the slowest orders of the last 50 to 60 seconds, at most 20, the slowest first.
func (s *Slowest) Last(now time.Time) []Late {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.turn(now.UnixNano())
	all := slices.Concat(s.spans[:]...)
	slices.SortFunc(all, func(a, b Late) int { return cmp.Compare(b.Total, a.Total) })
	return all[:min(len(all), lateKept)]
}
