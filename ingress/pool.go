package ingress

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
	"clobd/ingress/limits"
	"clobd/ingress/party"
)

// Bounds of the pool.
const (
	poolBurst    = 25 * time.Millisecond  // until its turn, of the last piece that may wait
	poolWait     = 5 * time.Millisecond   // the same in a flood
	floodWeight  = 8                      // turns without a refusal make up for one refusal
	floodBegins  = 128                    // turns to make up for; 4 times these at most
	floodParty   = 5                      // members of a party in a flood: all else waits less
	poolFew      = 64                     // callers may all wait if no more ask
	poolGuess    = 100 * time.Microsecond // of a seat's work, until turns were measured
	gapsKept     = 64                     // turns that the measure covers, roughly
	poolPatience = time.Second            // of each piece that waits
	poolSlots    = 8192                   // of the queue, however short the gaps are
	poolShare    = 4                      // one wallet may hold this part of the queue
	readsLast    = 100 * time.Millisecond // after a read there is one seat less
)

// Why the pool did not run a piece of work. In each case nothing happened.
var (
	errPoolFull    = errors.New("verification queue is full")
	errPoolExpired = errors.New("verification waited too long")
	errPoolClosed  = errors.New("verification pool is closed")
)

// pool bounds how many orders are worked on at once. One order takes as long as many book reads: if
// all orders ran at once, a read would wait for all of them. Orders that wait for a seat are
// parked. Answers, and what else comes back from the ring, go before new work, and one of them need
// not wait for a seat: they end work that was let in.
//
// A flood of refusals takes time, too, and what an order costs tells nothing of that. So the gaps
// from turn to turn tell how long the queue is in time. A burst may fill it, a flood may not keep
// it full. A few callers who wait for each answer are no flood, however dear their lists are.
//
//	do ─► a seat is free ─► run
//	 └──► full, or this wallet's share is taken ─► errPoolFull
//	       └──► wait, first come first served ─► who leaves passes the seat on: to the next
//	            one, or to a party of the next ones ─► run
//	back ─► the same before all others, and never refused
type pool struct {
	workers int // seats
	few     int // poolFew
	spans   spans
	began   time.Time
	read    atomic.Int64 // when somebody read last, after began
	flood   atomic.Int64 // turns to make up for
	gap     atomic.Int64 // ns from turn to turn while some wait, moving average

	ran, waited, full, expired atomic.Uint64

	mutex   sync.Mutex
	closed  bool
	running int
	queue   queue // new work
	answers queue
	waiting int // in the queue
	wallets map[engine.Address]int
	turned  time.Time    // the last turn, or when somebody began to wait after that
	crowd   limits.Crowd // of callers
}

// spans are the pool's bounds in time. They are set before its first use.
type spans struct {
	burst    time.Duration // until its turn, of the last piece that may wait
	wait     time.Duration // the same in a flood
	patience time.Duration // of each piece that waits
	reads    time.Duration // after a read, with one seat less
}

// waiter is a goroutine that waits for a seat. Once the goroutine has a seat of its own, has left
// its party, or has the error that ends its wait, the waiter can be used again.
type waiter struct {
	wallet   engine.Address
	deadline time.Time
	seen     int64    // by the Crowd
	shares   bool     // it may share a seat
	party    *company // with whom it has its seat
	next     *waiter
	turn     chan error // nil: a seat is yours, or all of a party were checked
}

func newWaiter() *waiter { return &waiter{turn: make(chan error, 1)} }

// company is the orders that share a seat. Whoever shares with nobody has alone.
type company = party.Party[*placement]

var alone = new(company)

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

func (q *queue) pop() *waiter {
	w := q.first
	if w != nil {
		q.first = w.next
	}
	return w
}

func newPool(workers int) *pool {
	p := &pool{workers: workers, few: poolFew, began: time.Now(), crowd: limits.NewCrowd(),
		spans:   spans{burst: poolBurst, wait: poolWait, patience: poolPatience, reads: readsLast},
		wallets: make(map[engine.Address]int)}
	p.gap.Store(int64(poolGuess) / int64(workers))
	p.read.Store(-int64(p.spans.reads))
	return p
}

// do runs work as soon as there is a seat, and returns when work has finished. While it waits, it
// takes from wallet's share of the queue. After an error (errPool…) work was never called.
func (p *pool) do(wallet engine.Address, work func()) error {
	w := newWaiter()
	if err := p.sit(w, wallet, false); err != nil {
		return err
	}
	defer p.leave(w.party) // also if work panics
	work()
	return nil
}

func (p *pool) reading(at time.Time) {
	grain := int64(p.spans.reads) / 8 // most reads need not write: all others look at it
	if now := int64(at.Sub(p.began)); now > p.read.Load()+grain {
		p.read.Store(now)
	}
}

// seats is how many orders may be worked on now, beside one answer. While somebody reads, one CPU
// is left free.
func (p *pool) seats() int {
	if p.workers > 1 && int64(time.Since(p.began))-p.read.Load() < int64(p.spans.reads) {
		return p.workers - 1
	}
	return p.workers
}

// sit takes a seat, or waits for one as w. Errors are those of do.
func (p *pool) sit(w *waiter, wallet engine.Address, proven bool) error {
	waits, err := p.enter(w, wallet, proven)
	if waits != nil {
		err = <-waits.turn
	}
	return err
}

// enter takes a seat, or lets w line up if the queue and the wallet's share of it have room: then
// enter returns w, for whose turn the caller must wait. Whoever has proven good finds room when
// others have filled the queue.
func (p *pool) enter(w *waiter, wallet engine.Address, proven bool) (waits *waiter, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.closed {
		return nil, errPoolClosed
	}
	w.party = alone
	p.fill()
	if p.running < p.seats() {
		p.running++
		p.ran.Add(1)
		return nil, nil
	}
	limit, share := p.limit(w, wallet, proven)
	if p.waiting >= limit {
		return nil, p.refuse()
	} else if p.wallets[wallet] >= share { // no flood, but of one caller
		p.full.Add(1)
		return nil, errPoolFull
	}
	now := time.Now()
	w.wallet, w.deadline = wallet, now.Add(p.spans.patience)
	if p.queue.push(w); p.waiting == 0 {
		p.turned = now
	}
	p.waiting++
	p.wallets[wallet]++
	p.waited.Add(1)
	return w, nil
}

// crowded reports whether the queue is so long that enter would refuse new work of a wallet.
func (p *pool) crowded(w *waiter, wallet engine.Address, proven bool) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.fill()
	if p.waiting == 0 || p.closed {
		return false
	}
	limit, _ := p.limit(w, wallet, proven)
	return p.waiting >= limit
}

// limit counts a caller, and returns how many may wait now, and how many of a wallet.
func (p *pool) limit(w *waiter, wallet engine.Address, proven bool) (limit, share int) {
	p.crowd.Note(&w.seen, time.Now())
	if limit = p.capacity(); p.crowd.Size() <= p.few {
		limit = max(limit, min(p.few, int(int64(p.spans.patience)/2/p.gap.Load())))
	}
	share = max(limit/poolShare, 1)
	if proven && p.wallets[wallet] == 0 {
		limit += max(limit/poolShare, min(limit-1, 1))
	}
	return limit, share
}

// refuse refuses work because the queue has no room. Many refusals are a flood.
func (p *pool) refuse() error {
	p.full.Add(1)
	p.flood.Store(min(p.flood.Load()+floodWeight, 4*floodBegins))
	return errPoolFull
}

// try takes at most so many free seats, and returns how many. leave gives one back.
func (p *pool) try(most int) (taken int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.fill()
	if !p.closed {
		taken = max(min(most, p.seats()-p.running), 0)
	}
	p.running += taken
	return taken
}

func (p *pool) flooded() bool { return p.flood.Load() >= floodBegins }

// capacity is how many pieces of work may wait.
func (p *pool) capacity() int {
	wait := p.spans.burst
	if p.flooded() {
		wait = p.spans.wait
	}
	return int(min(max(int64(wait)/p.gap.Load(), int64(p.workers)), poolSlots))
}

func (p *pool) queued() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.waiting
}

// back waits for a seat as w, with the answer to work that was let in.
func (p *pool) back(w *waiter) {
	p.mutex.Lock()
	p.answers.push(w)
	p.fill()
	p.mutex.Unlock()
	<-w.turn
}

// leave ends the work of an order in its seat. The last order of a party gives the seat back.
func (p *pool) leave(g *company) {
	if g == alone || g.Leave() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.running--
		p.fill()
	}
}

// fill gives free seats to answers, then to new work that is not too old. The mutex is held.
func (p *pool) fill() {
	for p.answers.first != nil && p.running <= p.seats() {
		p.running++
		p.answers.pop().turn <- nil
	}
	for p.queue.first != nil && p.running < p.seats() {
		if first := p.next(time.Now()); first != nil {
			p.running++
			first.turn <- nil
		}
	}
}

// next takes from the queue who gets a seat: the first one, in a party with those who follow if all
// of them may share it and enough wait. Each free seat gets its part. Whoever is in a party no
// longer counts as waiting. If all that next took had waited for too long, it returns nil.
func (p *pool) next(now time.Time) (first *waiter) {
	g, most := alone, 1
	if p.waiting >= party.Least && p.queue.first.shares {
		free, top := p.seats()-p.running, party.Most
		if p.flooded() {
			top = floodParty
		}
		g, most = new(company), min(max((p.waiting+free-1)/free, party.Least), top)
	}
	for n := 0; n < most; {
		w := p.queue.first
		if w == nil || g != alone && !w.shares {
			break
		}
		if p.pop(); now.After(w.deadline) {
			p.expired.Add(1)
			w.turn <- errPoolExpired
			continue
		}
		p.turns(now)
		p.ran.Add(1)
		if w.party = g; g != alone {
			g.Join(w.turn)
		}
		if n++; n == 1 {
			first = w
		}
	}
	return first
}

// turns notes that an order that has waited gets its seat. A pause of the machine tells nothing of
// the pace, so one pause counts as gapsKept gaps at most, and halves the room.
func (p *pool) turns(now time.Time) {
	gap := p.gap.Load()
	most := min(max(gapsKept*gap, int64(poolGuess)), int64(poolBurst))
	p.gap.Store(gap + (min(int64(now.Sub(p.turned)), most)-gap)/gapsKept)
	p.turned = now
	p.flood.Store(max(p.flood.Load()-1, 0))
}

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

// close refuses new work and all that waits. Running work and its answers go on.
func (p *pool) close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.closed = true
	for w := p.pop(); w != nil; w = p.pop() {
		w.turn <- errPoolClosed
	}
}
