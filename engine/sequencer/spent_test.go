package sequencer

import (
	"math/rand/v2"
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

// TestCountsOfFrames: the counters say what the journaled frames say: orders, fills, cancels, keys,
// and refusals by their Reject.
func TestCountsOfFrames(t *testing.T) {
	w := newRig(t, Options{})
	random := rand.New(rand.NewPCG(1, 2))
	commands := append(setup(), trading(random, 1, 500)...)
	commands = append(commands, trading(random, 2, 500)...)
	commands = append(commands, engine.Command{Kind: engine.Place, Type: engine.GTC, Market: 99,
		Wallet: 1, Owner: 1, Size: engine.Unit, Cash: engine.Unit / 2, ID: id(1 << 60)})
	key := engine.Command{Kind: engine.SetKey, Owner: 1, Class: engine.TradingKey, Key: 7}
	revoked := key
	revoked.Revoke = true
	for _, c := range append(commands, key, revoked) {
		call, err := w.Enter(&c)
		if err != nil {
			t.Fatal(err)
		}
		w.cycle(t)
		if _, err := call.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	var want Counters
	for _, b := range w.journal.Frames() {
		var f engine.Frame
		if err := engine.DecodeFrame(b, &f); err != nil {
			t.Fatal(err)
		}
		for i := range f.Commands {
			events := f.EventsOf(i)
			last := &events[len(events)-1]
			switch kind := f.Commands[i].Kind; {
			case last.Kind == engine.Rejected:
				want.Rejects[last.Reject]++
			case kind == engine.Place:
				want.Orders++
			case kind == engine.SetKey && last.Args[2] == 1:
				want.Revoked++
			case kind == engine.SetKey:
				want.Keys++
			}
		}
		for i := range f.Events {
			switch f.Events[i].Kind {
			case engine.Filled:
				want.Fills++
			case engine.Cancelled:
				want.Cancels++
			}
		}
	}
	c := w.Counters()
	got := Counters{Orders: c.Orders, Fills: c.Fills, Cancels: c.Cancels, Keys: c.Keys,
		Revoked: c.Revoked, Rejects: c.Rejects}
	if got != want {
		t.Errorf("counted %+v\nwant    %+v", got, want)
	}
	if want.Orders == 0 || want.Fills == 0 || want.Cancels == 0 || want.Keys != 1 ||
		want.Revoked != 1 || want.Rejects == (Counters{}.Rejects) {
		t.Errorf("the Commands do too little: %+v", want)
	}
}
