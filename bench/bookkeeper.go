package bench

import (
	"context"
	"fmt"

	"clobd/bench/trader"
	"clobd/bench/workload"
	"clobd/engine"
)

// bookkeeper computes what wallets hold from the Commands and Events of a journal, with arithmetic
// of its own. This holds in whatever order connections met: a fill moves what its price and size
// say.
type bookkeeper struct {
	numbers map[engine.Address]engine.WalletNo
	wallets map[engine.WalletNo]*belongings
	resting map[engine.OrderID]*openOrder
	books   map[uint16]engine.MarketNo      // by Op.Book, as the first order of each names it
	drawn   map[engine.OrderID]*workload.Op // by the generator
	wrong   error                           // the first contradiction
}

// belongings are what a wallet holds, with what its orders reserve.
type belongings struct {
	cash   engine.Cash
	shares map[share]engine.Size
}

// share is a kind of share.
type share struct {
	market  engine.MarketNo
	outcome engine.Outcome
}

// openOrder is an order in a book.
type openOrder struct {
	wallet engine.WalletNo
	of     share
	side   engine.Side
	price  engine.Price
	left   engine.Size
}

func newBookkeeper() *bookkeeper {
	return &bookkeeper{numbers: map[engine.Address]engine.WalletNo{},
		wallets: map[engine.WalletNo]*belongings{}, resting: map[engine.OrderID]*openOrder{},
		books: map[uint16]engine.MarketNo{}, drawn: map[engine.OrderID]*workload.Op{}}
}

// must notes a contradiction.
func (l *bookkeeper) must(ok bool, format string, args ...any) {
	if !ok && l.wrong == nil {
		l.wrong = fmt.Errorf(format, args...)
	}
}

func (l *bookkeeper) at(no engine.WalletNo) *belongings {
	a := l.wallets[no]
	if a == nil {
		a = &belongings{shares: map[share]engine.Size{}}
		l.wallets[no] = a
	}
	return a
}

// add adds a Command and its Events.
func (l *bookkeeper) add(c *engine.Command, events []engine.Event) {
	order := openOrder{c.Wallet, share{c.Market, c.Outcome}, c.Side, 0, c.Size}
	if c.Kind == engine.Place {
		l.asDrawn(c)
	}
	for i := range events {
		switch e := &events[i]; e.Kind {
		case engine.Deposited:
			l.numbers[c.Address] = e.Wallet
			if c.Market == 0 {
				l.at(e.Wallet).cash += c.Cash
			} else {
				l.at(e.Wallet).shares[order.of] += c.Size
			}
		case engine.Filled:
			l.fill(&order, e)
		case engine.Placed:
			l.must(e.Remaining == order.left, "order %s of %s, %s of them left, rests with %s",
				c.ID.Hex(), c.Size, order.left, e.Remaining)
			r := order
			r.price = e.Price
			l.resting[c.ID] = &r
		case engine.Completed: // a BUY with a budget may buy more than its Size
			l.must(c.Side == engine.Buy || e.Remaining == order.left,
				"order %s of %s, %s of them left, ended with %s", c.ID.Hex(), c.Size,
				order.left, e.Remaining)
		case engine.Cancelled:
			r := l.resting[e.Order]
			l.must(r != nil && r.left == e.Remaining, "order %s was cancelled with %s left of %+v",
				e.Order.Hex(), e.Remaining, r)
			delete(l.resting, e.Order)
		}
	}
}

// asDrawn compares a placed order with the operation that was drawn.
func (l *bookkeeper) asDrawn(c *engine.Command) {
	op := l.drawn[c.ID]
	if op == nil {
		return
	}
	if _, known := l.books[op.Book]; !known {
		l.books[op.Book] = c.Market
	}
	l.must(op.Side == c.Side && engine.Cost(op.Size, op.Price) == c.Cash && op.Size == c.Size &&
		op.Outcome == c.Outcome && l.books[op.Book] == c.Market,
		"order %s is in the journal as %v %s for %s in market %d, outcome %d; drawn was %+v", c.ID.Hex(), c.Side, c.Size, c.Cash, c.Market, c.Outcome, *op)
}

// fill moves what a fill between an arriving order and a resting one moves.
func (l *bookkeeper) fill(taker *openOrder, e *engine.Event) {
	maker := l.resting[e.Order]
	l.must(maker != nil && maker.wallet == e.Wallet && maker.price == e.Price &&
		maker.left-e.Size == e.Remaining, "a fill of %s at %s leaves %s of order %s: %+v", e.Size,
		e.Price, e.Remaining, e.Order.Hex(), maker)
	if maker == nil {
		return
	}
	paid := engine.Cost(e.Size, maker.price)
	l.move(maker, e.Size, paid)
	if e.Settlement != engine.Transfer { // the two sides of a pair share 1.00
		paid = engine.Cash(e.Size) - paid
	}
	l.move(taker, e.Size, paid)
	l.at(taker.wallet).cash -= e.Fee
	taker.left -= e.Size
	if maker.left -= e.Size; maker.left == 0 {
		delete(l.resting, e.Order)
	}
}

// move gives an order's wallet the shares for the cash, or the cash for the shares.
func (l *bookkeeper) move(r *openOrder, size engine.Size, cash engine.Cash) {
	a := l.at(r.wallet)
	if r.side == engine.Buy {
		a.cash, a.shares[r.of] = a.cash-cash, a.shares[r.of]+size
	} else {
		a.cash, a.shares[r.of] = a.cash+cash, a.shares[r.of]-size
	}
	l.must(a.cash >= 0 && a.shares[r.of] >= 0, "wallet %d has spent more than it had: %s, %s shares",
		r.wallet, a.cash, a.shares[r.of])
}

// covered finds wallets that hold less than their resting orders may cost.
func (l *bookkeeper) covered() error {
	need := map[engine.WalletNo]*belongings{}
	for _, r := range l.resting {
		n := need[r.wallet]
		if n == nil {
			n = &belongings{shares: map[share]engine.Size{}}
			need[r.wallet] = n
		}
		if r.side == engine.Buy {
			n.cash += engine.Cost(r.left, r.price)
		} else {
			n.shares[r.of] += r.left
		}
	}
	for no, n := range need {
		had := l.at(no)
		l.must(had.cash >= n.cash, "wallet %d holds %s, its orders need %s", no, had.cash, n.cash)
		for of, size := range n.shares {
			l.must(had.shares[of] >= size, "wallet %d holds %s of %+v, its orders need %s", no,
				had.shares[of], of, size)
		}
	}
	return l.wrong
}

// heldFunds is what the node says that a wallet holds of the market of a book.
type heldFunds struct {
	address engine.Address
	book    uint16
	funds
}

// mostAsked is in how many books at most wallets are asked what they hold: it takes a second.
const mostAsked = 16

// holdings asks the node, as their owners may, what the wallets hold.
func (t *trial) holdings(ctx context.Context, clients []*trader.Client, markets [][2]engine.Token) (
	all []heldFunds, err error) {
	if len(markets) > mostAsked {
		return nil, nil
	}
	for i, c := range clients {
		for book, market := range markets {
			if !t.Workload.Trades(i, book) {
				continue
			}
			p := purse{ctx, c, market}
			f, err := p.held()
			if err != nil {
				return nil, fmt.Errorf("ask what wallet %s holds: %w", c.Address, err)
			}
			all = append(all, heldFunds{c.Signer.Address, uint16(book), f})
		}
	}
	return all, nil
}

// agree compares the accounts with what the node said. A book that nobody has traded is left out.
func (l *bookkeeper) agree(all []heldFunds) error {
	if err := l.covered(); err != nil {
		return err
	}
	for _, h := range all {
		a, market := l.at(l.numbers[h.address]), l.books[h.book]
		l.must(h.cash == a.cash, "the node says that wallet %s holds %s; its fills come to %s",
			h.address.Hex(), h.cash, a.cash)
		for o := range engine.Outcome(2) {
			l.must(market == 0 || h.shares[o] == a.shares[share{market, o}],
				"the node says that wallet %s holds %s of outcome %d in book %d; its fills come to %s",
				h.address.Hex(), h.shares[o], o, h.book, a.shares[share{market, o}])
		}
	}
	return l.wrong
}

// audit asks the run's own node what the wallets hold, stops the node, and checks what came of the
// run, whatever the connections met. The report says what was checked and what was not.
func (t *trial) audit(ctx context.Context, to *target, clients []*trader.Client,
	l *bookkeeper) error {
	r := t.report
	var held []heldFunds
	if r.Failure == "" {
		var err error
		if held, err = t.holdings(ctx, clients, to.market); err != nil {
			return err
		}
	}
	if err := to.own.stop(); err != nil {
		return err
	}
	if err := t.replayInto(ctx, to.own.dir, l); err != nil || r.Failure != "" {
		return err
	}
	if err := l.agree(held); err != nil {
		r.Failure = err.Error()
		return nil
	}
	r.Checked += ", with the side, price, size and token that were drawn; fills, rests and cancels " +
		"of each order come to its size; no wallet spent more than it had"
	if held != nil {
		r.Checked += ", and each holds, as the node told it, what its gifts and fills come to"
	}
	r.Checked += "; which orders met is not compared with the generator's model, as connections " +
		"come in any order"
	return nil
}
