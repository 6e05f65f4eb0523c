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
				next := engine.Sequence(0) // idle Commands have that of the one before them
				for i := range receipts {
					idle := receipts[i].Reject == engine.RejectNotFound
					if next == 0 {
						next = receipts[i].Sequence
					} else if !idle {
						next++
					}
					if errs[i] != nil || receipts[i].Order != commands[i].ID ||
						receipts[i].Sequence != next {
						t.Errorf("entry %d of %d: %+v, %v, want %d", i, n, receipts[i], errs[i], next)
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
		cancels[i] = engine.Command{Kind: engine.Link, ID: id(uint64(i))}
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

// TestIdle: cancels that find nothing are answered in their turn, and leave nothing in the
// journal.
func TestIdle(t *testing.T) {
	w := newRig(t, Options{Ring: 64})
	enter := func(c engine.Command) *Call {
		t.Helper()
		call, err := w.Enter(&c)
		if err != nil {
			t.Fatal(err)
		}
		return call
	}
	for _, c := range setup() {
		enter(c)
	}
	w.cycle(t)
	frames, last := len(w.journal.Frames()), w.last
	var calls []*Call
	for n := range uint64(20) {
		calls = append(calls, enter(engine.Command{Kind: engine.Cancel, Owner: 1, ID: id(n)}))
	}
	calls = append(calls, enter(engine.Command{Kind: engine.CancelAll, Wallet: 1, Owner: 1,
		Reason: engine.ByOwner}))
	w.cycle(t)
	for i, call := range calls {
		r, err := call.Wait()
		if err != nil || r.Sequence != last || (i < 20) != (r.Reject == engine.RejectNotFound) {
			t.Errorf("call %d: %+v, %v", i, r, err)
		}
	}
	if n := len(w.journal.Frames()); n != frames || w.last != last || w.board.Sequence() != last {
		t.Errorf("%d frames and Sequence %d, published %d; there were %d and %d", n, w.last,
			w.board.Sequence(), frames, last)
	}

	// What an idle Command saw must be durable before its answer.
	place := enter(engine.Command{Kind: engine.Place, Type: engine.GTC, Side: engine.Buy, Market: 1,
		Wallet: 1, Owner: 1, ID: id(1), Size: 5 * engine.Unit, Cash: engine.Unit})
	first := enter(engine.Command{Kind: engine.Cancel, Owner: 1, ID: id(1)})
	again := enter(engine.Command{Kind: engine.Cancel, Owner: 1, ID: id(1)})
	b, err := w.Step()
	if err == nil {
		err = w.Append(b)
	}
	if err != nil || len(b.Frame.Commands) != 2 || again.state.Load() != waiting {
		t.Fatalf("%d Commands in the frame, %v", len(b.Frame.Commands), err)
	}
	if err := w.Commit(b); err != nil {
		t.Fatal(err)
	}
	for i, call := range []*Call{place, first, again} {
		r, err := call.Wait()
		if err != nil || (i == 2) != (r.Reject == engine.RejectNotFound) ||
			r.Sequence != last+engine.Sequence(min(i+1, 2)) {
			t.Errorf("call %d: %+v, %v", i, r, err)
		}
	}
	w.replay(t, engine.Head{})
}
