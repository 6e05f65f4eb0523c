package party

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Crew works on lists in several seats: the caller's and free ones.
type Crew[T any] struct {
	Work  func(part []T)
	Leave func() // gives the seat of a helper back

	splits sync.Pool // of *split[T], used again after their end
}

// split is the work on one list.
type split[T any] struct {
	*Crew[T]
	list     []T
	size     int // of each part
	taken    atomic.Int32
	panicked atomic.Pointer[string]
	joined   sync.WaitGroup
}

// Run calls Work with all of the list: in equal parts if there are helpers, each of whom has a
// seat. It returns when all have ended. A panic of Work is one of the caller's goroutine.
func (c *Crew[T]) Run(list []T, helpers int) {
	if helpers == 0 {
		c.Work(list)
		return
	}
	s, ok := c.splits.Get().(*split[T])
	if !ok {
		s = &split[T]{Crew: c}
	}
	s.list, s.size = list, (len(list)+helpers)/(helpers+1)
	s.joined.Add(helpers)
	for range helpers {
		go s.help()
	}
	s.work()
	s.joined.Wait() // also after a panic: the list is used again
	if cause := s.panicked.Load(); cause != nil {
		panic(*cause)
	}
	s.list = nil
	s.taken.Store(0)
	c.splits.Put(s)
}

func (s *split[T]) help() {
	defer s.joined.Done()
	defer s.Leave()
	s.work()
}

func (s *split[T]) work() {
	defer s.keep()
	take := func() int { return int(s.taken.Add(int32(s.size))) - s.size }
	for at := take(); at < len(s.list); at = take() {
		s.Work(s.list[at:min(at+s.size, len(s.list))])
	}
}

// keep keeps the first panic, for the caller's goroutine to go on with. A panic of any other
// goroutine would end the process.
func (s *split[T]) keep() {
	if cause := recover(); cause != nil {
		text := fmt.Sprintf("%v\n%s", cause, debug.Stack())
		s.panicked.CompareAndSwap(nil, &text)
	}
}
