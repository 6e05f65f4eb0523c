package bench

import (
	"strings"
	"testing"

	"clobd/bench/workload"
	"clobd/engine"
)

// played is what a bookkeeper made of a workload on an Exchange. spoil may change what it reads.
func played(t *testing.T, name string,
	spoil func(c *engine.Command, events []engine.Event)) *bookkeeper {
	t.Helper()
	w := workloadNamed(t, name)
	ops, _, err := w.Draw(t.Context(), 7, 200, 3000)
	if err != nil {
		t.Fatal(err)
	}
	x, l := engine.NewExchange(1), newBookkeeper()
	var events []engine.Event
	seq := engine.Sequence(0)
	for _, c := range append(w.Setup(), workload.Commands(ops, 0, len(ops))...) {
		c.Seen = seq
		seq++
		events = x.Apply(&c, seq, engine.Time(seq), events[:0])
		if spoil != nil {
			spoil(&c, events)
		}
		l.add(&c, events)
	}
	return l
}

// TestBookkeeper: the bookkeeper finds nothing wrong with what the engine does, and finds each
// thing that a node could do wrong.
func TestBookkeeper(t *testing.T) {
	for _, name := range []string{"canonical", "mint-merge", "market-maker"} {
		l := played(t, name, nil)
		if err := l.covered(); err != nil || len(l.resting) == 0 {
			t.Errorf("%s: %d rest, %v", name, len(l.resting), err)
		}
	}
	once := func(kind engine.EventKind, change func(e *engine.Event)) func(
		*engine.Command, []engine.Event) {
		spoilt := false
		return func(_ *engine.Command, events []engine.Event) {
			for i := range events {
				if !spoilt && events[i].Kind == kind {
					change(&events[i])
					spoilt = true
				}
			}
		}
	}
	for _, c := range []struct {
		what  string
		spoil func(*engine.Command, []engine.Event)
		says  string
	}{
		{"a fill of another size", once(engine.Filled, func(e *engine.Event) { e.Size += engine.Lot }),
			"a fill of "},
		{"a fill at another price", once(engine.Filled, func(e *engine.Event) { e.Price++ }),
			"a fill of "},
		{"more rests than came", once(engine.Placed,
			func(e *engine.Event) { e.Remaining += engine.Lot }),
			"rests with "},
		{"less is cancelled than rested", once(engine.Cancelled,
			func(e *engine.Event) { e.Remaining -= engine.Lot }), "was cancelled with "},
	} {
		if err := played(t, "canonical", c.spoil).covered(); err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	l := played(t, "canonical", nil)
	for no, a := range l.wallets {
		l.numbers[engine.Address{19: byte(no)}] = no
		held := []heldFunds{{engine.Address{19: byte(no)}, 9999, funds{cash: a.cash}}}
		if err := l.agree(held); err != nil {
			t.Fatal(err)
		}
		held[0].cash++
		if err := l.agree(held); err == nil || !strings.Contains(err.Error(), "the node says") {
			t.Errorf("one too many: %v", err)
		}
		break
	}
	drawn := newBookkeeper()
	drawn.drawn[engine.OrderID{1}] = &workload.Op{Size: engine.Unit, Price: 100}
	drawn.add(&engine.Command{Kind: engine.Place, ID: engine.OrderID{1}, Size: engine.Unit,
		Cash: engine.Cost(engine.Unit, 200)}, nil)
	if drawn.wrong == nil {
		t.Error("an order at another price than drawn")
	}
}
