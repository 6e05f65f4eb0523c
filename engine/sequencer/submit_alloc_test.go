//go:build !race && !audit

package sequencer

import (
	"testing"

	"clobd/engine"
)

// TestSubmitAllocs: entering, applying, acknowledging and picking up the answer allocate nothing.
// (Append is left out: the frame's bytes are the one fresh slice of a batch. The race detector
// makes pools forget on purpose, and audits allocate.)
func TestSubmitAllocs(t *testing.T) {
	w := newRig(t, Options{})
	for _, c := range setup() {
		if _, err := w.Enter(&c); err != nil {
			t.Fatal(err)
		}
	}
	w.cycle(t)
	proof := make([]byte, 317)
	cancel := engine.Command{Kind: engine.Link, Proof: proof}
	place := engine.Command{Kind: engine.Place, Market: 1, Wallet: 1, Owner: 1, Proof: proof,
		Size: 5 * engine.Unit, Cash: engine.Unit}
	calls := make([]*Call, 0, 64)
	round := func() {
		calls = calls[:0]
		for range 32 {
			place.ID[3]++
			cancel.ID, cancel.Owner = place.ID, place.Owner
			for _, c := range []*engine.Command{&place, &cancel} {
				call, err := w.Enter(c)
				if err != nil {
					t.Fatal(err)
				}
				calls = append(calls, call)
			}
		}
		for {
			b, err := w.Step()
			if err != nil {
				t.Fatal(err)
			}
			if b == nil {
				break
			}
			for i := range b.calls {
				b.acknowledge(i)
			}
			b.reset()
			w.free <- b
		}
		for _, call := range calls {
			if _, err := call.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 10 {
		round()
	}
	n := testing.AllocsPerRun(100, round)
	for range 4 { // a collection may have emptied the pool of Calls meanwhile
		if n > 0 {
			n = testing.AllocsPerRun(100, round)
		}
	}
	if n != 0 {
		t.Fatalf("%v allocations for 64 commands", n)
	}
}
