package ingress

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clobd/engine"
)

// occupy takes the inline place and every worker of p until the returned function is called.
func occupy(t *testing.T, p *pool) (release func()) {
	t.Helper()
	gate := make(chan struct{})
	var busy, joined sync.WaitGroup
	busy.Add(1 + p.workers)
	for i := range 1 + p.workers {
		joined.Go(func() {
			if err := p.do(engine.Address{0xff, byte(i)}, func() { busy.Done(); <-gate }); err != nil {
				t.Errorf("occupy: %v", err)
			}
		})
		for p.running.Load() <= int32(i) {
			time.Sleep(time.Millisecond)
		}
	}
	busy.Wait()
	return func() { close(gate); joined.Wait() }
}

func TestPoolRunsInlineWhenIdle(t *testing.T) {
	p := newPool(2, -1)
	defer p.close()
	for range 10 {
		if err := p.do(engine.Address{}, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	if p.inline.Load() != 10 || p.ran.Load() != 10 {
		t.Fatalf("inline %d of %d", p.inline.Load(), p.ran.Load())
	}
}

func TestPoolIsBounded(t *testing.T) {
	p := newPool(1, 10)
	defer p.close()
	release := occupy(t, p)
	p.cost.Store(int64(poolWork) / 8) // room for 8, of which 2 for one wallet
	if p.capacity() != 8 {
		t.Fatalf("capacity %d", p.capacity())
	}
	var joined sync.WaitGroup
	var ran atomic.Int32
	enter := func(wallet byte) {
		want := len(p.jobs) + 1
		joined.Go(func() {
			if err := p.do(engine.Address{wallet}, func() { ran.Add(1) }); err != nil {
				t.Errorf("wallet %d: %v", wallet, err)
			}
		})
		for len(p.jobs) < want {
			time.Sleep(time.Millisecond)
		}
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
	if err := p.do(engine.Address{9}, nil); err != errPoolFull {
		t.Fatalf("ninth job: %v", err)
	}
	release()
	joined.Wait()
	if ran.Load() != 8 || p.full.Load() != 2 || len(p.wallets) != 0 || p.waiting != 0 {
		t.Fatalf("ran %d, full %d, wallets %v, waiting %d",
			ran.Load(), p.full.Load(), p.wallets, p.waiting)
	}
}

func TestPoolAnswersTheExpired(t *testing.T) {
	p := newPool(1, -1)
	release := occupy(t, p)
	late := &job{engine.Address{1}, time.Now().Add(-1), nil, make(chan error, 1)}
	if err := p.enqueue(late); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-late.done; err != errPoolExpired {
		t.Fatalf("expired job: %v", err)
	}
	p.close()
	p.close() // may be called often
	if err := p.enqueue(late); err != errPoolClosed {
		t.Fatalf("after close: %v", err)
	}
}

func BenchmarkPool(b *testing.B) {
	p := newPool(2, 10)
	defer p.close()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := p.do(engine.Address{}, func() {}); err != nil && err != errPoolFull {
				b.Error(err)
			}
		}
	})
}
