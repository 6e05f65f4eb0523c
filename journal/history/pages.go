package history

import (
	"errors"
	"fmt"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
)

// Filter selects rows of a list. The zero value of each field selects all.
type Filter struct {
	Market  engine.MarketNo
	Outcome engine.Outcome // counts only if OneToken is set
	// OneToken selects orders in the token Outcome, and trades in which the owner of the list moved
	// that token: as the taker, or else as a maker. MarketTrades looks at the taker.
	OneToken bool
	ID       engine.OrderID // selects one order, and the trades that it took part in
	// Taker and Maker select trades with that wallet, or the owner behind it. Not for orders.
	Taker, Maker engine.WalletNo
	// Before and After select what was placed or traded strictly before, or after; 0: any time.
	Before, After engine.Time
	TradeID       [16]byte // selects one trade. Lists of orders ignore it.
}

// Page selects a part of a list. A next stays good for ever. A walk from page to page meets each
// row exactly once that was there all along, whatever is written meanwhile.
type Page struct {
	From  uint64 // next of the page before; 0: the start of the list
	Limit int    // of rows, [1, maxPage]; outside, the nearer bound
}

const maxPage = 1000

// Bounds on the cost of one page. A page that meets one ends early, with a next.
const (
	maxEntries = 2000 // entries of a list that a page looks at
	maxMisses  = 200  // trades that a page reads but does not list
	// maxParts bounds the makers of a page's trades, or its orders' trades, from the second row on.
	maxParts = 10_000
)

func clean(f *Filter, p Page) (*Filter, Page) {
	if f == nil {
		f = new(Filter)
	}
	p.Limit = min(max(p.Limit, 1), maxPage)
	return f, p
}

// Orders lists the resting orders of an owner, oldest first. next is where the next page begins, 0
// if there is none. The error is as for Past.
func (h *History) Orders(owner engine.WalletNo, f *Filter, p Page) (
	rows []OrderRow, next uint64, err error) {
	if !h.gate.Enter() {
		return nil, 0, journal.ErrClosed
	}
	defer h.gate.Leave()
	f, p = clean(f, p)
	some, goOn := []restingOrder{{id: f.ID}}, engine.Sequence(0)
	if f.ID == (engine.OrderID{}) {
		some, goOn = h.resting.page(owner, f, p)
	}
	var o row
	parts := 0
	rows = make([]OrderRow, 0, len(some))
	for i := range some {
		if parts > maxParts {
			return rows, uint64(some[i].seq), nil
		}
		known, err := o.load(h.db, &some[i].id)
		if err != nil {
			return nil, 0, err
		}
		if !known || o.Owner != owner || uint64(o.Sequence) < p.From || !f.order(&o.OrderRow) {
			continue // it has left since page copied its id, or f names another's order
		}
		if err := h.trades(&o); err != nil {
			return nil, 0, err
		}
		rows = append(rows, o.OrderRow)
		parts += len(o.Trades)
	}
	return rows, uint64(goOn), nil
}

func (f *Filter) order(o *OrderRow) bool {
	return o.Status == engine.Live &&
		(f.Market == 0 || f.Market == o.Market) &&
		(!f.OneToken || f.Outcome == o.Outcome) &&
		(f.Before == 0 || o.Time < f.Before) && (f.After == 0 || o.Time > f.After)
}

// trade reports whether f selects a trade. The list and the walk have applied the other fields.
func (f *Filter) trade(t *TradeRow) bool {
	if f.Taker != 0 && f.Taker != t.Wallet && f.Taker != t.Owner ||
		f.Before != 0 && t.Time >= f.Before || f.After != 0 && t.Time <= f.After {
		return false
	}
	maker, order := f.Maker == 0, f.ID == (engine.OrderID{}) || f.ID == t.Taker
	for i := 0; i < len(t.Makers) && !(maker && order); i++ {
		m := &t.Makers[i]
		maker = maker || m.Wallet == f.Maker || m.Owner == f.Maker
		order = order || m.Order == f.ID
	}
	return maker && order
}

// Trades lists the trades that an owner took part in, as the taker or as a maker, newest first.
// next is where the next page begins, 0 if there is none. The error is as for Past.
func (h *History) Trades(owner engine.WalletNo, f *Filter, p Page) (
	rows []TradeRow, next uint64, err error) {
	if owner == 0 {
		return nil, 0, nil
	}
	return h.tradesOf(owner, f, p)
}

var errNoMarket = errors.New("a tape is of one market: none is given")

// MarketTrades lists all trades of the market f.Market, newest first. next is where the next page
// begins, 0 if there is none. The error is as for Past, or that f names no market.
func (h *History) MarketTrades(f *Filter, p Page) (rows []TradeRow, next uint64, err error) {
	if f == nil || f.Market == 0 {
		return nil, 0, errNoMarket
	}
	return h.tradesOf(0, f, p)
}

// numberOfTrade returns the number of the trade id; false if this journal can have no such id.
func (h *History) numberOfTrade(id [16]byte) (uint64, bool) {
	_, seq, index, ok := engine.ParseTradeID(id)
	if !ok || seq == 0 || engine.TradeID(h.journal, seq, index) != id {
		return 0, false
	}
	return tradeRef{seq, index}.number(), true
}

// tradesOf lists a page of the trades of an owner, or of a whole market if owner is 0.
func (h *History) tradesOf(owner engine.WalletNo, f *Filter, p Page) (
	rows []TradeRow, next uint64, err error) {
	if !h.gate.Enter() {
		return nil, 0, journal.ErrClosed
	}
	defer h.gate.Leave()
	f, p = clean(f, p)
	s, err := h.rangeOf(f, p)
	if err != nil || s.high < s.low {
		return nil, 0, err
	}
	list := h.newWalker(listOf(owner, f.Market), s.high)
	deals, err := newDealReader(h.db) // opened after the list, to find all that the list names
	if err != nil {
		return nil, 0, fmt.Errorf("list trades of wallet %d: %w", owner, err)
	}
	v := tradePage{owner: owner, f: f, list: list, deals: deals, journal: h.journal,
		rows: make([]TradeRow, 0, min(p.Limit, 128))}
	next, err = v.page(s.low, p.Limit)
	if err = errors.Join(err, list.close(), deals.it.Close()); err != nil {
		return nil, 0, fmt.Errorf("list trades of wallet %d: %w", owner, err)
	}
	return v.rows, next, nil
}

// numberRange is the numbers of trades that a page can have, both ends included.
type numberRange struct{ low, high uint64 }

// rangeOf finds the range by the times of f and the start of p.
func (h *History) rangeOf(f *Filter, p Page) (s numberRange, err error) {
	s = numberRange{1, lastNumber}
	if p.From != 0 {
		s.high = min(s.high, p.From)
	}
	if f.TradeID != ([16]byte{}) {
		number, ok := h.numberOfTrade(f.TradeID)
		if !ok || number > s.high {
			return numberRange{1, 0}, nil
		}
		return numberRange{number, number}, nil
	}
	if f.Before <= 0 && f.After <= 0 {
		return s, nil
	}
	it, err := iterate(h.db, spaceMarks)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var first engine.Sequence
	before := numberKey(spaceMarks, uint64(f.Before))
	if f.Before > 0 && it.SeekGE(before[:]) {
		if first, err = mark(it); err != nil {
			return s, err
		}
		s.high = min(s.high, tradeRef{first, 0}.number()-1)
	}
	after := numberKey(spaceMarks, uint64(f.After)+1)
	if f.After > 0 && it.SeekLT(after[:]) {
		if first, err = mark(it); err != nil {
			return s, err
		}
		s.low = tradeRef{first, 0}.number()
	}
	return s, nil
}

func mark(it *pebble.Iterator) (engine.Sequence, error) {
	b, err := it.ValueAndErr()
	if err != nil {
		return 0, err
	}
	c := varints{rest: b}
	if seq := engine.Sequence(c.uvarint()); !c.bad && seq > 0 {
		return seq, nil
	}
	return 0, fmt.Errorf("mark of a time: %w", errRow)
}

type tradePage struct {
	owner   engine.WalletNo
	f       *Filter
	list    *walker
	deals   *dealReader
	journal uint64
	rows    []TradeRow
	parts   int // makers in rows
}

// page collects rows down to the trade number low, and returns where the next page begins.
func (v *tradePage) page(low uint64, limit int) (next uint64, err error) {
	misses := 0
	for looked := 0; ; looked++ {
		at, ok, err := v.list.next()
		number := at >> entryBits
		if err != nil || !ok || number < low {
			return 0, err
		}
		if len(v.rows) == limit || looked == maxEntries || misses == maxMisses || v.parts > maxParts {
			return number, nil
		}
		if v.f.OneToken && at>>v.f.Outcome&1 == 0 {
			continue
		}
		wanted, err := v.readTrade(number)
		if err != nil {
			return 0, err
		}
		if !wanted {
			misses++
		}
	}
}

func (v *tradePage) readTrade(number uint64) (wanted bool, err error) {
	v.rows = append(v.rows, TradeRow{})
	t := &v.rows[len(v.rows)-1]
	err = v.deals.must(v.journal, number, t)
	if err != nil || !v.f.trade(t) {
		v.rows = v.rows[:len(v.rows)-1]
		return false, err
	}
	t.AsMaker = v.owner != 0 && v.owner < builderLists && t.Owner != v.owner
	v.parts += len(t.Makers)
	return true, nil
}
