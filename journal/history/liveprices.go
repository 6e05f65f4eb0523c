package history

import (
	"slices"

	"clobd/engine"
)

// livePrices counts the live orders of a market by price, so that its best prices are known after each
// frame. Both sides are kept as seen by their owners: the best level is the last one.
type livePrices [2][]rung

// rung is one price with some live orders: of outcome 0 on the bids, its complement on the asks.
type rung struct {
	price  engine.Price
	orders uint32
}

// seenAs is where an order stands: its side among the live prices of outcome 0, and its price there. To sell
// outcome 1 at 1 - p is to buy outcome 0 at p.
func (l *livePrices) seenAs(s engine.Side, o engine.Outcome, p engine.Price) (
	side engine.Side, price engine.Price) {
	side = s ^ engine.Side(o)
	if s == engine.Sell { // a seller of either is better the lower he is
		p = engine.PriceOne - p
	}
	return side, p
}

// add counts an order that begins to rest.
func (l *livePrices) add(s engine.Side, o engine.Outcome, p engine.Price) {
	side, price := l.seenAs(s, o, p)
	i, found := l.search(side, price)
	if !found {
		l[side] = slices.Insert(l[side], i, rung{price: price})
	}
	l[side][i].orders++
}

// remove counts an order off that rests no more, and says whether there was one.
func (l *livePrices) remove(s engine.Side, o engine.Outcome, p engine.Price) bool {
	side, price := l.seenAs(s, o, p)
	i, found := l.search(side, price)
	if !found {
		return false
	}
	if l[side][i].orders--; l[side][i].orders == 0 {
		l[side] = slices.Delete(l[side], i, i+1)
	}
	return true
}

// search is where a price is, or would be.
func (l *livePrices) search(side engine.Side, price engine.Price) (int, bool) {
	return slices.BinarySearchFunc(l[side], price, func(r rung, p engine.Price) int {
		return int(r.price) - int(p)
	})
}

// twice is bid + ask of outcome 0, twice the midpoint; false unless both sides have orders.
func (l *livePrices) twice() (uint32, bool) {
	bids, asks := l[engine.Buy], l[engine.Sell]
	if len(bids) == 0 || len(asks) == 0 {
		return 0, false
	}
	bid, ask := bids[len(bids)-1].price, engine.PriceOne-asks[len(asks)-1].price
	return uint32(bid) + uint32(ask), true
}
