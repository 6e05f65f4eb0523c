package history

import (
	"errors"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// Scan selects the trades and moves of a walk. The zero value selects all trades and no moves.
type Scan struct {
	// Owners selects the trades of these owners; none: of everybody. Name at most 2 together with
	// Markets, because each pair of owner and market is a list of its own.
	Owners []engine.WalletNo
	// Wallet selects the moves of this wallet in all markets; 0: no moves. It does not affect
	// trades.
	Wallet   engine.WalletNo
	NoTrades bool // leaves out all trades
	// Markets selects trades in these markets; none: in all. It does not affect moves.
	Markets []engine.MarketNo
	// Before and After bound the time, strictly, to within 100 ms; 0: any time.
	Before, After engine.Time
	Limit         int // bounds the number of rows
}

// Scan calls each with one trade or one move at a time, newest first; the other argument is nil. A
// row is valid until each returns. Scan ends when each returns false. It gives a trade once,
// however many owners took part. whole reports that no row is left. The error is as for Past.
func (h *History) Scan(s *Scan, each func(*TradeRow, *MoveRow) bool) (whole bool, err error) {
	err = h.view(func() error {
		bounds, err := h.rangeOf(&Filter{Before: s.Before, After: s.After}, Page{})
		if whole = err == nil; err != nil || bounds.high < bounds.low {
			return err
		}
		m := merge{h: h, bounds: bounds, each: each}
		if err = m.open(s); err == nil {
			whole, err = m.run(s.Limit)
		}
		return errors.Join(err, m.close())
	}, "scan trades", 0)
	return whole && err == nil, err
}

type merge struct {
	h      *History
	bounds numberRange
	each   func(*TradeRow, *MoveRow) bool
	walks  []walk
	moves  *moveWalker // the last of walks; nil if moves are not wanted
	deals  *dealReader
	trade  TradeRow
}

type walk struct {
	head  uint64 // number at which it is; 0: at the end
	next  func() (number uint64, ok bool, err error)
	close func() error
}

func (m *merge) open(s *Scan) error {
	owners, markets := s.Owners, s.Markets
	if len(owners) == 0 {
		owners = []engine.WalletNo{0}
	}
	if len(markets) == 0 {
		markets = []engine.MarketNo{0}
	}
	for i := 0; i < len(owners) && !s.NoTrades; i++ {
		for _, market := range markets {
			if err := m.openList(listOf(owners[i], market)); err != nil {
				return err
			}
		}
	}
	if s.Wallet != 0 {
		moves, err := newMoveWalker(m.h.db, s.Wallet, m.bounds)
		if err != nil {
			return err
		}
		m.moves = moves
		if err := m.add(moves.next, moves.it.Close); err != nil {
			return err
		}
	}
	deals, err := newDealReader(m.h.db) // opened after the lists, to find all that they name
	if err == nil {
		m.deals = deals
	}
	return err
}

func (m *merge) openList(list listNo) error {
	if list != 0 {
		w := &longWalker{h: m.h, list: list, walker: m.h.newWalker(list, m.bounds.high)}
		return m.add(w.next, func() error { return w.walker.close() })
	}
	high := numberKey(spaceDeals, m.bounds.high)
	it, err := m.h.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceDeals},
		UpperBound: append(high[:], 0)})
	if err != nil {
		return err
	}
	w := &chunkWalker{it: it, high: m.bounds.high}
	return m.add(w.next, it.Close)
}

func (m *merge) add(next func() (uint64, bool, error), end func() error) error {
	m.walks = append(m.walks, walk{next: next, close: end})
	return m.advance(len(m.walks) - 1)
}

func (m *merge) close() (err error) {
	for i := range m.walks {
		err = errors.Join(err, m.walks[i].close())
	}
	if m.deals != nil {
		err = errors.Join(err, m.deals.it.Close())
	}
	return err
}

func (m *merge) advance(i int) error {
	w := &m.walks[i]
	number, ok, err := w.next()
	if w.head = number; !ok || number < m.bounds.low {
		w.head = 0
	}
	return err
}

func (m *merge) run(limit int) (whole bool, err error) {
	for met, last := 0, uint64(0); ; {
		newest, number := 0, uint64(0)
		for i := range m.walks {
			if m.walks[i].head > number {
				newest, number = i, m.walks[i].head
			}
		}
		if number == 0 {
			return true, nil
		}
		if number != last { // else two owners took part in the trade
			if met == limit {
				return false, nil
			}
			met, last = met+1, number
			if goOn, err := m.give(newest, number); err != nil || !goOn {
				return false, err
			}
		}
		if err := m.advance(newest); err != nil {
			return false, err
		}
	}
}

func (m *merge) give(i int, number uint64) (goOn bool, err error) {
	if m.moves != nil && i == len(m.walks)-1 {
		return m.each(nil, &m.moves.row), nil
	}
	t := &m.trade
	if err := m.deals.must(m.h.journal, number, t); err != nil {
		return false, err
	}
	return m.each(t, nil), nil
}

type chunkWalker struct {
	it   *pebble.Iterator
	high uint64
	rest []uint64 // numbers still to come of the chunk at it, the newest last
}

func (w *chunkWalker) next() (number uint64, ok bool, err error) {
	for {
		for len(w.rest) > 0 {
			number = w.rest[len(w.rest)-1]
			w.rest = w.rest[:len(w.rest)-1]
			if number <= w.high {
				return number, true, nil
			}
		}
		if !w.it.Valid() {
			ok = w.it.Last()
		} else {
			ok = w.it.Prev()
		}
		if !ok {
			return 0, false, w.it.Error()
		}
		b, err := w.it.ValueAndErr()
		if err == nil {
			_, err = eachRecord(w.it.Key(), b, func(at tradeRef, _ varints) (bool, error) {
				w.rest = append(w.rest, at.number())
				return true, nil
			})
		}
		if err != nil {
			return 0, false, err
		}
	}
}

// longWalker walks a list of any length from the newest trade to the oldest. It begins a new walker
// every maxEntries entries, because a walker holds a copy of entries from memory.
type longWalker struct {
	h      *History
	list   listNo
	walker *walker
	from   uint64 // where the next walker begins
	looked int    // entries that walker has given
}

// next returns the number of the next trade; false at the end of the list.
func (w *longWalker) next() (number uint64, ok bool, err error) {
	if w.looked == maxEntries {
		if err := w.walker.close(); err != nil {
			return 0, false, err
		}
		w.walker, w.looked = w.h.newWalker(w.list, w.from), 0
	}
	at, ok, err := w.walker.next()
	if !ok || err != nil {
		return 0, false, err
	}
	w.looked++
	number = at >> entryBits
	w.from = number - 1
	return number, true, nil
}
