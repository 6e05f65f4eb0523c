package engine

import (
	"fmt"
	"math/bits"
)

// taker is an arriving order on its way through the book. What it pays and gets is summed up here
// and posted once.
//
// A BUY that does not rest is bounded by its budget: it goes on beyond size as long as cash and
// limit allow, so that what it saves becomes more shares. All other orders are bounded by their
// size. It is what was signed, in lots, and for a BUY not more than the signed cash pays for at the
// limit; but a FOK must get all that it signed, wherever the book has it for that cash.
type taker struct {
	c         *Command
	id        uint64 // folded
	tag       uint32 // of its id in the table
	market    *market
	account   *account
	hint      uint32 // what Touch took for its position
	position  uint32 // 0: none yet
	side      Side   // in the ladder
	budget    bool
	stopped   bool   // it met an order of its own wallet, whose prevention ends it
	index     uint32 // limit in the ladder, in ticks
	price     Price  // limit in its own token
	size      Size   // what it asks for, in lots
	remaining Size   // what is missing of it: of a budget, what is sure to be had and paid for
	filled    Size
	cash      int64 // collateral paid by a BUY, received by a SELL, without the fee
	fee       int64
	pairs     int64 // minted; merged if negative

	args [3]int64 // of the Reject, if it is refused
}

// refuse returns why an order is refused, and keeps the values that the text of the Reject names.
func (t *taker) refuse(why Reject, values ...int64) Reject {
	copy(t.args[:], values)
	return why
}

// By 1/looseness of a tick the signed amounts of an order that does not rest may miss its limit:
// clients round there what is to be spent, and not a price.
const looseness = 50

// judge finds price and size in the two signed amounts. The price is the whole number of ticks
// nearest to cash / size, and is good if the amounts miss it by no more than clients' rounding
// costs: one base unit of collateral for an order that may rest, else 1/looseness of a tick.
func (t *taker) judge() Reject {
	c, m := t.c, t.market
	if c.FeeBound != 0 && c.FeeBound-1 < m.fee.Rate {
		return t.refuse(RejectFee, int64(c.FeeBound)-1, int64(m.fee.Rate))
	}
	if c.Size < 1 || c.Size > MaxOrder || c.Cash < 1 || c.Cash > MaxAmount {
		return RejectAmount
	}
	ticks := uint64(m.book.ticks)
	cash, size := uint64(c.Cash)*ticks, uint64(c.Size)
	n := (cash + size/2) / size
	off, slack, least := int64(cash-n*size), int64(ticks), m.min
	if c.Type > GTD {
		slack, least = int64(c.Size/looseness), 0
	}
	if n < 1 || n >= ticks || off > slack || -off > slack {
		return t.refuse(RejectTick, roundPrice(c), int64(m.tick))
	}
	t.price = Price(n) * m.tick
	lots := c.Size / Lot
	if least = max(least, Lot); c.Size < least {
		return t.refuse(RejectMinSize, int64(c.Size), int64(least))
	}
	// What is seldom so is asked first: which side comes next cannot be foreseen.
	if int64(lots)*int64(t.price) > int64(c.Cash) && c.Side == Buy && c.Type != FOK {
		if lots = Size(int64(c.Cash) / int64(t.price)); lots == 0 {
			return RejectAmount
		}
	}
	t.size = lots * Lot
	t.remaining = t.size
	t.budget = c.Type > GTD && c.Side == Buy
	t.side = ladderSide(c.Side, c.Outcome)
	index, mirrored := uint32(n), uint32(ticks-n)
	if c.Outcome == 1 {
		index = mirrored
	}
	t.index = index
	return Accepted
}

// roundPrice is the price of the signed amounts in 1/10,000, for a reject's text.
func roundPrice(c *Command) int64 {
	size := uint64(c.Size)
	return int64(min((uint64(c.Cash)*uint64(PriceOne)+size/2)/size, 1<<63-1))
}

// limits judges an order by what it would meet and where it would rest.
func (t *taker) limits() Reject {
	c, m := t.c, t.market
	switch {
	case c.PostOnly && t.crosses():
		return RejectCrosses
	case c.Cash < m.minBuy && c.Side == Buy && (c.Type > GTD || t.crosses()):
		return t.refuse(RejectMinBuy, int64(c.Cash), int64(m.minBuy))
	case c.Type > GTD:
		return Accepted
	case t.account.open >= MaxWalletOrders:
		return t.refuse(RejectWalletOrders, MaxWalletOrders)
	case m.book.orders >= MaxMarketOrders && !t.crosses():
		// One that crosses may come in: it rests only after it has taken another one out.
		return t.refuse(RejectMarketOrders, MaxMarketOrders)
	}
	return Accepted
}

// crosses says whether a resting order stands at the limit or before it.
func (t *taker) crosses() bool { return t.market.book.front(t.side, t.index) != 0 }

// need is what must be free for an arriving order, at its limit: tokens for a SELL, for a BUY what
// it may spend and the fee. No fee for a post-only order: it is never a taker.
func (t *taker) need() int64 {
	if t.c.Side == Sell {
		return int64(t.size)
	}
	need := Cost(t.size, t.price)
	if t.budget {
		need = t.c.Cash
	}
	if t.market.fee.Rate != 0 && !t.c.PostOnly {
		need += t.market.fee.most(t.size, t.price)
	}
	return int64(need)
}

// enough is at least what need says, and takes no division. What a BUY may spend but for the fee is
// no more than its signed cash, and a Rate of less than 1 takes less than 1.00 for a share.
func (t *taker) enough() int64 {
	amount := int64(t.size)
	cash := int64(t.c.Cash) + amount
	if t.c.Side == Buy {
		amount = cash
	}
	return amount
}

// free is the collateral that a BUY can still pay with.
func (t *taker) free() int64 { return t.account.cash.free() - t.cash - t.fee }

// portion is how much of a resting order the arriving one takes: 0 if it cannot pay for a lot.
func (t *taker) portion(o *order) Size {
	if !t.budget {
		return min(o.remaining, t.remaining)
	}
	price := o.price
	if o.outcome != t.c.Outcome {
		price = PriceOne - price
	}
	size := min(o.remaining, Size((int64(t.c.Cash)-t.cash)/int64(price))*Lot)
	if t.market.fee.Rate == 0 || size <= t.remaining {
		return size
	}
	return t.payable(size, price)
}

// payable cuts what a budget takes beyond the size it must get down to what is free for cost and
// fee. Only cash pays for it: with a far limit and nothing left, the fee of many cheap shares could
// else be escaped.
func (t *taker) payable(size Size, price Price) Size {
	free, low, high := t.free(), t.remaining/Lot, size/Lot+1
	for high-low > 1 {
		middle := low + (high-low)/2
		if int64(Cost(middle*Lot, price)+t.market.fee.on(middle*Lot, price)) <= free {
			low = middle
		} else {
			high = middle
		}
	}
	return low * Lot
}

// charge is the fee for one fill. A SELL pays it out of the proceeds, a BUY on top, but never out
// of what the rest of its size may cost: fills are rounded one by one, and many of them can come to
// more than was free for the fee when the order came in.
func (t *taker) charge(size Size, p Price, cost int64) Cash {
	most := cost
	if t.c.Side == Buy {
		rest := int64(Cost(max(t.remaining-size, 0), t.price))
		most = t.free() - cost - min(rest, int64(t.c.Cash)-t.cash-cost)
	}
	return min(t.market.fee.on(size, p), Cash(most))
}

// assertMet panics if an order that does not rest got less than its dry run promised.
func (t *taker) assertMet() {
	if t.c.Type == FOK && t.remaining > 0 {
		panic(fmt.Sprintf("BUG: FOK misses %d of %d", t.remaining, t.size))
	}
	if t.c.Type == FAK && t.filled == 0 && !t.stopped {
		panic(fmt.Sprintf("BUG: FAK of %d met nothing", t.size))
	}
}

// left is why what is missing of its size does not rest, 0 if it does or nothing is.
func (t *taker) left() Reason {
	switch {
	case t.remaining == 0:
		return 0
	case t.stopped:
		return SelfTrade
	case t.c.Type > GTD:
		return Unfilled
	}
	return 0
}

// assertFair panics if the fills are worse for the arriving order than its signed ratio of cash to
// size, beyond what its price may be off by: one base unit in all, or 1/looseness of a tick for
// each share. Resting orders trade at their own price.
func (t *taker) assertFair() {
	c, filled := t.c, uint64(t.filled)
	overHi, over := uint64(0), uint64(c.Size)
	if c.Type > GTD {
		overHi, over = bits.Mul64(filled, uint64(c.Size))
		overHi, over = divide(overHi, over, looseness*uint64(t.market.book.ticks))
	}
	gotHi, got := bits.Mul64(uint64(t.cash), uint64(c.Size))
	signedHi, signed := bits.Mul64(filled, uint64(c.Cash))
	if c.Side == Sell {
		gotHi, got, signedHi, signed = signedHi, signed, gotHi, got
	}
	signed, carry := bits.Add64(signed, over, 0)
	signedHi += overHi + carry
	worse := signedHi < gotHi || signedHi == gotHi && signed < got
	if worse || c.Side == Buy && t.cash > int64(c.Cash) {
		panic(fmt.Sprintf("BUG: %d for %d is worse than the signed %d for %d",
			t.cash, filled, c.Cash, c.Size))
	}
}
