package ingress

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
)

// Bounds of the pool: what waits there is at most poolWork of one place's time each, and waits at
// most poolPatience. A first guess of what one piece of work costs is replaced by measuring.
const (
	poolWork     = 50 * time.Millisecond
	poolPatience = time.Second
	poolGuess    = 100 * time.Microsecond
	poolSlots    = 8192 // cap of the queue however cheap the work is
	poolShare    = 4    // one wallet may hold this part of the queue

	// After a read one place less is given out for so long: long enough that a few reads a second
	// keep it.
	readsLast = 100 * time.Millisecond
)

// Why the pool did not run a job. In each case nothing happened.
var (
	errPoolFull    = errors.New("verification queue is full")
	errPoolExpired = errors.New("verification waited too long")
	errPoolClosed  = errors.New("verification pool is closed")
)

// pool bounds how many orders are worked on at once. One takes as long as many book reads: if every
// request ran at once, the scheduler's queue would be full of them and a read would wait for all.
// Those that wait for a place here are parked, not runnable, and each runs in its own goroutine: no
// thread is woken, nothing is handed over. Answers go before new work: they are what is left of
// work that was let in, and end it.
//
//	do ─► a place is free ─► run
//	 └──► full, or this wallet's share is taken ─► errPoolFull
//	       └──► wait, first come first served ─► the one who leaves gives his place on ─► run
//	back ─► the same before all others, and never refused
type pool struct {
	workers int
	spans   spans
	began   time.Time
	read    atomic.Int64 // when somebody read last, after began
	cost    atomic.Int64 // ns, moving average

	ran, waited, full, expired atomic.Uint64

	mutex   sync.Mutex
	closed  bool
	running int
	queue   queue // of new work
	answers queue
	waiting int // of the queue
	wallets map[engine.Address]int
}

// spans are what a pool's bounds are in time. They are set before its first use.
type spans struct {
	work     time.Duration // of one place, that may wait
	patience time.Duration // of who waits
	reads    time.Duration // for which one place less is given out after a read
}

// waiter is who waits for a place.
type waiter struct {
	wallet   engine.Address
	deadline time.Time
	next     *waiter
	turn     chan error // nil: the place is yours
}

// queue holds waiters in their order.
type queue struct{ first, last *waiter }

func (q *queue) push(w *waiter) {
	w.next = nil
	if q.first == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
}

// pop takes the first one out; nil if nobody waits.
func (q *queue) pop() *waiter {
	w := q.first
	if w != nil {
		q.first = w.next
	}
	return w
}

// newPool makes a pool of so many places, at least 1.
func newPool(workers int) *pool {
	p := &pool{workers: workers, began: time.Now(), wallets: make(map[engine.Address]int),
		spans: spans{work: poolWork, patience: poolPatience, reads: readsLast}}
	p.cost.Store(int64(poolGuess))
	p.read.Store(-int64(p.spans.reads))
	return p
}

// do runs work as soon as there is a place for it and returns when it is finished. The wallet is
// who pays with its share of the queue. Errors: errPoolFull, errPoolExpired, errPoolClosed; then
// work was not called and never will be.
func (p *pool) do(wallet engine.Address, work func()) error {
	w, err := p.enter(wallet)
	if err != nil {
		return err
	}
	if w != nil {
		if err := <-w.turn; err != nil {
			return err
		}
	}
	defer p.leave() // also if work panics
	start := time.Now()
	work()
	p.ranFor(time.Since(start))
	return nil
}

// ranFor notes what one piece of work took.
func (p *pool) ranFor(d time.Duration) {
	cost := p.cost.Load()
	p.cost.Store(cost + (int64(d)-cost)/8)
	p.ran.Add(1)
}

// reading notes that somebody reads at this time.
func (p *pool) reading(at time.Time) {
	grain := int64(p.spans.reads) / 8 // most reads need not write what all others look at
	if now := int64(at.Sub(p.began)); now > p.read.Load()+grain {
		p.read.Store(now)
	}
}

// places is how many may run now. While somebody reads, one CPU is left to him: the places are as
// many as there are CPUs, and the kernel would let a read wait for the turns of all of them.
func (p *pool) places() int {
	if p.workers > 1 && int64(time.Since(p.began))-p.read.Load() < int64(p.spans.reads) {
		return p.workers - 1
	}
	return p.workers
}

// enter takes a place, or one in the queue if there is room for it and for its wallet.
func (p *pool) enter(wallet engine.Address) (*waiter, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.closed {
		return nil, errPoolClosed
	}
	p.fill()
	if p.running < p.places() {
		p.running++
		return nil, nil
	}
	limit := p.capacity()
	if p.waiting >= limit || p.wallets[wallet] >= max(limit/poolShare, 1) {
		p.full.Add(1)
		return nil, errPoolFull
	}
	w := &waiter{wallet, time.Now().Add(p.spans.patience), nil, make(chan error, 1)}
	p.queue.push(w)
	p.waiting++
	p.wallets[wallet]++
	p.waited.Add(1)
	return w, nil
}

// try takes a place if there is one that nobody waits for. leave gives it back.
func (p *pool) try() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.fill()
	if p.closed || p.running >= p.places() {
		return false
	}
	p.running++
	return true
}

// capacity is how many pieces of work are poolWork of work for all places.
func (p *pool) capacity() int {
	n := int64(p.spans.work) * int64(p.workers) / max(p.cost.Load(), 1)
	return int(min(max(n, int64(p.workers)), poolSlots))
}

// queued is how many wait.
func (p *pool) queued() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.waiting
}

// back waits for a place with an answer to what was let in before: w is used for nothing else.
func (p *pool) back(w *waiter) {
	p.mutex.Lock()
	p.answers.push(w)
	p.fill()
	p.mutex.Unlock()
	<-w.turn
}

// leave gives the place back.
func (p *pool) leave() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.running--
	p.fill()
}

// fill gives the places that are free to answers and to those who have not waited too long. There
// are more of them than the last one gave back where somebody has stopped reading since; no clock
// looks for that, as whoever has a place computes and is gone in a moment. The mutex is held.
func (p *pool) fill() {
	for p.answers.first != nil || p.queue.first != nil {
		if p.running >= p.places() {
			return
		}
		w := p.answers.pop()
		if w == nil {
			w = p.patient()
		}
		if w == nil {
			return
		}
		p.running++
		w.turn <- nil
	}
}

// patient takes the first out of the queue who has not waited too long; nil if nobody waits.
func (p *pool) patient() *waiter {
	for w := p.pop(); w != nil; w = p.pop() {
		if !time.Now().After(w.deadline) {
			return w
		}
		p.expired.Add(1)
		w.turn <- errPoolExpired
	}
	return nil
}

// pop takes the first out of the queue; nil if nobody waits.
func (p *pool) pop() *waiter {
	w := p.queue.pop()
	if w == nil {
		return nil
	}
	p.waiting--
	if p.wallets[w.wallet]--; p.wallets[w.wallet] == 0 {
		delete(p.wallets, w.wallet)
	}
	return w
}

// close refuses new work and answers who waits. What runs goes on, and so do answers.
func (p *pool) close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.closed = true
	for w := p.pop(); w != nil; w = p.pop() {
		w.turn <- errPoolClosed
	}
}
