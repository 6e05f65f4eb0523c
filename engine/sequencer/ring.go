package sequencer

import (
	"runtime"
	"sync/atomic"
)

const (
	// line is the padding between cursors: two cache lines, which the hardware fetches together.
	line = 128
	// probes is how often the consumer looks at an empty slot before it parks: 1 to 2 µs. A park
	// and its wake cost more than that, and a longer look takes the core from signature checks.
	probes = 2000
	// turns is how many turns of an empty loop, about 0.5 µs, the consumer looks away when it has
	// emptied the ring. A consumer that looks all the time pulls every slot's line away from the
	// producer that is writing the next one; after a rest it finds 30 values instead of 3.
	turns = 2000
	// shut is the bit of the tail that refuses every later claim.
	shut = 1 << 63
)

// ring is a bounded lock-free queue of many producers and one consumer, which keeps the order of
// claims. A producer claims slots by one compare-and-swap on the tail, writes them in place and
// publishes each by its stamp; the consumer reads whole batches in place and gives the slots back
// with one store of the head.
//
//	         head                    tail
//	          ▼                       ▼
//	┌────┬────┬────┬────┬────┬────┬────┬────┐   stamp = position + 1: published
//	│free│free│ p  │ p  │ w  │ p  │free│free│   w: claimed, still being written;
//	└────┴────┴────┴────┴────┴────┴────┴────┘      later slots wait for this one
type ring[T any] struct {
	// Set once by newRing.
	slots []slot[T]
	mask  uint64
	spin  int           // probes, 0 on one processor
	rest  int           // turns, 0 on one processor
	bell  chan struct{} // one token at most: see park

	_ [line]byte
	// The producers' line: 8 B tail, moved by every claim, and 8 B gate, the newest head that a
	// producer has looked at. Looking again only when the ring seems full keeps the consumer's
	// line out of the way of most claims.
	tail atomic.Uint64
	gate atomic.Uint64

	_ [line]byte
	// The consumer's line: 8 B, stored once per batch.
	head atomic.Uint64

	_ [line]byte
	// Read by every publish, written only when the consumer parks or is woken.
	parked atomic.Bool
	nudged atomic.Bool
	_      [line]byte
}

// slot holds one value. Reading the stamp also fetches the value's first cache line.
type slot[T any] struct {
	stamp atomic.Uint64
	value T
}

// newRing makes a ring of capacity slots, a power of two.
func newRing[T any](capacity int) *ring[T] {
	if capacity <= 0 || capacity&(capacity-1) != 0 {
		panic("BUG: ring capacity is not a power of two")
	}
	r := &ring[T]{
		slots: make([]slot[T], capacity),
		mask:  uint64(capacity - 1),
		spin:  probes,
		rest:  turns,
		bell:  make(chan struct{}, 1),
	}
	if runtime.GOMAXPROCS(0) == 1 {
		r.spin, r.rest = 0, 0 // no producer could run meanwhile
	}
	return r
}

// claim claims n contiguous positions and returns the first. It returns ErrBusy if more than limit
// slots would then be in use, ErrClosed if the ring is closed. Any goroutine.
func (r *ring[T]) claim(n, limit uint64) (uint64, error) {
	for {
		tail := r.tail.Load()
		if tail&shut != 0 {
			return 0, ErrClosed
		}
		// Signed: the consumer may have passed a tail that is stale by now. Then the
		// compare-and-swap fails and the claim starts again.
		if int64(tail+n-r.gate.Load()) > int64(limit) {
			head := r.head.Load()
			r.gate.Store(head)
			if int64(tail+n-head) > int64(limit) {
				return 0, ErrBusy
			}
		}
		if r.tail.CompareAndSwap(tail, tail+n) {
			return tail, nil
		}
	}
}

// at returns the value of a claimed position.
func (r *ring[T]) at(position uint64) *T { return &r.slots[position&r.mask].value }

// publish hands n claimed and written positions to the consumer and wakes a parked one. The stores
// and the load of parked are sequentially consistent: either this producer sees the flag, or the
// consumer sees the stamp when it looks once more before it parks.
func (r *ring[T]) publish(position, n uint64) {
	for end := position + n; position < end; position++ {
		r.slots[position&r.mask].stamp.Store(position + 1)
	}
	if r.parked.Load() {
		r.wake()
	}
}

// wake rings the bell for a parked consumer, once.
func (r *ring[T]) wake() {
	if r.parked.CompareAndSwap(true, false) {
		r.bell <- struct{}{}
	}
}

// nudge makes wait return once even if there is nothing to consume.
func (r *ring[T]) nudge() {
	r.nudged.Store(true)
	if r.parked.Load() {
		r.wake()
	}
}

// close refuses every later claim. The consumer still gets every earlier one.
func (r *ring[T]) close() {
	r.tail.Or(shut)
	r.wake()
}

// peek returns the i-th value after the head, nil while it is not published. Consumer only.
func (r *ring[T]) peek(i uint64) *T {
	position := r.head.Load() + i
	s := &r.slots[position&r.mask]
	if s.stamp.Load() != position+1 {
		return nil
	}
	return &s.value
}

// release gives the first n slots back. Consumer only.
func (r *ring[T]) release(n uint64) { r.head.Store(r.head.Load() + n) }

// wait returns true as soon as there is a value at the head or nudge was called, and false when the
// ring is closed and all claimed positions are released. Consumer only.
func (r *ring[T]) wait() bool {
	if r.peek(0) != nil {
		return true
	}
	for i := 0; i < r.rest; i++ {
	}
	for {
		for range r.spin + 1 {
			if r.peek(0) != nil {
				return true
			}
		}
		if r.drained() {
			return false
		}
		if r.nudged.Swap(false) {
			return true
		}
		r.park()
	}
}

// park sleeps until a publish, a nudge or close rings. It may return early; wait looks again.
func (r *ring[T]) park() {
	r.parked.Store(true)
	if (r.peek(0) != nil || r.drained() || r.nudged.Load()) && r.parked.CompareAndSwap(true, false) {
		return
	}
	// Either the ring is empty, or a producer has already cleared the flag and will ring: that token
	// must not be left for the next park.
	<-r.bell
}

// drained reports whether the ring is closed and empty.
func (r *ring[T]) drained() bool { return r.tail.Load() == r.head.Load()|shut }

// entered returns how many slots were ever claimed. Any goroutine.
func (r *ring[T]) entered() uint64 { return r.tail.Load() &^ shut }

// depth returns the number of slots in use at some recent moment. Any goroutine.
func (r *ring[T]) depth() uint64 {
	head := r.head.Load()
	return max(r.tail.Load()&^shut, head) - head
}
