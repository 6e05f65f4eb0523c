package sequencer

import (
	"testing"
	"time"

	"clobd/engine"
)

// TestStalled: a Command that waits makes the writer stalled from the first look that meets it, and
// the answer ends that. A writer that was idle for long is not stalled by the next Command.
func TestStalled(t *testing.T) {
	w := newRig(t, Options{})
	enter := func() *Call {
		t.Helper()
		call, err := w.Enter(&engine.Command{Kind: engine.Deposit, Cash: 1,
			Address: engine.Address{1}})
		if err != nil {
			t.Fatal(err)
		}
		return call
	}
	answer := func(call *Call) {
		t.Helper()
		w.cycle(t)
		if _, err := call.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	const pause = 20 * time.Millisecond
	if d := w.Stalled(); d != 0 {
		t.Errorf("stalled for %v with nothing to do", d)
	}
	time.Sleep(pause)
	call := enter()
	if d := w.Stalled(); d >= pause {
		t.Errorf("stalled for %v, from before the Command", d)
	}
	time.Sleep(pause)
	if d, c := w.Stalled(), w.Counters(); d < pause || c.Waiting != 1 || c.Depth != 1 {
		t.Errorf("stalled for %v, %d wait, %d in the ring", d, c.Waiting, c.Depth)
	}
	b, err := w.Step() // out of the ring, and not answered
	if err != nil {
		t.Fatal(err)
	}
	if d, c := w.Stalled(), w.Counters(); d < pause || c.Waiting != 1 || c.Depth != 0 {
		t.Errorf("in a frame: stalled for %v, %d wait, %d in the ring", d, c.Waiting, c.Depth)
	}
	if err := w.Append(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(b); err != nil {
		t.Fatal(err)
	}
	if _, err := call.Wait(); err != nil {
		t.Fatal(err)
	}
	if d := w.Stalled(); d != 0 {
		t.Errorf("stalled for %v after the answer", d)
	}
	// Progress begins the time anew, although somebody waits at each look.
	first := enter()
	w.Stalled()
	time.Sleep(pause)
	answer(first)
	second := enter()
	if d := w.Stalled(); d >= pause {
		t.Errorf("stalled for %v, %v of which were before an answer", d, pause)
	}
	answer(second)
	// A cancel that finds nothing has an answer, and no place in the journal.
	idle, err := w.Enter(&engine.Command{Kind: engine.Cancel, Owner: 1, Wallet: 1, ID: id(1)})
	if err != nil {
		t.Fatal(err)
	}
	answer(idle)
	if c := w.Counters(); c.Waiting != 0 || c.Slots == 0 {
		t.Errorf("%d wait at the end, %d slots", c.Waiting, c.Slots)
	}
}
