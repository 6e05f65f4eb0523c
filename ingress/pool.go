package ingress

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
)

// Bounds of the pool: what waits there is at most poolWork of one worker's time each, and waits
// at most poolPatience. A first guess of what one verification costs is replaced by measuring.
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

// pool runs signature verifications beside the requests. A verification takes as long as a hundred
// book reads; on threads of lower priority the scheduler lets the reads pass, and a flood of signed
// orders was measured to cost them 0.2 ms in the median instead of 6.2.
//
//	do ─► idle? ─► run here, at once
//	       └────► full or this wallet's share taken? ─► errPoolFull
//	                └──► queue ─► worker (own thread, nice 10) ─► done
type pool struct {
	nice    int
	jobs    chan *job
	stop    chan struct{}
	joined  sync.WaitGroup
	cost    atomic.Int64 // ns, moving average
	running atomic.Int32 // verifications in work anywhere
	workers int

	ran, inline, full, expired atomic.Uint64

	mutex   sync.Mutex
	closed  bool
	waiting int
	wallets map[engine.Address]int
}

// job is one verification on its way through the queue.
type job struct {
	wallet   engine.Address
	deadline time.Time
	work     func()
	done     chan error
}

// newPool starts workers threads. nice is their priority, -1 leaves it.
func newPool(workers, nice int) *pool {
	p := &pool{
		nice:    nice,
		workers: workers,
		jobs:    make(chan *job, poolSlots),
		stop:    make(chan struct{}),
		wallets: make(map[engine.Address]int),
	}
	p.cost.Store(int64(poolGuess))
	for range workers {
		p.joined.Go(p.run)
	}
	return p
}

// do runs work, here if nothing else is being verified, else on a worker, and returns when it is
// finished. The wallet is who pays with its share of the queue. Errors: errPoolFull,
// errPoolExpired, errPoolClosed; then work was not called and never will be.
func (p *pool) do(wallet engine.Address, work func()) error {
	if len(p.jobs) == 0 && p.running.CompareAndSwap(0, 1) {
		defer p.running.Add(-1)
		p.inline.Add(1)
		p.measure(work)
		return nil
	}
	j := &job{wallet, time.Now().Add(poolPatience), work, make(chan error, 1)}
	if err := p.enqueue(j); err != nil {
		return err
	}
	return <-j.done
}

// enqueue lets the job in if there is room for it and for its wallet.
func (p *pool) enqueue(j *job) error {
	limit := p.capacity()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.closed {
		return errPoolClosed
	}
	if p.waiting >= limit || p.wallets[j.wallet] >= max(limit/poolShare, 1) {
		p.full.Add(1)
		return errPoolFull
	}
	p.waiting++
	p.wallets[j.wallet]++
	p.jobs <- j // never blocks: waiting < limit <= cap
	return nil
}

// capacity is how many verifications are poolWork of work for all workers.
func (p *pool) capacity() int {
	n := int64(poolWork) * int64(p.workers) / max(p.cost.Load(), 1)
	return int(min(max(n, int64(p.workers)), poolSlots))
}

// leave takes a job out of the counts of the queue.
func (p *pool) leave(j *job) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.waiting--
	if p.wallets[j.wallet]--; p.wallets[j.wallet] == 0 {
		delete(p.wallets, j.wallet)
	}
}

// run is a worker. Its thread is its own for ever: a thread of another priority must not be given
// back, so it is not unlocked, and ends with the goroutine.
func (p *pool) run() {
	runtime.LockOSThread()
	if p.nice >= 0 {
		setNice(p.nice)
	}
	for {
		select {
		case j := <-p.jobs:
			p.finish(j)
		case <-p.stop:
			return
		}
	}
}

// finish runs a job, unless its caller has waited too long already.
func (p *pool) finish(j *job) {
	p.leave(j)
	if time.Now().After(j.deadline) {
		p.expired.Add(1)
		j.done <- errPoolExpired
		return
	}
	p.running.Add(1)
	p.measure(j.work)
	p.running.Add(-1)
	j.done <- nil
}

// measure runs work and moves the average of what it costs by an eighth.
func (p *pool) measure(work func()) {
	start := time.Now()
	work()
	cost := p.cost.Load()
	p.cost.Store(cost + (int64(time.Since(start))-cost)/8)
	p.ran.Add(1)
}

// close refuses new jobs, joins the workers and answers what they left.
func (p *pool) close() {
	p.mutex.Lock()
	closed := p.closed
	p.closed = true
	p.mutex.Unlock()
	if closed {
		return
	}
	close(p.stop)
	p.joined.Wait()
	for {
		select {
		case j := <-p.jobs:
			p.leave(j)
			j.done <- errPoolClosed
		default:
			return
		}
	}
}
