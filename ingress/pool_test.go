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
		p.leave()
	}
	waits.joined.Wait()
	if string(order) != "\x01\x01\x02\x02\x03\x03\x04\x04" {
		t.Fatalf("ran in the order %v", order)
	}
	if p.full.Load() != 4 || len(p.wallets) != 0 || p.waiting != 0 || p.running != 0 {
		t.Fatalf("full %d, wallets %v, waiting %d, running %d",
			p.full.Load(), p.wallets, p.waiting, p.running)
	}
}

// TestPoolPace: how many may wait follows from how fast the queue moves, whatever an order costs,
// and a pause of the machine counts as a burst at most.
func TestPoolPace(t *testing.T) {
	p := newPool(1)
	p.few, p.waiting = 0, 1
	at := p.began
	turn := func(n int, gap time.Duration) {
		for range n {
			at = at.Add(gap)
			p.turns(at)
		}
	}
	for gap, want := range map[time.Duration]int{time.Millisecond: 25, 250 * time.Microsecond: 100} {
		turn(1000, gap)
		p.refused.Store(0)
		if n := p.capacity(); n < want-1 || n > want+1 {
			t.Errorf("%d may wait at %v, want %d", n, gap, want)
		}
		_ = p.refuse()
		if n := p.capacity(); n < want/5-1 || n > want/5+1 {
			t.Errorf("%d may wait soon after a refusal at %v, want %d", n, gap, want/5)
		}
		p.refused.Add(-int64(floodLasts))
		if n := p.capacity(); n < want-1 || n > want+1 {
			t.Errorf("%d may wait after a while without refusals at %v, want %d", n, gap, want)
		}
	}
	turn(1000, time.Millisecond)
	turn(1, time.Hour)
	if n := p.capacity(); n < 15 {
		t.Errorf("%d may wait after a pause", n)
	}
	p.waiting = 0
	turn(1, time.Millisecond)
	gap := p.gap.Load()
	if turn(1, time.Hour); p.gap.Load() != gap {
		t.Error("a turn after which nobody waited begins no gap")
	}
}

// TestPoolFew: callers who wait for each of their answers may all wait, until there are too many.
func TestPoolFew(t *testing.T) {
	p := newPool(1)
	p.gap.Store(int64(time.Second)) // dear lists
	if w, err := p.enter(newWaiter(), engine.Address{}, false); w != nil || err != nil {
		t.Fatal(w, err)
	}
	for i := range poolFew {
		if w, err := p.enter(newWaiter(), engine.Address{byte(i)}, false); w == nil || err != nil {
			t.Fatalf("%d wait, the next one does not: %v", i, err)
		}
	}
	p.crowd = limits.NewCrowd()
	for i := range poolFew + 1 {
		limit, _ := p.limit(newWaiter(), engine.Address{1}, false)
		if (limit == poolFew) != (i < poolFew) {
			t.Errorf("%d may wait when %d callers ask", limit, i+1)
		}
	}
}

// TestPoolAnswers: one answer more may run than there are places.
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
	p.leave()
	second.Wait()
	if p.running != 2 || len(w.turn) != 0 {
		t.Errorf("%d run, %d of those who wait", p.running, len(w.turn))
	}
	p.leave()
	p.leave()
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
