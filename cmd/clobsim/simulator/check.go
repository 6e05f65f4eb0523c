package simulator

import (
	"maps"
	"slices"

	"clobd/engine"
	"clobd/engine/view"
)

// visible checks that no Snapshot shows a Sequence that a crash could still lose.
func (s *simulation) visible() {
	seq := s.board.Sequence()
	s.check(seq == s.head.Sequence, "the Board shows Sequence %d, %d are committed", seq,
		s.head.Sequence)
	s.check(s.head.Frame <= s.disk.durable(), "frame %d is committed, %d are durable", s.head.Frame,
		s.disk.durable())
	for i := range s.plan.markets {
		p := s.board.Condition(s.plan.markets[i].Condition)
		s.check(p == nil || p.Sequence <= s.head.Sequence,
			"a Snapshot shows Sequence %d, %d are committed", sequence(p), s.head.Sequence)
	}
}

// sequence is that of a Snapshot.
func sequence(p *view.Snapshot) engine.Sequence {
	if p == nil {
		return 0
	}
	return p.Sequence
}

// shown compares the Board with the witness for the markets that a frame touched.
func (s *simulation) shown(f *engine.Frame) {
	touched := map[engine.MarketNo]bool{}
	for i := range f.Events {
		touched[f.Events[i].Market] = true
	}
	for _, no := range slices.Sorted(maps.Keys(touched)) {
		if no != 0 && s.witness.books[no] != nil {
			s.same(no)
		}
	}
}

// all compares the Board with the witness for all markets.
func (s *simulation) all() {
	s.check(s.board.Sequence() == s.witness.last, "the Board shows Sequence %d, the last is %d",
		s.board.Sequence(), s.witness.last)
	for _, no := range slices.Sorted(maps.Keys(s.witness.books)) {
		s.same(no)
	}
}

// same compares a market's Snapshot with the witness's book, as both outcomes see it.
func (s *simulation) same(no engine.MarketNo) {
	m := s.board.Directory.Market(no)
	s.check(m != nil, "market %d is listed and not shown", no)
	p, b := s.board.Condition(m.Condition), s.witness.books[no]
	s.check(p != nil, "market %d has no Snapshot", no)
	for o := range engine.Outcome(2) {
		bid, ask := p.Best(o)
		s.check(bid == 0 || ask == 0 || bid < ask, "CROSSED: market %d shows %d and %d", no, bid, ask)
		for side := range engine.Side(2) {
			s.sameSide(b, p, o, side)
		}
	}
}

// sameSide compares one side of it, best first.
func (s *simulation) sameSide(b *seenBook, p *view.Snapshot, o engine.Outcome, side engine.Side) {
	n, ladder, last := 0, side, engine.Price(0)
	if o == 1 {
		ladder = side.Other()
	}
	p.Levels(o, side, func(price engine.Price, size engine.Size) bool {
		s.check(n == 0 || side == engine.Buy && price < last || side == engine.Sell && price > last,
			"level %d comes after %d", price, last)
		last = price
		if o == 1 {
			price = engine.PriceOne - price
		}
		l := b.levels[ladder][price]
		s.check(l != nil && l.size == size, "the Board shows %d at %d, the orders are %+v", size,
			price, l)
		n++
		return true
	})
	s.check(n == len(b.levels[ladder]) && n == p.Depth(o, side), "the Board shows %d levels of %d", n,
		len(b.levels[ladder]))
}
