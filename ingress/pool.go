package ingress

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
)

// Bounds of the pool: what waits there is at most poolWork of one place's time each, and waits at
// most poolPatience. A first guess of what one verification costs is replaced by measuring.
const (
	poolWork     = 50 * time.Millisecond
	poolPatience = time.Second
	poolGuess    = 100 * time.Microsecond
	poolSlots    = 8192 // cap of the queue however cheap a verification is
	poolShare    = 4    // one wallet may hold this part of the queue
)

// Why the pool did not run a job. In each case nothing happened.
var (
	errPoolFull    = errors.New("verification queue is full")
	errPoolExpired = errors.New("verification waited too long")
	errPoolClosed  = errors.New("verification pool is closed")
)

// pool bounds how many signatures are verified at once. A verification takes as long as many book
// reads: if every request that carries one ran its own, the scheduler's queue would be full of
// them and a read would wait for all. Those that wait for a place here are parked, not runnable,
// and each runs in its own goroutine: no thread is woken, nothing is handed over.
//
//	do ─► a place is free ─► run
//	 └──► full, or this wallet's share is taken ─► errPoolFull
//	       └──► wait, first come first served ─► the one who leaves gives his place on ─► run
type pool struct {
	workers int
	cost    atomic.Int64 // ns, moving average

	ran, waited, full, expired atomic.Uint64

	mutex   sync.Mutex
	closed  bool
	running int
	first   *waiter // of the queue
	last    *waiter
	waiting int
	wallets map[engine.Address]int
}

// waiter is one verification that waits for a place.
type waiter struct {
	wallet   engine.Address
	deadline time.Time
	next     *waiter
	turn     chan error // nil: the place is yours
}

// newPool makes a pool of so many places, at least 1.
func newPool(workers int) *pool {
	p := &pool{workers: workers, wallets: make(map[engine.Address]int)}
	p.cost.Store(int64(poolGuess))
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
	cost := p.cost.Load()
	p.cost.Store(cost + (int64(time.Since(start))-cost)/8)
	p.ran.Add(1)
	return nil
}

// enter takes a place, or one in the queue if there is room for it and for its wallet.
func (p *pool) enter(wallet engine.Address) (*waiter, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.closed {
		return nil, errPoolClosed
	}
	if p.running < p.workers {
		p.running++
		return nil, nil
	}
	limit := p.capacity()
	if p.waiting >= limit || p.wallets[wallet] >= max(limit/poolShare, 1) {
		p.full.Add(1)
		return nil, errPoolFull
	}
	w := &waiter{wallet, time.Now().Add(poolPatience), nil, make(chan error, 1)}
	if p.last == nil {
		p.first = w
	} else {
		p.last.next = w
	}
	p.last = w
	p.waiting++
	p.wallets[wallet]++
	p.waited.Add(1)
	return w, nil
}

// capacity is how many verifications are poolWork of work for all places.
func (p *pool) capacity() int {
	n := int64(poolWork) * int64(p.workers) / max(p.cost.Load(), 1)
	return int(min(max(n, int64(p.workers)), poolSlots))
}

// queued is how many wait.
func (p *pool) queued() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.waiting
}

// leave gives the place to the first who has not waited too long, or back.
func (p *pool) leave() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for w := p.pop(); w != nil; w = p.pop() {
		if !time.Now().After(w.deadline) {
			w.turn <- nil
			return
		}
		p.expired.Add(1)
		w.turn <- errPoolExpired
	}
	p.running--
}

// pop takes the first out of the queue; nil if nobody waits.
func (p *pool) pop() *waiter {
	w := p.first
	if w == nil {
		return nil
	}
	if p.first = w.next; p.first == nil {
		p.last = nil
	}
	p.waiting--
	if p.wallets[w.wallet]--; p.wallets[w.wallet] == 0 {
		delete(p.wallets, w.wallet)
	}
	return w
}

// close refuses new work and answers who waits. What runs goes on.
func (p *pool) close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.closed = true
	for w := p.pop(); w != nil; w = p.pop() {
		w.turn <- errPoolClosed
	}
}
