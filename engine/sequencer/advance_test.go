package sequencer

import (
	"testing"
	"testing/synctest"
	"time"

	"clobd/engine"
)

// until makes a GTD order of wallet 1 that rests until expiry.
func until(n uint64, expiry engine.Time) *engine.Command {
	return &engine.Command{Kind: engine.Place, Type: engine.GTD, Expiry: expiry, Market: 1,
		Wallet: 1, Owner: 1, Size: 10 * engine.Unit, Cash: 4 * engine.Unit, ID: id(n)}
}

// resting is how many shares are bid for outcome 0.
func (w *rig) resting() (size engine.Size) {
	s := w.board.Condition(engine.Condition{1})
	s.Levels(0, engine.Buy, func(_ engine.Price, at engine.Size) bool { size += at; return true })
	return size
}

// TestAdvanceComesFirst: orders that have expired at a frame's Time leave before its first Command.
// An Advance alone makes a frame only if an order has expired.
func TestAdvanceComesFirst(t *testing.T) {
	now := engine.Time(1000)
	w := newRig(t, Options{Now: func() engine.Time { return now }})
	enter := func(c *engine.Command) *Call {
		call, err := w.Enter(c)
		if err != nil {
			t.Fatal(err)
		}
		return call
	}
	for _, c := range setup() {
		enter(&c)
	}
	enter(until(1, 2000))
	enter(until(2, 3000))
	w.cycle(t)
	if got := w.resting(); got != 20*engine.Unit {
		t.Fatalf("%d rest", got)
	}
	now = 1999
	if w.cycle(t) {
		t.Fatal("a frame although nothing has expired")
	}
	now = 2000
	late := enter(&engine.Command{Kind: engine.Cancel, Owner: 1, Wallet: 1, ID: id(1)})
	w.cycle(t)
	receipt, err := late.Wait()
	if err != nil || receipt.Reject != engine.RejectNotFound {
		t.Fatalf("cancel of an expired order: %+v, %v", receipt, err)
	}
	now = 3001
	if !w.cycle(t) || w.resting() != 0 || w.cycle(t) {
		t.Fatalf("%d rest after all have expired", w.resting())
	}
	receipts := w.replay(t, engine.Head{})
	if n := engine.Sequence(len(receipts)); receipt.Sequence != n-1 {
		t.Fatalf("the cancel is Sequence %d of %d", receipt.Sequence, n)
	}
}

// TestIdleNodeExpires: orders leave the book at their time although nobody sends a Command; no
// other frame is written.
func TestIdleNodeExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRig(t, Options{}).run()
		for _, c := range setup() {
			w.submit(t, &c)
		}
		start := engine.Time(time.Now().UnixMilli())
		for n := range uint64(engine.AdvanceOrders + 500) {
			if r := w.submit(t, until(n, start+5000)); r.Reject != engine.Accepted {
				t.Fatalf("order %d: %s", n, r.Text())
			}
		}
		w.submit(t, until(1e6, start+9000))
		frames := len(w.journal.Frames())
		time.Sleep(4900 * time.Millisecond)
		synctest.Wait()
		if n := len(w.journal.Frames()); n != frames {
			t.Fatalf("%d frames written while nothing happened", n-frames)
		}
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if w.resting() != 10*engine.Unit {
			t.Fatalf("%d rest after their time", w.resting())
		}
		if n := len(w.journal.Frames()); n != frames+2 {
			t.Fatalf("%d frames for two Advances", n-frames)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(w.journal.Frames()); n != frames+3 || w.resting() != 0 {
			t.Fatalf("%d frames, %d rest", n-frames, w.resting())
		}
		w.close(t, nil)
		w.replay(t, engine.Head{})
	})
}

// TestAlarmBesideASlewedClock: the clock of the frames runs slower than the alarm's, so the alarm
// rings too early again and again, also when a Command wakes the matcher.
func TestAlarmBesideASlewedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		slow := func() engine.Time {
			return engine.Time(start.UnixMilli() + time.Since(start).Milliseconds()*9/10)
		}
		w := newRig(t, Options{Now: slow}).run()
		for _, c := range setup() {
			w.submit(t, &c)
		}
		w.submit(t, until(1, slow()+9000)) // rests for 10 s of the alarm's clock
		w.submit(t, until(2, slow()+9000*3_600_000))
		time.Sleep(9*time.Second - time.Millisecond)
		for n := range uint64(4) {
			w.submit(t, &engine.Command{Kind: engine.Cancel, Owner: 1, ID: id(100 + n)})
			time.Sleep(time.Millisecond)
		}
		if w.resting() != 20*engine.Unit {
			t.Fatalf("%d rest before their time", w.resting())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if w.resting() != 10*engine.Unit {
			t.Fatalf("%d rest: the alarm was lost", w.resting())
		}
		w.close(t, nil)
	})
}

// TestNothingBehindAFullAdvance: while more orders have expired than one Advance cancels, no
// Command enters a frame.
func TestNothingBehindAFullAdvance(t *testing.T) {
	now := engine.Time(1000)
	w := newRig(t, Options{Now: func() engine.Time { return now }, Ring: 1 << 13})
	var late *Call
	for _, c := range setup() {
		if _, err := w.Enter(&c); err != nil {
			t.Fatal(err)
		}
	}
	for n := range uint64(engine.AdvanceOrders + 1) {
		if _, err := w.Enter(until(n, 2000)); err != nil {
			t.Fatal(err)
		}
	}
	for w.cycle(t) {
	}
	now = 2000
	late, err := w.Enter(&engine.Command{Kind: engine.Cancel, Owner: 1, Wallet: 1,
		ID: id(engine.AdvanceOrders)})
	if err != nil {
		t.Fatal(err)
	}
	w.cycle(t)
	if w.resting() != 10*engine.Unit || w.ring.depth() != 1 {
		t.Fatalf("%d rest, %d wait", w.resting(), w.ring.depth())
	}
	w.cycle(t)
	receipt, err := late.Wait()
	if err != nil || receipt.Reject != engine.RejectNotFound || w.resting() != 0 {
		t.Fatalf("%+v, %v; %d rest", receipt, err, w.resting())
	}
}
