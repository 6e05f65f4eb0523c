package engine_test

import (
	"maps"
	"slices"
	"testing"

	"clobd/engine"
	"clobd/engine/view"
)

// TestPublishedBooks publishes histories in frames of several Commands. Readers must see the
// reference's books of both tokens.
func TestPublishedBooks(t *testing.T) {
	levels := 0
	for seed := range 60 {
		board, prev := view.NewBoard(), engine.Hash{}
		f := &engine.Frame{Engine: engine.Version, No: 1, First: 1}
		engine.PlayReference(t, seed, 200, func(told engine.Told, books []engine.ReferenceBook) {
			f.Commands = append(f.Commands, told.Command)
			f.Events = append(f.Events, told.Events...)
			f.Ends = append(f.Ends, uint32(len(f.Events)))
			f.Time, f.Digest = told.Time, told.Digest
			if len(f.Commands) <= int(told.Sequence)%(1+seed%5) {
				return
			}
			f.Encode(prev)
			board.Publish(f)
			prev = f.Hash
			f = &engine.Frame{Engine: engine.Version, No: f.No + 1, First: told.Sequence + 1}
			for i := range books {
				levels += checkBook(t, board.Condition(books[i].Condition), &books[i])
			}
		})
	}
	if levels < 10_000 {
		t.Errorf("only %d levels were compared", levels)
	}
}

// checkBook compares a published book with the reference's and returns its number of levels.
func checkBook(t *testing.T, s *view.Snapshot, want *engine.ReferenceBook) (n int) {
	t.Helper()
	if s == nil {
		t.Fatalf("%x is not published", want.Condition)
	}
	for o := range engine.Outcome(2) {
		bid, ask := s.Best(o)
		for side := range engine.Side(2) {
			levels := want.Levels[o][side]
			prices := slices.Sorted(maps.Keys(levels))
			best := []engine.Price{bid, ask}[side]
			if side == engine.Buy {
				slices.Reverse(prices)
			}
			n += len(prices)
			if s.Depth(o, side) != len(prices) || len(prices) > 0 && best != prices[0] ||
				len(prices) == 0 && best != 0 {
				t.Fatalf("#%d: %d levels, best %d; want %v", s.Sequence, s.Depth(o, side), best,
					prices)
			}
			s.Levels(o, side, func(p engine.Price, size engine.Size) bool {
				if len(prices) == 0 || p != prices[0] || size != levels[p] {
					t.Fatalf("#%d: level %d of %d, want %v of %v", s.Sequence, p, size, prices,
						levels)
				}
				prices = prices[1:]
				return true
			})
			if len(prices) > 0 {
				t.Fatalf("#%d: levels %v are missing", s.Sequence, prices)
			}
		}
	}
	if price, side, traded := s.Last(0); traded != (want.Last != 0) || traded &&
		(price != want.Last || side != want.Taker) {
		t.Fatalf("#%d: last trade %d on side %d, want %d on %d", s.Sequence, price, side, want.Last,
			want.Taker)
	}
	return n
}
