package ingress

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clobd/engine"
	"clobd/ingress/limits"
)

// unhurry has p keep for an hour what it keeps for a moment: who waits in it, and that somebody has
// read; and it has room for all who wait, however long the machine takes for what one of them does.
func unhurry(p *pool) *pool {
	p.spans = spans{wait: time.Hour, burst: time.Hour, patience: time.Hour, reads: time.Hour}
	p.read.Store(-int64(p.spans.reads))
	return p
}

// roomForOne lets one wait for each place, whatever has been measured.
func roomForOne(p *pool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.few, p.spans.wait, p.spans.burst = 0, 0, 0
}

// roomFor lets n wait, whoever asks.
func roomFor(p *pool, n int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.spans.wait = p.spans.burst
	p.gap.Store(int64(p.spans.burst) / int64(n))
	p.few = 0
}

// occupy takes every place of p until the returned function is called.
func occupy(t *testing.T, p *pool) (release func()) {
	t.Helper()
	gate := make(chan struct{})
	var busy, joined sync.WaitGroup
	busy.Add(p.workers)
	for i := range p.workers {
		joined.Go(func() {
			if err := p.do(engine.Address{0xff, byte(i)}, func() { busy.Done(); <-gate }); err != nil {
				t.Errorf("occupy: %v", err)
			}
		})
	}
	busy.Wait()
	return func() { close(gate); joined.Wait() }
}

// line is who waits in a test.
type line struct {
	t      *testing.T
	joined sync.WaitGroup
}

// queue calls p.do in a goroutine and returns when it waits.
func (l *line) queue(p *pool, wallet byte, work func()) {
	want := p.queued() + 1
	l.joined.Go(func() {
		if err := p.do(engine.Address{wallet}, work); err != nil {
			l.t.Errorf("wallet %d: %v", wallet, err)
		}
	})
	awaitQueue(l.t, p, want)
}

// awaitQueue waits until so many jobs wait for a place.
func awaitQueue(t *testing.T, p *pool, want int) {
	t.Helper()
	for deadline := time.Now().Add(patience); p.queued() < want; {
		if time.Now().After(deadline) {
			t.Errorf("%d jobs wait for a place, want %d", p.queued(), want)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// awaitBack waits until an answer waits for a place.
func awaitBack(t *testing.T, p *pool) {
	t.Helper()
	answers := func() bool {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		return p.answers.first != nil
	}
	for deadline := time.Now().Add(patience); !answers(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no answer waits for a place")
		}
	}
}

// TestPoolSpans: the bounds that a pool has where no test sets others.
func TestPoolSpans(t *testing.T) {
	want := spans{wait: 5 * time.Millisecond, burst: 25 * time.Millisecond, patience: time.Second,
		reads: 100 * time.Millisecond}
	if got := newPool(1).spans; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestPoolRunsAtOnceWhenIdle(t *testing.T) {
	p := unhurry(newPool(2))
	for range 10 {
		if err := p.do(engine.Address{}, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	if p.waited.Load() != 0 || p.ran.Load() != 10 || p.running != 0 {
		t.Fatalf("%d waited of %d, %d still run", p.waited.Load(), p.ran.Load(), p.running)
	}
}

func TestPoolBoundsWhatRunsAtOnce(t *testing.T) {
	const places = 3
	p := unhurry(newPool(places))
	var now, most atomic.Int32
	full := make(chan struct{}) // closed when all places are taken: nobody leaves before
	filled := sync.OnceFunc(func() { close(full) })
	var joined sync.WaitGroup
	for i := range 60 {
		joined.Go(func() {
			err := p.do(engine.Address{byte(i)}, func() {
				n := now.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				if n == places {
					filled()
				}
				select {
				case <-full:
				case <-time.After(patience):
				}
				now.Add(-1)
			})
			if err != nil {
				t.Errorf("job %d: %v", i, err)
			}
		})
	}
	joined.Wait()
	if most.Load() != places || p.ran.Load() != 60 || p.running != 0 {
		t.Fatalf("%d at once, %d ran, %d still run", most.Load(), p.ran.Load(), p.running)
	}
}

func TestPoolIsBounded(t *testing.T) {
	p := unhurry(newPool(1))
	release := occupy(t, p)
	roomFor(p, 8) // of which 2 for one wallet
	if p.capacity() != 8 {
		t.Fatalf("capacity %d", p.capacity())
	}
	waits := line{t: t}
	var order []byte // the place guards it
	enter := func(wallet byte) {
		waits.queue(p, wallet, func() { order = append(order, wallet) })
	}
	enter(1)
	enter(1)
	if err := p.do(engine.Address{1}, nil); err != errPoolFull {
		t.Fatalf("third job of one wallet: %v", err)
	}
	for wallet := range byte(3) {
		enter(2 + wallet)
		enter(2 + wallet)
	}
	if err := p.do(engine.Address{11}, nil); err != errPoolFull {
		t.Fatalf("ninth job: %v", err)
	}
	// Who has proven good finds room where others do not, unless his share is taken.
	if _, err := p.enter(newWaiter(), engine.Address{1}, true); err != errPoolFull {
		t.Fatalf("third job of one proven wallet: %v", err)
	}
	var proven []*waiter
	for wallet := range byte(2) {
		w, err := p.enter(newWaiter(), engine.Address{20 + wallet}, true)
		if err != nil {
			t.Fatalf("a proven wallet: %v", err)
		}
		proven = append(proven, w)
	}
	if _, err := p.enter(newWaiter(), engine.Address{22}, true); err != errPoolFull {
		t.Fatalf("eleventh job: %v", err)
	}
	release()
	for _, w := range proven {
		if err := <-w.turn; err != nil {
			t.Fatalf("a proven wallet: %v", err)
		}
		p.leave(alone)
	}
	waits.joined.Wait()
	if string(order) != "\x01\x01\x02\x02\x03\x03\x04\x04" {
		t.Fatalf("ran in the order %v", order)
	}
	if p.flood.Load() > 2*floodWeight { // a wallet's own share is no flood
		t.Errorf("flood %d", p.flood.Load())
	}
	if p.full.Load() != 4 || len(p.wallets) != 0 || p.waiting != 0 || p.running != 0 {
		t.Fatalf("full %d, wallets %v, waiting %d, running %d",
			p.full.Load(), p.wallets, p.waiting, p.running)
	}
}

// TestPoolPace: a queue that moves fast may be long, and one that moves slowly must be short.
func TestPoolPace(t *testing.T) {
	p := newPool(1)
	at := p.began
	p.few, p.turned = 0, at
	turn := func(n int, gap time.Duration) {
		for range n {
			at = at.Add(gap)
			p.turns(at)
		}
	}
	for _, c := range []struct {
		gap                  time.Duration
		burst, flood, paused int // may wait; paused: after a pause of the machine, at least
	}{
		{50 * time.Microsecond, 500, 100, 245}, {time.Millisecond, 25, 5, 18},
		{12 * time.Millisecond, 2, 1, 1}, {250 * time.Microsecond, 100, 20, 49},
	} {
		near := func(what string, want int) {
			t.Helper()
			if n := p.capacity(); n < want*95/100 || n > want*105/100+1 {
				t.Errorf("%d may wait %s at %v, want %d", n, what, c.gap, want)
			}
		}
		turn(1000, c.gap)
		if limit, _ := p.limit(newWaiter(), engine.Address{}, true); limit <= p.capacity() {
			t.Errorf("%d may wait at %v if one has proven good", limit, c.gap)
		}
		near("at first", c.burst)
		for i := range 1000 {
			if _ = p.refuse(); i < floodBegins/floodWeight-1 {
				near("after few refusals", c.burst)
			}
		}
		near("in a flood", c.flood)
		turn(3*floodBegins+1, c.gap)
		near("after the flood", c.burst)
		if turn(1, time.Hour); p.capacity() < c.paused {
			t.Errorf("%d may wait after a pause at %v, want %d", p.capacity(), c.gap, c.paused)
		}
	}
}

// TestPoolUnlearns: one seat whose orders were so dear that one alone may wait, and nobody behind
// that one, learns that they are cheap again. Time in which nobody waits is no gap.
func TestPoolUnlearns(t *testing.T) {
	p := newPool(1)
	p.few = 0
	p.gap.Store(int64(poolBurst))
	w := newWaiter()
	seated := func() {
		if waits, err := p.enter(newWaiter(), engine.Address{1}, false); waits != nil || err != nil {
			t.Fatal(waits, err)
		}
	}
	for range 1000 {
		seated()
		if waits, err := p.enter(w, engine.Address{2}, false); waits == nil || err != nil {
			t.Fatal(waits, err)
		}
		p.leave(alone)
		<-w.turn
		p.leave(alone)
	}
	learned := p.gap.Load()
	if learned > int64(poolBurst)/4 {
		t.Errorf("the gap is still %v", time.Duration(learned))
	}
	p.turned = p.turned.Add(-time.Hour)
	seated()
	_, err := p.enter(w, engine.Address{2}, false)
	if began := time.Since(p.turned); err != nil || began > time.Minute {
		t.Errorf("the wait began %v ago, %v", began, err)
	}
}

// TestPoolFew: callers who wait for each of their answers may all wait, until there are too many.
func TestPoolFew(t *testing.T) {
	p := newPool(1)
	p.gap.Store(int64(7 * time.Millisecond)) // dear lists
	if w, err := p.enter(newWaiter(), engine.Address{}, false); w != nil || err != nil {
		t.Fatal(w, err)
	}
	for i := range poolFew {
		if w, err := p.enter(newWaiter(), engine.Address{byte(i)}, false); w == nil || err != nil {
			t.Fatalf("%d wait, the next one does not: %v", i, err)
		}
	}
	for end := time.Now().Add(patience); ; { // callers count for a moment only
		p.crowd = limits.NewCrowd()
		last, before := 0, 0
		for range poolFew + 1 {
			before = last
			last, _ = p.limit(newWaiter(), engine.Address{1}, false)
		}
		if before == poolFew && last == int(poolBurst/(7*time.Millisecond)) {
			return
		} else if time.Now().After(end) {
			t.Fatalf("%d may wait when %d ask, %d when one more does", before, poolFew, last)
		}
	}
}

// TestPoolAnswers: when all places are taken, one answer runs all the same, and a second one waits.
func TestPoolAnswers(t *testing.T) {
	p := unhurry(newPool(1))
	w, answers := newWaiter(), [2]*waiter{newWaiter(), newWaiter()}
	for range 2 {
		if _, err := p.enter(w, engine.Address{1}, false); err != nil {
			t.Fatal(err)
		}
	}
	p.back(answers[0])
	var second sync.WaitGroup
	second.Go(func() { p.back(answers[1]) })
	awaitBack(t, p)
	p.leave(alone)
	second.Wait()
	if p.running != 2 || len(w.turn) != 0 {
		t.Errorf("%d run, %d of those who wait", p.running, len(w.turn))
	}
	p.leave(alone)
	p.leave(alone)
	if p.running != 1 || len(w.turn) != 1 {
		t.Errorf("%d run, %d of those who wait", p.running, len(w.turn))
	}
}

func TestPoolAnswersTheExpired(t *testing.T) {
	p := unhurry(newPool(1))
	release := occupy(t, p)
	late, err := p.enter(newWaiter(), engine.Address{1}, false)
	if err != nil {
		t.Fatal(err)
	}
	late.deadline = time.Now().Add(-1)
	waits := line{t: t}
	waits.queue(p, 2, func() {})
	release()
	waits.joined.Wait()
	if err := <-late.turn; err != errPoolExpired {
		t.Fatalf("expired job: %v", err)
	}
	if p.expired.Load() != 1 || p.running != 0 {
		t.Fatalf("%d expired, %d still run", p.expired.Load(), p.running)
	}
}

func TestPoolGivesItsPlaceBackAfterAPanic(t *testing.T) {
	p := unhurry(newPool(1))
	func() {
		defer func() { _ = recover() }()
		_ = p.do(engine.Address{}, func() { panic("on purpose") })
	}()
	if err := p.do(engine.Address{}, func() {}); err != nil || p.running != 0 {
		t.Fatalf("after a panic: %v, %d still run", err, p.running)
	}
}

func TestPoolClose(t *testing.T) {
	p := unhurry(newPool(1))
	release := occupy(t, p)
	waits, err := p.enter(newWaiter(), engine.Address{1}, false)
	if err != nil {
		t.Fatal(err)
	}
	p.close()
	p.close() // may be called often
	if err := <-waits.turn; err != errPoolClosed {
		t.Fatalf("waiting at close: %v", err)
	}
	if err := p.do(engine.Address{1}, nil); err != errPoolClosed {
		t.Fatalf("after close: %v", err)
	}
	release()
}

func BenchmarkPool(b *testing.B) {
	p := newPool(2)
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := p.do(engine.Address{}, func() {}); err != nil && err != errPoolFull {
				b.Error(err)
			}
		}
	})
}
