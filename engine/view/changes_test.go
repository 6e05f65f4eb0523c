package view

import (
	"maps"
	"testing"

	"clobd/engine"
)

type place struct {
	side  engine.Side
	price engine.Price
}

// bookOf returns all levels of an outcome.
func bookOf(s *Snapshot, o engine.Outcome) map[place]engine.Size {
	all := map[place]engine.Size{}
	for side := engine.Buy; side <= engine.Sell; side++ {
		for _, l := range levelsOf(s, o, side) {
			all[place{side, l.price}] = l.size
		}
	}
	return all
}

// changed applies the changes since was to its book. Each must change something, and none comes
// twice.
func changed(t *testing.T, was, s *Snapshot, o engine.Outcome) map[place]engine.Size {
	t.Helper()
	book, told := bookOf(was, o), map[place]bool{}
	same := s.Changes(was, o, func(side engine.Side, p engine.Price, size engine.Size) {
		at := place{side, p}
		if told[at] || book[at] == size {
			t.Fatalf("market %d: level %v has %d and changes to %d, told before: %v", s.Market.No, at,
				book[at], size, told[at])
		}
		told[at] = true
		if book[at] = size; size == 0 {
			delete(book, at)
		}
	})
	if same != (was.Market.Tick == s.Market.Tick) || !same && len(told) > 0 {
		t.Fatalf("market %d: ticks %d and %d: %v after %d changes", s.Market.No, was.Market.Tick,
			s.Market.Tick, same, len(told))
	}
	if !same {
		return bookOf(s, o)
	}
	return book
}

// TestSnapshotChanges: the changes between two Snapshots turn the book of the first one into that
// of the second, whatever came in between.
func TestSnapshotChanges(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		w, b := newWorld(seed), NewBoard()
		old := map[engine.MarketNo]*Snapshot{}
		kinds := [3]int{}
		for i := range 600 {
			b.Publish(w.random(1 + w.rng.IntN(30)))
			for _, n := range w.markets {
				s := b.Condition(n.list.Condition)
				if was := old[n.no]; was != nil {
					for o := engine.Outcome(0); o < 2; o++ {
						if book := changed(t, was, s, o); !maps.Equal(book, bookOf(s, o)) {
							t.Fatalf("seed %d, frame %d, market %d: changes lead to %v, the book is %v", seed, i,
								n.no, book, bookOf(s, o))
						}
					}
					switch {
					case was == s:
						kinds[0]++
					case was.Market.Tick == s.Market.Tick:
						kinds[1]++
					default:
						kinds[2]++
					}
				}
				if was := old[n.no]; was == nil || w.rng.IntN(3) == 0 {
					old[n.no] = s
				}
			}
		}
		if kinds[0] == 0 || kinds[1] == 0 || kinds[2] == 0 {
			t.Errorf("seed %d: %d markets stood still, %d changed, %d changed their tick", seed, kinds[0],
				kinds[1], kinds[2])
		}
	}
}
