package api

import (
	"sync"

	"clobd/api/catalog"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal"
)

// Values tells what markets are worth to lists: what takers paid so far, and what the open orders
// are worth. It remembers what it added up of a book for as long as the book stays as it was. Any
// number of goroutines may use it.
type Values struct {
	board   *view.Board
	history *journal.History
	kept    sync.Map // engine.MarketNo → worth
}

// NewValues makes Values of what is published and of its index.
func NewValues(board *view.Board, history *journal.History) *Values {
	return &Values{board: board, history: history}
}

// worth is what a market is worth, as of a Snapshot.
type worth struct {
	sequence          engine.Sequence
	volume, liquidity int64 // in base units
}

// Live is what a condition is worth; false if it does not trade here. It is what catalog.Options
// ask for.
func (v *Values) Live(c engine.Condition) (live catalog.Live, ok bool) {
	m := v.board.Directory.Condition(c)
	if m == nil {
		return live, false
	}
	w, err := v.of(m)
	return catalog.Live{Volume: w.volume, Liquidity: w.liquidity, Closed: ended(m)}, err == nil
}

// ended says whether trading in a market has ended for good.
func ended(m *view.Market) bool { return m.State == engine.Closed || m.State == engine.Settled }

// of is what a market is worth. The error is that of the index.
func (v *Values) of(m *view.Market) (w worth, err error) {
	s := v.board.Condition(m.Condition)
	if s == nil {
		return w, nil
	}
	_, _, traded := s.Last(0)
	if !traded && s.Depth(0, engine.Buy)+s.Depth(0, engine.Sell) == 0 {
		return w, nil
	}
	if kept, ok := v.kept.Load(m.No); ok && kept.(worth).sequence == s.Sequence {
		return kept.(worth), nil
	}
	w.sequence = s.Sequence
	for _, side := range [...]engine.Side{engine.Buy, engine.Sell} {
		s.Levels(0, side, func(p engine.Price, size engine.Size) bool {
			w.liquidity += int64(engine.Cost(size, p))
			return true
		})
	}
	// The index may be behind the book: what it says is kept once it is not.
	current := v.history.Sequence() >= s.Sequence
	if traded {
		volume, _, err := v.history.Volume(m.No)
		if err != nil {
			return w, err
		}
		w.volume = int64(volume)
	}
	if current {
		v.kept.Store(m.No, w)
	}
	return w, nil
}
