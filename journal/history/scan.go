package history

import (
	"errors"
	"fmt"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
)

// Scan selects the trades and moves of a walk. The zero value selects all trades and no moves.
type Scan struct {
	// Owners selects the trades of these owners; none: of everybody. Name at most 2 together with
	// Markets, because each pair of owner and market is a list of its own.
	Owners []engine.WalletNo
	// Wallet selects the moves of this wallet in all markets; 0: no moves. It does not affect
	// trades.
	Wallet engine.WalletNo
	// NoTrades leaves out all trades.
	NoTrades bool
	// Markets selects trades in these markets; none: in all. It does not affect moves.
	Markets []engine.MarketNo
	// Before and After bound the time, strictly, to within 100 ms; 0: any time.
	Before, After engine.Time
	// Limit bounds the number of rows.
	Limit int
}

// Scan calls each with one trade or one move at a time, newest first; the other argument is nil. A
// row is valid until each returns. Scan ends when each returns false. It gives a trade once, even
// if several owners took part. whole reports that no row is left: neither Limit nor each ended the
// walk. The error is journal.ErrClosed, or names what cannot be read.
func (h *History) Scan(s *Scan, each func(*TradeRow, *MoveRow) bool) (whole bool, err error) {
	if !h.gate.Enter() {
		return false, journal.ErrClosed
	}
	defer h.gate.Leave()
	bounds, err := h.rangeOf(&Filter{Before: s.Before, After: s.After}, Page{})
	if err != nil {
		return false, fmt.Errorf("scan trades: %w", err)
	}
	if bounds.high < bounds.low {
		return true, nil
	}
	m := merge{h: h, bounds: bounds, each: each}
	err = m.open(s)
	if err == nil {
		whole, err = m.run(s.Limit)
	}
	if err = errors.Join(err, m.close()); err != nil {
		return false, fmt.Errorf("scan trades: %w", err)
	}
	return whole, nil
}

// merge walks several lists at once.
type merge struct {
	h      *History
	bounds numberRange
	each   func(*TradeRow, *MoveRow) bool
	lists  []longWalker
	heads  []uint64 // number at which each list is, then all trades and the moves; 0: at the end
	moves  *moveWalker
	all    *pebble.Iterator // over all trades, if no list is walked
	rest   []uint64         // numbers still to come of the chunk at all, the newest last
	deals  *dealReader
	trade  TradeRow
}

// open opens all lists of s, and goes to the newest entry of each.
func (m *merge) open(s *Scan) (err error) {
	owners, markets := s.Owners, s.Markets
	if len(owners) == 0 {
		owners = []engine.WalletNo{0}
	}
	if len(markets) == 0 {
		markets = []engine.MarketNo{0}
	}
	for i := 0; i < len(owners) && !s.NoTrades; i++ {
		for _, market := range markets {
			if list := listOf(owners[i], market); list != 0 {
				m.lists = append(m.lists, longWalker{h: m.h, list: list, from: m.bounds.high})
				continue
			}
			high := numberKey(spaceDeals, m.bounds.high)
			m.all, err = m.h.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceDeals},
				UpperBound: append(high[:], 0)})
			if err != nil {
				return err
			}
		}
	}
	m.heads = make([]uint64, len(m.lists)+2)
	for i := range m.heads {
		if i == len(m.lists)+1 && s.Wallet != 0 {
			if m.moves, err = newMoveWalker(m.h.db, s.Wallet, m.bounds); err != nil {
				return err
			}
		}
		if err := m.advance(i); err != nil {
			return err
		}
	}
	m.deals, err = newDealReader(m.h.db) // opened after the lists, to find all that they name
	return err
}

func (m *merge) close() (err error) {
	for i := range m.lists {
		err = errors.Join(err, m.lists[i].close())
	}
	if m.moves != nil && m.moves.it != nil {
		err = errors.Join(err, m.moves.it.Close())
	}
	if m.all != nil {
		err = errors.Join(err, m.all.Close())
	}
	if m.deals != nil && m.deals.it != nil {
		err = errors.Join(err, m.deals.it.Close())
	}
	return err
}

// advance moves walk i to its next entry: a list, all trades, or the moves.
func (m *merge) advance(i int) error {
	var number uint64
	var ok bool
	var err error
	switch {
	case i < len(m.lists):
		number, ok, err = m.lists[i].next()
	case i == len(m.lists) && m.all != nil:
		number, ok, err = m.anyTrade()
	case i == len(m.lists)+1 && m.moves != nil:
		number, ok, err = m.moves.next()
	}
	if !ok || number < m.bounds.low {
		number = 0
	}
	m.heads[i] = number
	return err
}

// run gives the newest entry of all walks until there is none, or limit rows were given.
func (m *merge) run(limit int) (whole bool, err error) {
	for met, last := 0, uint64(0); ; {
		newest := 0
		for i, number := range m.heads {
			if number > m.heads[newest] {
				newest = i
			}
		}
		number := m.heads[newest]
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

// give passes the row at walk i to each.
func (m *merge) give(i int, number uint64) (goOn bool, err error) {
	if i == len(m.lists)+1 {
		return m.each(nil, &m.moves.row), nil
	}
	t := &m.trade
	known, err := m.deals.read(number, t)
	if err == nil && !known {
		err = fmt.Errorf("trade %d of Sequence %d: %w", refOf(number).index, refOf(number).seq, errRow)
	}
	if err != nil {
		return false, err
	}
	t.ID = engine.TradeID(m.h.journal, t.Sequence, t.Index)
	return m.each(t, nil), nil
}

// anyTrade moves to the next older trade of all.
func (m *merge) anyTrade() (number uint64, ok bool, err error) {
	for {
		for len(m.rest) > 0 {
			number = m.rest[len(m.rest)-1]
			m.rest = m.rest[:len(m.rest)-1]
			if number <= m.bounds.high {
				return number, true, nil
			}
		}
		if m.deals == nil && !m.all.Valid() {
			ok = m.all.Last()
		} else {
			ok = m.all.Prev()
		}
		if !ok {
			return 0, false, m.all.Error()
		}
		if err := m.chunk(); err != nil {
			return 0, false, err
		}
	}
}

// chunk reads the numbers of the trades in the chunk at all.
func (m *merge) chunk() error {
	b, err := m.all.ValueAndErr()
	if err != nil {
		return err
	}
	_, err = eachRecord(m.all.Key(), b, func(at tradeRef, _ varints) (bool, error) {
		m.rest = append(m.rest, at.number())
		return true, nil
	})
	return err
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

func (w *longWalker) close() error {
	if w.walker == nil {
		return nil
	}
	return w.walker.close()
}

// next returns the number of the next trade; false at the end of the list.
func (w *longWalker) next() (number uint64, ok bool, err error) {
	if w.walker != nil && w.looked == maxEntries {
		if err := w.walker.close(); err != nil {
			return 0, false, err
		}
		w.walker = nil
	}
	if w.walker == nil {
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
