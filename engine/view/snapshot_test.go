package view

import (
	"slices"
	"testing"
	"unsafe"

	"clobd/engine"
)

// TestMirror reads one small book from both outcomes.
func TestMirror(t *testing.T) {
	w, b := newWorld(1), NewBoard()
	f := w.begin()
	f.list(1, 100, engine.Open)
	f.deposit(1)
	f.deposit(2)
	f.rest(1, resting{0, engine.Buy, 4_000, 10 * engine.Unit, 1})
	f.rest(1, resting{1, engine.Sell, 6_000, 5 * engine.Unit, 1}) // the same level
	f.rest(1, resting{0, engine.Buy, 3_900, 7 * engine.Unit, 1})
	f.rest(1, resting{1, engine.Buy, 5_500, 3 * engine.Unit, 1}) // an ask at 4,500
	b.Publish(f.end())
	s := checkMarket(t, b, w.markets[0])
	want := [2][2][]level{
		{{{4_000, 15 * engine.Unit}, {3_900, 7 * engine.Unit}}, {{4_500, 3 * engine.Unit}}},
		{{{5_500, 3 * engine.Unit}}, {{6_000, 15 * engine.Unit}, {6_100, 7 * engine.Unit}}},
	}
	for o := range want {
		for side := range want[o] {
			got := levelsOf(s, engine.Outcome(o), engine.Side(side))
			if !slices.Equal(got, want[o][side]) {
				t.Fatalf("outcome %d side %d: %v, want %v", o, side, got, want[o][side])
			}
		}
	}
	if _, _, traded := s.Last(0); traded {
		t.Fatal("traded")
	}
	// A buyer of outcome 1 at 0.60 takes one seller of it: a transfer; outcome 0 saw a sale at 0.40.
	f = w.begin()
	f.place(1, resting{1, engine.Buy, 6_000, 12 * engine.Unit, 2})
	b.Publish(f.end())
	s = checkMarket(t, b, w.markets[0])
	for o, want := range []level{{4_000, engine.Size(engine.Sell)}, {6_000, engine.Size(engine.Buy)}} {
		p, side, ok := s.Last(engine.Outcome(o))
		if !ok || p != want.price || engine.Size(side) != want.size {
			t.Fatalf("outcome %d: last %d side %d, %v", o, p, side, ok)
		}
	}
}

func TestLevelsStop(t *testing.T) {
	b, _ := full(1)
	s, n := b.Condition(conditionOf(1)), 0
	s.Levels(0, engine.Sell, func(p engine.Price, _ engine.Size) bool {
		n++
		return n < 70
	})
	if n != 70 {
		t.Fatalf("%d levels after the 70th said stop", n)
	}
}

func TestText(t *testing.T) {
	b, w := full(100)
	s, o, _ := b.Book(tokenOf(1, 1))
	calls := 0
	render := func(s *Snapshot, o engine.Outcome) []byte {
		calls++
		return rendered(s, o)
	}
	first := s.Text(o, render)
	again := s.Text(o, render)
	if calls != 1 || &first[0] != &again[0] {
		t.Fatalf("rendered %d times", calls)
	}
	if other := s.Text(0, render); calls != 2 || string(other) == string(first) {
		t.Fatalf("outcome 0 reads %q, outcome 1 %q", other, first)
	}
	f := w.begin()
	f.list(1, 100, engine.Unopened)
	b.Publish(f.end())
	s, _, _ = b.Book(tokenOf(1, 1))
	if next := s.Text(o, render); string(next) == string(first) {
		t.Fatalf("the next Snapshot kept the text %q", next)
	}
}

// TestTextEmpty keeps a text that is empty: nil is what render said, not a missing text.
func TestTextEmpty(t *testing.T) {
	b, _ := full(100)
	s, calls := b.Condition(conditionOf(1)), 0
	for range 2 {
		s.Text(0, func(*Snapshot, engine.Outcome) []byte { calls++; return nil })
	}
	if calls != 1 {
		t.Fatalf("rendered %d times", calls)
	}
}

func TestLayout(t *testing.T) {
	sizes := []struct {
		name      string
		got, want uintptr
	}{
		{"Snapshot", unsafe.Sizeof(Snapshot{}), 64},
		{"chunk", unsafe.Sizeof(chunk{}), 512},
		{"walletRow", unsafe.Sizeof(walletRow{}), 32},
	}
	for _, s := range sizes {
		if s.got != s.want {
			t.Errorf("%s takes %d bytes, budget %d", s.name, s.got, s.want)
		}
	}
}
