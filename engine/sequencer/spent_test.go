package sequencer

import (
	"testing"
	"time"

	"clobd/engine"
)

// TestSpent: each frame tells once where it has spent its time: how long its first Command waited,
// however many came after it. What is not journaled tells nothing.
func TestSpent(t *testing.T) {
	var told []Spent
	w := newRig(t, Options{Spent: func(s *Spent) { told = append(told, *s) }})
	const pause = 20 * time.Millisecond
	calls := make([]*Call, 0, 3)
	for n := range 3 {
		call, err := w.Enter(&engine.Command{Kind: engine.Deposit, Cash: 1,
			Address: engine.Address{byte(n + 1)}})
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, call)
		time.Sleep(pause)
	}
	began := time.Now()
	if !w.cycle(t) || len(told) != 1 {
		t.Fatalf("%d frames told", len(told))
	}
	took := time.Since(began)
	for _, call := range calls {
		if _, err := call.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	s := told[0]
	if s.Wait < 3*pause || s.Wait > 3*pause+took+time.Second {
		t.Errorf("the first of three waited %v", s.Wait)
	}
	all := []time.Duration{s.Match, s.Append, s.Sync, s.Publish}
	sum := time.Duration(0)
	for _, d := range all {
		if sum += d; d < 0 {
			t.Errorf("a stage took %v", d)
		}
	}
	if s.Match == 0 || s.Append == 0 || s.Publish == 0 || sum > took {
		t.Errorf("%+v in %v", s, took)
	}
	call, err := w.Enter(&engine.Command{Kind: engine.Cancel, Owner: 1, Wallet: 1, ID: id(1)})
	if err != nil {
		t.Fatal(err)
	}
	if !w.cycle(t) || len(told) != 1 {
		t.Errorf("%d frames told, the last of them with nothing in it", len(told))
	}
	if _, err := call.Wait(); err != nil {
		t.Fatal(err)
	}
}
