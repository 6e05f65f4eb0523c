package sequencer

import (
	"errors"
	"testing"

	"clobd/engine"
)

// TestRaiseIsAlone: a Raise has a frame of its own, whatever waits before and behind it, also while
// orders have expired: those leave the book with the next frame. Each frame names the version that
// is in force after it.
func TestRaiseIsAlone(t *testing.T) {
	now := engine.Time(1000)
	w := newRig(t, Options{Now: func() engine.Time { return now }})
	enter := func(c engine.Command) *Call {
		call, err := w.Enter(&c)
		if err != nil {
			t.Fatal(err)
		}
		return call
	}
	frames := func() (kinds [][]engine.Kind) {
		for {
			b, err := w.Step()
			if err != nil {
				t.Fatal(err)
			}
			if b == nil {
				return kinds
			}
			var some []engine.Kind
			for i := range b.Frame.Commands {
				some = append(some, b.Frame.Commands[i].Kind)
			}
			if b.Frame.Engine != w.exchange.Version() {
				t.Errorf("a frame of version %d leaves version %d in force", b.Frame.Engine,
					w.exchange.Version())
			}
			kinds = append(kinds, some)
			if err := errors.Join(w.Append(b), w.Commit(b)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range setup() {
		enter(c)
	}
	enter(*until(1, 2000))
	raise := engine.Command{Kind: engine.Raise, Seen: engine.Version}
	calls := []*Call{enter(raise), enter(raise)}
	enter(*until(2, 3000))
	if got := frames(); len(got) != 4 || len(got[1]) != 1 || len(got[2]) != 1 || len(got[3]) != 1 {
		t.Errorf("frames of %v", got)
	}
	for _, call := range calls {
		if r, err := call.Wait(); err != nil || r.Reject != engine.Accepted {
			t.Errorf("%+v %v", r, err)
		}
	}
	now = 2000
	enter(raise)
	enter(*until(3, 4000))
	got := frames()
	if len(got) != 2 || got[0][0] != engine.Raise || len(got[0]) != 1 || got[1][0] != engine.Advance ||
		len(got[1]) != 2 {
		t.Errorf("after an order has expired: frames of %v", got)
	}
	enter(engine.Command{Kind: engine.Cancel, Owner: 1, Wallet: 1, ID: id(99)}) // finds nothing
	enter(raise)
	if got := frames(); len(got) != 2 || len(got[0]) != 0 || len(got[1]) != 1 {
		t.Errorf("behind what changes nothing: frames of %v", got)
	}
	w.replay(t, engine.Head{})
}
