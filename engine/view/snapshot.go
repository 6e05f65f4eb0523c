package view

import (
	"sync/atomic"

	"clobd/engine"
)

// Snapshot is an immutable picture of one market's book after a frame. It is kept in prices of
// outcome 0; its methods return the prices of the outcome that they are given. Any goroutine may
// keep and read a Snapshot for as long as it likes.
type Snapshot struct {
	Market   *Market         // as of the same frame
	Sequence engine.Sequence // the last of the frame that made this Snapshot
	Time     engine.Time     // of that frame

	// 64 bytes in all: one cache line answers Best, Depth and Last.
	ladder *ladder
	text   [2]atomic.Pointer[[]byte] // by outcome; each changes once, from nil; nothing else changes
	best   [2]engine.Price           // by ladder side, 0 if empty
	depth  [2]uint16                 // by ladder side
	last   engine.Price              // of the last trade, 0 if there was none
	taker  engine.Side               // the ladder side that the last taker was on
}

// Best returns the best price of each side for outcome o, in 1/10,000, 0 for an empty side.
func (s *Snapshot) Best(o engine.Outcome) (bid, ask engine.Price) {
	if o == 0 {
		return s.best[engine.Buy], s.best[engine.Sell]
	}
	if p := s.best[engine.Sell]; p != 0 {
		bid = engine.PriceOne - p
	}
	if p := s.best[engine.Buy]; p != 0 {
		ask = engine.PriceOne - p
	}
	return bid, ask
}

// Levels calls each with the price and size of every level of a side of outcome o, best first,
// until each returns false. Prices are in 1/10,000, sizes in base units and never 0.
func (s *Snapshot) Levels(
	o engine.Outcome, side engine.Side, each func(engine.Price, engine.Size) bool,
) {
	tick := s.Market.Tick
	s.ladder.walk(turn(o, side), func(index int, size engine.Size) bool {
		return each(mirror(o, engine.Price(index)*tick), size)
	})
}

// Depth returns the number of levels of a side of outcome o.
func (s *Snapshot) Depth(o engine.Outcome, side engine.Side) int {
	return int(s.depth[turn(o, side)])
}

// Last returns the price of the market's last trade and the side of its taker, both in terms of
// outcome o: who buys one outcome sells the other. The bool is false before the first trade.
func (s *Snapshot) Last(o engine.Outcome) (engine.Price, engine.Side, bool) {
	if s.last == 0 {
		return 0, 0, false
	}
	return mirror(o, s.last), turn(o, s.taker), true
}

// Text returns render(s, o). The first caller renders, and the Snapshot keeps the result;
// concurrent first callers all get the one that is kept. All callers must pass the same render, and
// nobody may change the result.
func (s *Snapshot) Text(
	o engine.Outcome, render func(*Snapshot, engine.Outcome) []byte,
) []byte {
	kept := &s.text[o]
	if t := kept.Load(); t != nil {
		return *t
	}
	t := render(s, o)
	if kept.CompareAndSwap(nil, &t) {
		return t
	}
	return *kept.Load()
}

// turn converts a side of outcome o to the ladder side, and back: buying 1 is selling 0.
func turn(o engine.Outcome, side engine.Side) engine.Side { return side ^ engine.Side(o) }

// mirror converts a price of outcome 0 to the price of outcome o, and back.
func mirror(o engine.Outcome, p engine.Price) engine.Price {
	if o == 0 {
		return p
	}
	return engine.PriceOne - p
}
