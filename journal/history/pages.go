package history

import (
	"errors"
	"fmt"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
)

// Filter says which rows of a list are wanted. The zero value of each field wants all.
type Filter struct {
	Market  engine.MarketNo
	Outcome engine.Outcome // counts only if OneToken is set
	// OneToken wants orders in the token Outcome, and trades in which the owner moved it: as the taker
	// or, if he is not, with one of his makers. In a tape it is the taker's token.
	OneToken bool
	// ID wants that order, and of trades those that it took part in.
	ID engine.OrderID
	// Taker and Maker want trades with that taker, or with a maker of that name: a wallet, or the
	// owner behind it. Lists of orders ignore them.
	Taker, Maker engine.WalletNo
	// Before and After want what was placed or traded strictly before, or after; 0: any time.
	Before, After engine.Time
	// TradeID wants that trade. Lists of orders ignore it.
	TradeID [16]byte
}

// Page says which part of a list is wanted. Numbers to go on from stay good for ever, and whatever
// is written meanwhile, a walk meets each row once that was there all along.
type Page struct {
	From  uint64 // what the page before gave as next; 0: the start of the list
	Limit int    // of rows; less than 1 is 1, more than MaxPage is MaxPage
}

// MaxPage is how many rows a page has at most.
const maxPage = 1000

// What one page may cost, beside its rows. A page that meets a bound ends early, with a next.
const (
	// maxEntries is how many entries of a list are looked at.
	maxEntries = 2000
	// maxMisses is how many trades are read that are not wanted.
	maxMisses = 200
	// maxParts is how many makers the trades of a page have together, and how many trades its orders,
	// but for its first row, which may have more.
	maxParts = 10_000
)

// clean is f and p within their bounds.
func clean(f *Filter, p Page) (*Filter, Page) {
	if f == nil {
		f = new(Filter)
	}
	p.Limit = min(max(p.Limit, 1), maxPage)
	return f, p
}

// Orders lists the orders of an owner that rest in the books, oldest first. next is where the page
// after this one begins, 0 if there is none. The error is as for Past.
func (h *History) Orders(owner engine.WalletNo, f *Filter, p Page) (
	rows []OrderRow, next uint64, err error) {
	if !h.gate.Enter() {
		return nil, 0, journal.ErrClosed
	}
	defer h.gate.Leave()
	f, p = clean(f, p)
	if f.ID != (engine.OrderID{}) {
		rows, err = h.oneOrder(owner, f, p)
		return rows, 0, err
	}
	some, goOn := h.resting.page(owner, f, p)
	var o row
	parts := 0
	rows = make([]OrderRow, 0, len(some))
	for i := range some {
		if parts > maxParts {
			return rows, uint64(some[i].seq), nil
		}
		known, err := h.load(&some[i].id, &o)
		if err != nil {
			return nil, 0, err
		}
		if !known || !f.order(&o.OrderRow) {
			continue // it left just now
		}
		if err := h.trades(&o); err != nil {
			return nil, 0, err
		}
		rows = append(rows, o.OrderRow)
		parts += len(o.Trades)
	}
	return rows, uint64(goOn), nil
}

// standing is the list of the one order that f names.
func (h *History) oneOrder(owner engine.WalletNo, f *Filter, p Page) ([]OrderRow, error) {
	var o row
	known, err := h.load(&f.ID, &o)
	if err != nil || !known || o.Owner != owner || !f.order(&o.OrderRow) ||
		uint64(o.Sequence) < p.From {
		return nil, err
	}
	if err := h.trades(&o); err != nil {
		return nil, err
	}
	return []OrderRow{o.OrderRow}, nil
}

// order says whether f wants an order.
func (f *Filter) order(o *OrderRow) bool {
	return o.Status == engine.Live &&
		(f.Market == 0 || f.Market == o.Market) &&
		(!f.OneToken || f.Outcome == o.Outcome) &&
		(f.Before == 0 || o.Time < f.Before) && (f.After == 0 || o.Time > f.After)
}

// trade says whether f wants a trade, but for what its list says of it already.
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
// next is where the page after this one begins, 0 if there is none. The error is as for Past.
func (h *History) Trades(owner engine.WalletNo, f *Filter, p Page) (
	rows []TradeRow, next uint64, err error) {
	if owner == 0 {
		return nil, 0, nil
	}
	return h.tradesOf(owner, f, p)
}

// errTape says that no market was named.
var errNoMarket = errors.New("a tape is of one market: none is given")

// Tape lists all trades of the market f.Market, newest first. next is where the page after this one
// begins, 0 if there is none. The error is as for Past, or that there is no market in f.
func (h *History) MarketTrades(f *Filter, p Page) (rows []TradeRow, next uint64, err error) {
	if f == nil || f.Market == 0 {
		return nil, 0, errNoMarket
	}
	return h.tradesOf(0, f, p)
}

// Trade finds the trade id; false if there is none. The error is as for Past.
func (h *History) Trade(id [16]byte) (TradeRow, bool, error) {
	if !h.gate.Enter() {
		return TradeRow{}, false, journal.ErrClosed
	}
	defer h.gate.Leave()
	var t TradeRow
	number, ok := h.numberOfTrade(id)
	if !ok {
		return t, false, nil
	}
	deals, err := newDealReader(h.db)
	if err != nil {
		return t, false, fmt.Errorf("read trade %x: %w", id, err)
	}
	known, err := deals.read(number, &t)
	if err = errors.Join(err, deals.it.Close()); err != nil {
		return TradeRow{}, false, fmt.Errorf("read trade %x: %w", id, err)
	}
	if known {
		t.ID = id
	}
	return t, known, nil
}

// numberOfTrade is the number of the trade id; false if it cannot be one of this journal's.
func (h *History) numberOfTrade(id [16]byte) (uint64, bool) {
	_, seq, index, ok := engine.ParseTradeID(id)
	if !ok || seq == 0 || engine.TradeID(h.journal, seq, index) != id {
		return 0, false
	}
	return tradeRef{seq, index}.number(), true
}

// walk is a page of the trades of an owner, or of a whole market if owner is 0.
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
	deals, err := newDealReader(h.db) // after the list: what that names is there
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

// span is the numbers of trades that a page can have, both ends included.
type numberRange struct{ low, high uint64 }

// span finds it by what f says of time and by where p begins.
func (h *History) rangeOf(f *Filter, p Page) (numberRange, error) {
	s := numberRange{1, lastNumber}
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
	it, err := h.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceMarks},
		UpperBound: []byte{spaceMarks + 1}})
	if err != nil {
		return s, err
	}
	if f.Before > 0 {
		if key := numberKey(spaceMarks, uint64(f.Before)); it.SeekGE(key[:]) {
			first, err := mark(it)
			if err != nil {
				return s, errors.Join(err, it.Close())
			}
			s.high = min(s.high, tradeRef{first, 0}.number()-1)
		}
	}
	if f.After > 0 {
		if key := numberKey(spaceMarks, uint64(f.After)+1); it.SeekLT(key[:]) {
			first, err := mark(it)
			if err != nil {
				return s, errors.Join(err, it.Close())
			}
			s.low = tradeRef{first, 0}.number()
		}
	}
	return s, it.Close()
}

// mark is the Sequence of the mark at which it stands: the first one at its time.
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

// visit is one page of trades on its way.
type tradePage struct {
	owner   engine.WalletNo
	f       *Filter
	list    *walker
	deals   *dealReader
	journal uint64
	rows    []TradeRow
	parts   int // makers in rows
}

// page collects rows down to the number low and says where to go on.
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

// take reads the trade of a number and makes it a row if it is wanted.
func (v *tradePage) readTrade(number uint64) (wanted bool, err error) {
	v.rows = append(v.rows, TradeRow{})
	t := &v.rows[len(v.rows)-1]
	known, err := v.deals.read(number, t)
	if err == nil && !known {
		err = fmt.Errorf("trade %d of Sequence %d: %w", refOf(number).index, refOf(number).seq, errRow)
	}
	if err != nil || !v.f.trade(t) {
		v.rows = v.rows[:len(v.rows)-1]
		return false, err
	}
	t.ID = engine.TradeID(v.journal, t.Sequence, t.Index)
	t.AsMaker = v.owner != 0 && v.owner < builderLists && t.Owner != v.owner
	v.parts += len(t.Makers)
	return true, nil
}
