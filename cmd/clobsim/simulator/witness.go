package simulator

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"clobd/engine"
)

// witness is an observer that sees only the journaled frames. It keeps its own accounts and books
// in the simplest way, and reports what does not add up.
type witness struct {
	orders   map[engine.OrderID]*seenOrder
	books    map[engine.MarketNo]*seenBook
	cash     map[engine.WalletNo]*account
	tokens   map[token]*account
	external engine.Cash
	fees     engine.Cash
	bound    map[engine.OrderID]engine.Sequence // ids that count for ever
	refs     map[engine.OrderID]engine.Sequence // operators' references
	receipts map[engine.Sequence]engine.Receipt // acknowledged
	last     engine.Sequence
	time     engine.Time
	fills    int

	errs []error // of the frame being read
}

// account is a wallet's amount of one asset, and how much of it backs orders.
type account struct{ total, held int64 }

// token names somebody's tokens.
type token struct {
	wallet  engine.WalletNo
	market  engine.MarketNo
	outcome engine.Outcome
}

// seenBook is one market.
type seenBook struct {
	levels   [2]map[engine.Price]*seenLevel // by side, in prices of outcome 0
	vault    engine.Cash
	issued   [2]engine.Size
	external [2]engine.Size
	payout   engine.Price
	settled  bool
}

// seenLevel is the queue at a price, oldest first.
type seenLevel struct {
	size  engine.Size
	queue []engine.OrderID
}

// seenOrder is an order in a book.
type seenOrder struct {
	market    engine.MarketNo
	wallet    engine.WalletNo
	owner     engine.WalletNo
	side      engine.Side
	outcome   engine.Outcome
	price     engine.Price
	remaining engine.Size
	expiry    engine.Time
}

func newWitness() *witness {
	return &witness{
		orders: map[engine.OrderID]*seenOrder{}, books: map[engine.MarketNo]*seenBook{},
		cash: map[engine.WalletNo]*account{}, tokens: map[token]*account{},
		bound:    map[engine.OrderID]engine.Sequence{},
		refs:     map[engine.OrderID]engine.Sequence{},
		receipts: map[engine.Sequence]engine.Receipt{},
	}
}

// check records a mistake unless ok.
func (w *witness) check(ok bool, format string, args ...any) {
	if !ok {
		w.errs = append(w.errs, fmt.Errorf(format, args...))
	}
}

// frame reads the next frame. The error lists all mistakes in it.
func (w *witness) frame(f *engine.Frame) error {
	w.errs = nil
	w.check(f.First == w.last+1, "it begins at Sequence %d after %d", f.First, w.last)
	w.check(f.Time >= w.time, "its time is %d after %d", f.Time, w.time)
	w.last, w.time = f.Last(), f.Time
	for i := range f.Commands {
		c, seq := &f.Commands[i], f.First+engine.Sequence(i)
		before := len(w.errs)
		w.command(c, seq, f.EventsOf(i))
		if len(w.errs) > before {
			w.errs = append(w.errs, fmt.Errorf("that was Sequence %d: %+v: %+v", seq, *c,
				f.EventsOf(i)))
		}
	}
	before := len(w.errs)
	w.sums()
	slices.SortFunc(w.errs[before:], func(a, b error) int { // maps have no order
		return strings.Compare(a.Error(), b.Error())
	})
	return errors.Join(w.errs...)
}

// command reads the Events of one Command. Only Filled and Cancelled may come before the last.
func (w *witness) command(c *engine.Command, seq engine.Sequence, events []engine.Event) {
	w.check(len(events) > 0, "no Event")
	w.replaces(c, events)
	for i := range events {
		e := &events[i]
		switch last := i == len(events)-1; {
		case e.Kind == engine.Filled:
			w.check(!last && c.Kind == engine.Place, "a fill out of place")
			w.filled(c, e)
		case e.Kind == engine.Cancelled:
			o := w.leave(e.Order, e.Remaining)
			w.check(o != nil && o.remaining == 0, "cancelled with %d left", e.Remaining)
		case !last:
			w.check(false, "Event %d comes before the last word", e.Kind)
		default:
			w.final(c, seq, e)
		}
	}
}

// replaces checks the order that a Place replaces: it leaves first, or the Place is refused and it
// stays.
func (w *witness) replaces(c *engine.Command, events []engine.Event) {
	id, is := c.Replaced()
	if !is || len(events) == 0 {
		return
	}
	o, first, why := w.orders[id], &events[0], events[len(events)-1].Reject
	live := o != nil && o.wallet == c.Wallet && o.owner == c.Owner
	if why != engine.Accepted {
		w.check(len(events) == 1, "refused, and %d orders left", len(events)-1)
		w.check(why != engine.RejectReplaced || !live, "order %x is there to replace", id[:4])
		return
	}
	w.check(live && first.Kind == engine.Cancelled && first.Order == id &&
		first.Reason == engine.ByOwner, "order %x is replaced: %+v", id[:4], *first)
}

// final reads the last Event of a Command.
func (w *witness) final(c *engine.Command, seq engine.Sequence, e *engine.Event) {
	w.once(c, seq, e)
	size := int64(e.Size)
	switch e.Kind {
	case engine.Placed:
		w.rest(c, e)
	case engine.Listed:
		if w.books[e.Market] == nil {
			w.books[e.Market] = &seenBook{levels: [2]map[engine.Price]*seenLevel{{}, {}}}
		}
	case engine.Deposited, engine.Withdrawn:
		w.moved(e)
	case engine.Split, engine.Merged:
		if e.Kind == engine.Merged {
			size = -size
		}
		w.purse(e.Wallet).total -= size
		w.pairs(e.Market, size)
		for o := range engine.Outcome(2) {
			w.hand(token{e.Wallet, e.Market, o}).total += size
		}
	case engine.Redeemed:
		w.redeemed(e)
	case engine.Resolved:
		b := w.books[e.Market]
		b.payout, b.settled = e.Price, true
		w.check(len(b.levels[0])+len(b.levels[1]) == 0, "resolved with orders in the book")
	case engine.Collected:
		w.fees -= engine.Cash(size)
		w.purse(e.Wallet).total += size
	}
}

// once checks that an id, or an operator's reference, counts once.
func (w *witness) once(c *engine.Command, seq engine.Sequence, e *engine.Event) {
	known, binds := w.bound, false
	switch c.Kind {
	case engine.Place:
		binds = e.Kind != engine.Rejected || engine.Rejects[e.Reject].Final
	case engine.Deposit, engine.Withdraw, engine.Collect, engine.Resolve:
		known, binds = w.refs, e.Kind != engine.Rejected && c.ID != engine.OrderID{}
	default:
		return
	}
	first, bound := known[c.ID]
	duplicate := e.Kind == engine.Rejected && e.Reject == engine.RejectDuplicate
	w.check(duplicate == bound, "TWICE: id %x was bound by Sequence %d: %v, refused as duplicate: %v",
		c.ID[:4], first, bound, duplicate)
	w.check(!duplicate || e.First == first, "first bound by Sequence %d, not %d", first, e.First)
	if binds {
		known[c.ID] = seq
	}
}

// purse is a wallet's collateral.
func (w *witness) purse(no engine.WalletNo) *account {
	if w.cash[no] == nil {
		w.cash[no] = new(account)
	}
	return w.cash[no]
}

// hand is somebody's tokens.
func (w *witness) hand(t token) *account {
	if w.tokens[t] == nil {
		w.tokens[t] = new(account)
	}
	return w.tokens[t]
}

// pairs makes pairs of tokens, or unmakes them.
func (w *witness) pairs(no engine.MarketNo, size int64) {
	b := w.books[no]
	b.vault += engine.Cash(size)
	for o := range b.issued {
		b.issued[o] += engine.Size(size)
	}
}

// moved reads a deposit or a withdrawal.
func (w *witness) moved(e *engine.Event) {
	size := int64(e.Size)
	if e.Kind == engine.Withdrawn {
		size = -size
	}
	if e.Market == 0 {
		w.purse(e.Wallet).total += size
		w.external -= engine.Cash(size)
		return
	}
	b := w.books[e.Market]
	w.hand(token{e.Wallet, e.Market, e.Outcome}).total += size
	if size < 0 {
		b.external[e.Outcome] -= engine.Size(size)
		return
	}
	back := min(engine.Size(size), b.external[e.Outcome])
	fresh := engine.Size(size) - back
	b.external[e.Outcome] -= back
	b.external[e.Outcome.Other()] += fresh
	w.external -= engine.Cash(fresh)
	w.pairs(e.Market, int64(fresh))
}

// redeemed reads a payout: never more than the tokens are worth.
func (w *witness) redeemed(e *engine.Event) {
	b := w.books[e.Market]
	worth := e.Args[0]*int64(b.payout) + e.Args[1]*int64(engine.PriceOne-b.payout)
	paid := int64(e.Size)
	w.check(b.settled && paid*int64(engine.PriceOne) <= worth &&
		(paid+1)*int64(engine.PriceOne) > worth-int64(engine.PriceOne),
		"paid %d for tokens worth %d/10000", paid, worth)
	for o := range engine.Outcome(2) {
		w.hand(token{e.Wallet, e.Market, o}).total -= e.Args[o]
		b.issued[o] -= engine.Size(e.Args[o])
	}
	w.purse(e.Wallet).total += paid
	b.vault -= engine.Cash(paid)
}

// filled reads a fill. It must be at the best price, and with the oldest order there.
func (w *witness) filled(c *engine.Command, e *engine.Event) {
	w.fills++
	o := w.orders[e.Order]
	if o == nil {
		w.check(false, "a fill of an order that does not rest")
		return
	}
	w.check(o.market == c.Market && o.wallet == e.Wallet && o.price == e.Price &&
		o.side == e.Side && o.outcome == e.Outcome, "the order resting is %+v", *o)
	w.check(o.expiry == 0 || o.expiry > w.time, "it had expired at %d, now is %d", o.expiry, w.time)
	side, price := o.ladder()
	b := w.books[o.market]
	best, found := b.best(side)
	w.check(found && best == price, "filled at %d, the best is %d", price, best)
	w.check(b.levels[side][price].queue[0] == e.Order, "it was not first in its queue")
	w.leave(e.Order, e.Size)
	w.check(o.remaining == e.Remaining, "%d left, the book has %d", e.Remaining, o.remaining)

	want, own := engine.Transfer, e.Price
	switch {
	case e.Outcome == c.Outcome:
		w.check(c.Side != e.Side, "two of one side and one token met")
	case c.Side != e.Side:
		w.check(false, "a BUY and a SELL of complements met")
	case c.Side == engine.Buy:
		want, own = engine.Mint, engine.PriceOne-e.Price
		w.pairs(c.Market, int64(e.Size))
	default:
		want, own = engine.Merge, engine.PriceOne-e.Price
		w.pairs(c.Market, -int64(e.Size))
	}
	w.check(e.Settlement == want, "settled as %d", e.Settlement)
	w.party(token{e.Wallet, c.Market, e.Outcome}, e.Side, e.Size, e.Price)
	w.party(token{c.Wallet, c.Market, c.Outcome}, c.Side, e.Size, own)
	w.check(e.Fee >= 0, "fee %d", e.Fee)
	w.purse(c.Wallet).total -= int64(e.Fee)
	w.fees += e.Fee
}

// party moves one side of a fill.
func (w *witness) party(t token, side engine.Side, size engine.Size, price engine.Price) {
	cost, n := int64(engine.Cost(size, price)), int64(size)
	if side == engine.Sell {
		cost, n = -cost, -n
	}
	w.purse(t.wallet).total -= cost
	w.hand(t).total += n
}

// rest reads the remainder of an order that goes to the book.
func (w *witness) rest(c *engine.Command, e *engine.Event) {
	o := &seenOrder{c.Market, c.Wallet, c.Owner, c.Side, c.Outcome, e.Price, e.Remaining, c.Expiry}
	w.check(w.orders[c.ID] == nil && e.Remaining > 0 && e.Remaining%engine.Lot == 0,
		"an order of %d rests", e.Remaining)
	w.check(c.Type <= engine.GTD, "an order of type %d rests", c.Type)
	side, price := o.ladder()
	b := w.books[o.market]
	if facing, found := b.best(side.Other()); found {
		w.check(side == engine.Buy && price < facing || side == engine.Sell && price > facing,
			"CROSSED: it rests at %d, facing %d", price, facing)
	}
	l := b.levels[side][price]
	if l == nil {
		l = new(seenLevel)
		b.levels[side][price] = l
	}
	l.size += o.remaining
	l.queue = append(l.queue, c.ID)
	w.orders[c.ID] = o
	w.hold(o, o.remaining)
}

// leave takes size of an order out of its book.
func (w *witness) leave(id engine.OrderID, size engine.Size) *seenOrder {
	o := w.orders[id]
	if o == nil {
		return nil
	}
	side, price := o.ladder()
	b := w.books[o.market]
	l := b.levels[side][price]
	o.remaining -= size
	l.size -= size
	w.hold(o, -size)
	if o.remaining > 0 {
		return o
	}
	for i := range l.queue {
		if l.queue[i] == id {
			l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
			break
		}
	}
	if len(l.queue) == 0 {
		w.check(l.size == 0, "an empty level holds %d", l.size)
		delete(b.levels[side], price)
	}
	delete(w.orders, id)
	return o
}

// hold changes the amount that backs an order.
func (w *witness) hold(o *seenOrder, size engine.Size) {
	if o.side == engine.Buy {
		w.purse(o.wallet).held += int64(engine.Cost(size, o.price))
		return
	}
	w.hand(token{o.wallet, o.market, o.outcome}).held += int64(size)
}

// ladder returns side and price of an order in prices of outcome 0.
func (o *seenOrder) ladder() (engine.Side, engine.Price) {
	if o.outcome == 0 {
		return o.side, o.price
	}
	return o.side.Other(), engine.PriceOne - o.price
}

// best returns the best price of a side.
func (b *seenBook) best(side engine.Side) (best engine.Price, found bool) {
	for p := range b.levels[side] {
		if !found || side == engine.Buy && p > best || side == engine.Sell && p < best {
			best, found = p, true
		}
	}
	return best, found
}

// sums checks every asset: its entries add up to zero, and no account is negative.
func (w *witness) sums() {
	cash, issued := int64(w.external+w.fees), map[engine.MarketNo]*[2]engine.Size{}
	w.check(w.fees >= 0, "fees %d", w.fees)
	for no, a := range w.cash {
		cash += a.total
		w.check(a.held >= 0 && a.held <= a.total, "wallet %d has %d, reserved %d", no, a.total, a.held)
	}
	for no, b := range w.books {
		cash += int64(b.vault)
		issued[no] = &[2]engine.Size{b.external[0], b.external[1]}
		w.check(min(b.external[0], b.external[1]) >= 0, "market %d: external %v", no, b.external)
		owed := int64(b.issued[0])*int64(b.payout) + int64(b.issued[1])*int64(engine.PriceOne-b.payout)
		if !b.settled {
			owed = int64(max(b.issued[0], b.issued[1])) * int64(engine.PriceOne)
		}
		w.check(int64(b.vault)*int64(engine.PriceOne) >= owed, "market %d: vault %d owes %d/10000",
			no, b.vault, owed)
	}
	for t, a := range w.tokens {
		issued[t.market][t.outcome] += engine.Size(a.total)
		w.check(a.held >= 0 && a.held <= a.total, "%+v: %d, reserved %d", t, a.total, a.held)
	}
	for no, b := range w.books {
		w.check(*issued[no] == b.issued, "market %d: issued %v, there are %v", no, b.issued,
			*issued[no])
	}
	w.check(cash == 0, "collateral sums to %d", cash)
}
