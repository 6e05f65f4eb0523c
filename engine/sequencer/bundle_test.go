package sequencer

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"clobd/engine"
)

// TestBundlesStayTogether: many callers enter bundles of random sizes; each is neighbours in the
// journal in its order, or refused whole.
func TestBundlesStayTogether(t *testing.T) {
	w := newWorld(t, Options{Ring: 64, Batch: 16}).run()
	for _, c := range setup() {
		w.submit(t, &c)
	}
	var joined sync.WaitGroup
	for trader := range 4 {
		joined.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(trader)))
			commands := trading(random, trader, 600)
			for len(commands) > 0 {
				n := min(1+random.IntN(15), len(commands))
				calls := make([]*Call, n)
				if err := w.EnterAll(commands[:n], calls); errors.Is(err, ErrBusy) {
					time.Sleep(time.Millisecond)
					continue
				} else if err != nil {
					t.Error(err)
					return
				}
				receipts, errs := make([]engine.Receipt, n), make([]error, n)
				WaitAll(calls, receipts, errs)
				for i := range receipts {
					if errs[i] != nil || receipts[i].Order != commands[i].ID ||
						receipts[i].Sequence != receipts[0].Sequence+engine.Sequence(i) {
						t.Errorf("entry %d of %d: %+v, %v", i, n, receipts[i], errs[i])
					}
				}
				commands = commands[n:]
			}
		})
	}
	joined.Wait()
	w.close(t, nil)
	w.replay(t, engine.Head{})
}

// TestBundleIsRefusedWhole: without room for all of it nothing of a bundle enters, and the calls go
// back to the pool.
func TestBundleIsRefusedWhole(t *testing.T) {
	w := newWorld(t, Options{Ring: 8})
	place := engine.Command{Kind: engine.Place, ID: id(1)}
	calls := make([]*Call, 9)
	for n, want := range map[int]error{7: nil, 8: ErrBusy, 9: ErrBusy} {
		w := newWorld(t, Options{Ring: 8})
		bundle := make([]engine.Command, n)
		for i := range bundle {
			bundle[i] = place
		}
		if err := w.EnterAll(bundle, calls[:n]); err != want {
			t.Errorf("bundle of %d placements: %v, want %v", n, err, want)
		}
		if depth := w.ring.depth(); want != nil && depth != 0 {
			t.Errorf("bundle of %d left %d in the ring", n, depth)
		}
	}
	cancels := make([]engine.Command, 8)
	for i := range cancels {
		cancels[i] = engine.Command{Kind: engine.Cancel, ID: id(uint64(i))}
	}
	if err := w.EnterAll(cancels, calls[:8]); err != nil {
		t.Errorf("bundle of 8 cancels: %v", err)
	}
}

// TestBundleTimesOutOnce: a bundle waits as long as one Command does, not once for each.
func TestBundleTimesOutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Timeout: 10 * time.Second}) // does not run
		calls := make([]*Call, 5)
		if err := w.EnterAll(make([]engine.Command, 5), calls); err != nil {
			t.Fatal(err)
		}
		receipts, errs := make([]engine.Receipt, 5), make([]error, 5)
		start := time.Now()
		WaitAll(calls, receipts, errs)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("waited for %v", took)
		}
		for i, err := range errs {
			if err != ErrTimeout {
				t.Errorf("entry %d: %v", i, err)
			}
		}
	})
}
