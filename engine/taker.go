package engine

import (
	"fmt"
	"math/bits"
	"sort"
)

// taker is an arriving order on its way through the book. It sums up what the order pays and gets,
// and settle posts the sums once.
//
// A budget bounds a BUY that never rests: a better price yields more shares. The size in lots
// bounds all other orders, of a BUY at most what the signed cash pays for at the limit. A FOK needs
// all of its signed shares, at any prices that come to no more than the signed cash.
type taker struct {
	c         *Command
	id        uint64 // folded
	tag       uint32 // of its id in the table
	market    *market
	account   *account
	hint      uint32 // what Touch guessed as its position
	position  uint32 // 0: none yet
	side      Side   // in the ladder
	budget    bool
	stopped   bool   // it met an order of its own wallet, and the prevention ends it
	index     uint32 // limit in the ladder, in ticks
	price     Price  // limit in its own token
	size      Size   // in lots
	remaining Size   // the part of size that is not filled yet
	filled    Size
	cash      int64 // collateral that a BUY paid or a SELL received, without the fee
	fee       int64
	pairs     int64 // minted, or merged if negative

	args [3]int64 // of the Reject, if it is refused
}

// refuse returns why an order is refused, and keeps the values that the text of the Reject names.
func (t *taker) refuse(why Reject, values ...int64) Reject {
	copy(t.args[:], values)
	return why
}

// looseness: other amounts may miss their limit by 1/looseness of a tick, as clients round amounts.
const looseness = 50

// judge derives price and size from the two signed amounts. The price is the number of ticks
// nearest to cash / size. The amounts may miss it by one base unit of collateral for an order that
// may rest, else by 1/looseness of a tick.
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
	// The rare condition comes first: the processor cannot predict the side.
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

// roundPrice returns the price of the signed amounts in 1/10,000, for a reject's text.
func roundPrice(c *Command) int64 {
	size := uint64(c.Size)
	return int64(min((uint64(c.Cash)*uint64(PriceOne)+size/2)/size, 1<<63-1))
}

// limits judges an order by what it would meet, and by the numbers of open orders.
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
	case m.book.Orders >= MaxMarketOrders && !t.crosses():
		// A crossing order may come in: it rests only after it has filled another one.
		return t.refuse(RejectMarketOrders, MaxMarketOrders)
	}
	return Accepted
}

func (t *taker) crosses() bool { return t.market.book.front(t.side, t.index) != 0 }

// need returns what an order must have free at its limit: tokens for a SELL, else cash and the fee.
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

// enough returns an upper bound of need without a division: Fee.Rate is less than 1.
func (t *taker) enough() int64 {
	amount := int64(t.size)
	cash := int64(t.c.Cash) + amount
	if t.c.Side == Buy {
		amount = cash
	}
	return amount
}

// free returns the collateral with which a BUY can still pay.
func (t *taker) free() int64 { return t.account.cash.free() - t.cash - t.fee }

// portion returns how much of a resting order the arriving one trades, 0 if it cannot pay a lot.
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

// payable cuts the shares that a budget buys beyond its size down to what free cash pays for, fee
// included: nobody escapes a fee with a far limit and no cash left.
func (t *taker) payable(size Size, price Price) Size {
	free, least := t.free(), t.remaining
	return least + Lot*Size(sort.Search(int((size-least)/Lot), func(more int) bool {
		sum := least + Lot*Size(more+1)
		return int64(Cost(sum, price)+t.market.fee.on(sum, price)) > free
	}))
}

// charge returns the fee for one fill, at most what is left to pay it: a SELL pays out of the
// proceeds, a BUY on top, but not from the cash that the rest of its size may cost.
func (t *taker) charge(size Size, p Price, cost int64) Cash {
	most := cost
	if t.c.Side == Buy {
		rest := int64(Cost(max(t.remaining-size, 0), t.price))
		most = t.free() - cost - min(rest, int64(t.c.Cash)-t.cash-cost)
	}
	return min(t.market.fee.on(size, p), Cash(most))
}

func (t *taker) assertMet() {
	if t.c.Type == FOK && t.remaining > 0 {
		panic(fmt.Sprintf("BUG: FOK misses %d of %d", t.remaining, t.size))
	}
	if t.c.Type == FAK && t.filled == 0 && !t.stopped {
		panic(fmt.Sprintf("BUG: FAK of %d met nothing", t.size))
	}
}

// left returns why the rest of an order does not rest, 0 if it does or nothing is left.
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
// size, by more than judge tolerates.
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
