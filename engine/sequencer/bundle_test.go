package sequencer

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"clobd/engine"
)

// TestBundlesStayTogether: many callers enter bundles of random sizes. The Commands of each are
// neighbours in the journal, in order, or the whole bundle is refused.
func TestBundlesStayTogether(t *testing.T) {
	w := newRig(t, Options{Ring: 64, Batch: 16}).run()
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

// TestBundleIsRefusedWhole: a bundle that does not fit enters nothing, and its calls return to the
// pool.
func TestBundleIsRefusedWhole(t *testing.T) {
	w := newRig(t, Options{Ring: 8})
	place := engine.Command{Kind: engine.Place, ID: id(1)}
	calls := make([]*Call, 9)
	for n, want := range map[int]error{7: nil, 8: ErrBusy, 9: ErrBusy} {
		w := newRig(t, Options{Ring: 8})
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
		w := newRig(t, Options{Timeout: 10 * time.Second}) // does not run
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

// TestCanceledIDs: the caller of a CancelAll, and nobody else, gets the ids of the cancelled
// orders.
func TestCanceledIDs(t *testing.T) {
	w := newRig(t, Options{}).run()
	for _, c := range setup() {
		w.submit(t, &c)
	}
	place := engine.Command{Kind: engine.Place, Market: 1, Wallet: 1, Owner: 1,
		Size: 5 * engine.Unit, Cash: engine.Unit}
	var want []engine.OrderID
	for i := range uint64(3) {
		place.ID = id(100 + i)
		w.submit(t, &place)
		want = append(want, place.ID)
	}
	sweep := engine.Command{Kind: engine.CancelAll, Wallet: 1, Owner: 1, Reason: engine.ByOwner}
	other := sweep
	other.Wallet, other.Owner = 2, 2
	for round, expected := range [][]engine.OrderID{want, nil} {
		calls := make([]*Call, 2)
		if err := w.EnterAll([]engine.Command{other, sweep}, calls); err != nil {
			t.Fatal(err)
		}
		got, err := WaitCanceled(calls, nil)
		slices.SortFunc(got, func(a, b engine.OrderID) int { return slices.Compare(a[:], b[:]) })
		if err != nil || !slices.Equal(got, expected) {
			t.Errorf("round %d: %x, %v, want %x", round, got, err, expected)
		}
	}
	bad := engine.Command{Kind: engine.CancelAll, Wallet: 99, Owner: 1, Reason: engine.ByOwner}
	calls := make([]*Call, 1)
	if err := w.EnterAll([]engine.Command{bad}, calls); err != nil {
		t.Fatal(err)
	}
	if got, err := WaitCanceled(calls, nil); err == nil || got != nil {
		t.Errorf("unknown wallet: %x, %v", got, err)
	}
	w.close(t, nil)
}

// TestCanceledTimesOut: after a timeout, the ids of one CancelAll never reach the next caller.
func TestCanceledTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRig(t, Options{Timeout: 10 * time.Second}) // does not run
		calls := make([]*Call, 3)
		sweep := engine.Command{Kind: engine.CancelAll, Wallet: 1, Owner: 1, Reason: engine.ByOwner}
		if err := w.EnterAll([]engine.Command{sweep, sweep, sweep}, calls); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if got, err := WaitCanceled(calls, nil); err != ErrTimeout || got != nil {
			t.Errorf("%x, %v", got, err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("waited for %v", took)
		}
	})
}
