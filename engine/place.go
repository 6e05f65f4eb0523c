package engine

import (
	"fmt"
	"math/bits"
)

// taker is an arriving order on its way through the book. What it pays and gets is summed up here
// and posted once.
type taker struct {
	c         *Command
	market    *market
	account   *account
	position  uint32 // 0: none yet
	side      Side   // in the ladder
	index     uint32 // limit in the ladder, in ticks
	price     Price  // limit in its own token
	size      Size   // what it asks for, in lots
	remaining Size
	cash      int64 // collateral paid by a BUY, received by a SELL
	pairs     int64 // minted; merged if negative
}

// place answers Place: judge, match, settle, rest.
func (x *Exchange) place(c *Command, seq Sequence, events []Event) []Event {
	tag := x.seen.tag(&c.ID)
	if _, first, known := x.find(&c.ID, tag); known {
		return refuse(events, c, refusal{reject: RejectDuplicate, first: first})
	}
	if c.Seen < x.seen.floor {
		return refuse(events, c, refusal{reject: RejectRecheck, first: x.seen.floor})
	}
	t := taker{c: c}
	if no := x.admit(&t); no.reject != Accepted {
		if Rejects[no.reject].Final {
			x.remember(&c.ID, tag, seq, 0)
		}
		return refuse(events, c, no)
	}
	if t.position == 0 {
		t.position = x.addPosition(c.Wallet, c.Market)
	}
	events = x.match(&t, events)
	x.settle(&t)
	h, kind := uint32(0), Completed
	if t.remaining > 0 {
		h, kind = x.rest(&t, seq, tag), Placed
	}
	x.remember(&c.ID, tag, seq, h)
	return append(events, Event{
		Kind: kind, Side: c.Side, Outcome: c.Outcome, Price: t.price, Market: c.Market,
		Wallet: c.Wallet, Owner: c.Owner, Size: t.size, Remaining: t.remaining, Order: c.ID,
	})
}

// admit judges an arriving order: who, where, what, how much, and whether it is paid for.
func (x *Exchange) admit(t *taker) refusal {
	c := t.c
	if c.Wallet == 0 || uint32(c.Wallet) > x.accounts.used {
		return refusal{reject: RejectWallet}
	}
	t.account = x.accounts.at(uint32(c.Wallet))
	t.market = x.known(c.Market)
	switch {
	case c.Owner != c.Wallet && (c.Owner == 0 || c.Owner != t.account.owner):
		return refusal{reject: RejectLink}
	case t.market == nil || c.Outcome > 1:
		return refusal{reject: RejectMarket}
	case t.market.state != Open:
		return refusal{reject: RejectUnopened}
	case c.Type != GTC || c.Side > 1:
		return refusal{reject: RejectType}
	}
	if no := t.judge(); no.reject != Accepted {
		return no
	}
	switch {
	case t.account.open >= MaxWalletOrders:
		return refusal{reject: RejectWalletOrders, args: [3]int64{MaxWalletOrders}}
	case t.market.book.orders >= MaxMarketOrders && t.market.book.front(t.side, t.index) == 0:
		// One that crosses may come in: it rests only after it has taken another one out.
		return refusal{reject: RejectMarketOrders, args: [3]int64{MaxMarketOrders}}
	}
	t.position = x.position(c.Wallet, c.Market)
	return x.afford(t)
}

// judge finds price and size in the two signed amounts. The price is the whole number of ticks
// nearest to cash / size, and is good if the amounts miss it by no more than one base unit of
// collateral, which is what clients' rounding costs. The size is in lots, and so that a BUY never
// spends more than it signed.
func (t *taker) judge() refusal {
	c, m := t.c, t.market
	if c.Size < 1 || c.Size > MaxOrder || c.Cash < 1 || c.Cash > MaxAmount {
		return refusal{reject: RejectAmount}
	}
	ticks := uint64(m.book.ticks)
	cash, size := uint64(c.Cash)*ticks, uint64(c.Size)
	n := (cash + size/2) / size
	if n < 1 || n >= ticks || cash+ticks < n*size || cash > n*size+ticks {
		return refusal{reject: RejectTick, args: [3]int64{roundPrice(c), int64(m.tick)}}
	}
	if c.Size < m.min {
		return refusal{reject: RejectMinSize, args: [3]int64{int64(c.Size), int64(m.min)}}
	}
	t.price = Price(n) * m.tick
	lots := c.Size / Lot
	if c.Side == Buy && int64(lots)*int64(t.price) > int64(c.Cash) {
		lots = Size(int64(c.Cash) / int64(t.price))
	}
	if lots == 0 {
		return refusal{
			reject: RejectMinSize, args: [3]int64{int64(c.Size), int64(max(m.min, Lot))}}
	}
	t.size = lots * Lot
	t.remaining = t.size
	t.side = ladderSide(c.Side, c.Outcome)
	t.index = uint32(n)
	if c.Outcome == 1 {
		t.index = uint32(ticks - n)
	}
	return refusal{}
}

// roundPrice is the price of the signed amounts in 1/10,000, for a reject's text.
func roundPrice(c *Command) int64 {
	size := uint64(c.Size)
	return int64(min((uint64(c.Cash)*uint64(PriceOne)+size/2)/size, 1<<63-1))
}

// afford checks an arriving order against what is free, at its limit: no better price costs more.
func (x *Exchange) afford(t *taker) refusal {
	need := reserved(t.c.Side, t.price, t.size)
	e := &t.account.cash
	if t.c.Side == Sell {
		if t.position == 0 {
			return refusal{reject: RejectBalance, args: [3]int64{0, 0, need}}
		}
		e = &x.positions.at(t.position).tokens[t.c.Outcome]
	}
	if e.free() < need {
		return refusal{reject: RejectBalance, args: [3]int64{e.total, e.held, need}}
	}
	return refusal{}
}

// match meets the resting orders, best price first and oldest first, until the limit or the end.
// The wallet's own resting orders in the way are cancelled instead.
func (x *Exchange) match(t *taker, events []Event) []Event {
	book := &t.market.book
	for t.remaining > 0 {
		h := book.front(t.side, t.index)
		if h == 0 {
			break
		}
		o := x.orders.at(h)
		if o.wallet == t.c.Wallet {
			events = x.drop(h, o, SelfTrade, events)
			continue
		}
		size := min(o.remaining, t.remaining)
		how := x.fill(t, o, size)
		events = append(events, Event{
			Kind: Filled, Settlement: how, Side: o.side, Outcome: o.outcome, Price: o.price,
			Market: o.market, Wallet: o.wallet, Owner: o.owner, Size: size,
			Remaining: o.remaining, First: o.first, Order: o.id,
		})
		if o.remaining == 0 {
			book.unlink(&x.orders, o)
			x.retire(h, o)
		}
	}
	return events
}

// fill moves size between a resting order and the arriving one, at the resting order's price. The
// settlement is read off the two physical sides: the same token changes hands, or both buy and a
// pair is made of what they pay, or both sell and the pair's 1.00 is shared out.
func (x *Exchange) fill(t *taker, o *order, size Size) Settlement {
	cost, how := int64(Cost(size, o.price)), Transfer
	t.remaining -= size
	t.market.book.reduce(o, size)
	if o.side == Buy {
		x.resize(o, o.remaining-size, cost)
		x.postToken(x.positions.at(o.position), o.outcome, int64(size), 0)
	} else {
		x.resize(o, o.remaining-size, int64(size))
		x.postCash(x.accounts.at(uint32(o.wallet)), cost, 0)
	}
	if o.outcome != t.c.Outcome {
		cost, how = int64(size)-cost, Mint
		if o.side == Buy {
			t.pairs += int64(size)
		} else {
			t.pairs, how = t.pairs-int64(size), Merge
		}
	}
	t.cash += cost
	return how
}

// settle posts what the arriving order paid and got.
func (x *Exchange) settle(t *taker) {
	filled := int64(t.size - t.remaining)
	if filled == 0 {
		return
	}
	t.assertFair(filled)
	p := x.positions.at(t.position)
	if t.c.Side == Buy {
		x.postCash(t.account, -t.cash, 0)
		x.postToken(p, t.c.Outcome, filled, 0)
	} else {
		x.postCash(t.account, t.cash, 0)
		x.postToken(p, t.c.Outcome, -filled, 0)
	}
	if t.pairs != 0 {
		x.issue(t.market, t.pairs)
	}
}

// assertFair panics if the fills are worse for the arriving order than its signed ratio of cash to
// size, beyond the one base unit that its price may be off. Resting orders trade at their own
// price.
func (t *taker) assertFair(filled int64) {
	worse := false
	if t.c.Side == Buy {
		worse = less(int64(t.c.Cash), filled, t.cash-1, int64(t.c.Size))
	} else {
		worse = less(t.cash+1, int64(t.c.Size), int64(t.c.Cash), filled)
	}
	if worse {
		panic(fmt.Sprintf("BUG: %d for %d is worse than the signed %d for %d",
			t.cash, filled, t.c.Cash, t.c.Size))
	}
}

// less says whether a*b < c*d, in 128 bits. None is below zero.
func less(a, b, c, d int64) bool {
	leftHi, leftLo := bits.Mul64(uint64(a), uint64(b))
	rightHi, rightLo := bits.Mul64(uint64(c), uint64(d))
	return leftHi < rightHi || leftHi == rightHi && leftLo < rightLo
}

// rest puts what remains of an arriving order into the book.
func (x *Exchange) rest(t *taker, seq Sequence, tag uint32) uint32 {
	c, h := t.c, x.takeOrder()
	o := x.orders.at(h)
	*o = order{
		wallet: c.Wallet, owner: c.Owner, position: t.position, market: c.Market,
		index: uint16(t.index), price: t.price, side: c.Side, outcome: c.Outcome,
		key: c.Key, id: c.ID, first: seq, rank: t.market.book.nextRank(), tag: tag,
	}
	o.fold = foldOrder(o)
	x.resize(o, t.remaining, 0)
	t.market.book.rest(&x.orders, h, o)
	x.enlist(h, o, t.account, x.positions.at(t.position))
	return h
}
