package history

import (
	"slices"

	"clobd/engine"
)

// livePrices counts the live orders of a market by price, so that the best prices are known after
// each frame. Each side is sorted from its owners' worst price to their best.
type livePrices [2][]rung

// rung is a price with live orders: of outcome 0 for bids, its complement for asks.
type rung struct {
	price  engine.Price
	orders uint32
}

// seenAs returns side and price of an order as one in outcome 0. Selling outcome 1 at 1 - p is
// buying outcome 0 at p.
func (l *livePrices) seenAs(s engine.Side, o engine.Outcome, p engine.Price) (
	side engine.Side, price engine.Price) {
	side = s ^ engine.Side(o)
	if s == engine.Sell { // sellers are sorted by the complement of their price
		p = engine.PriceOne - p
	}
	return side, p
}

func (l *livePrices) add(s engine.Side, o engine.Outcome, p engine.Price) {
	side, price := l.seenAs(s, o, p)
	i, found := l.search(side, price)
	if !found {
		l[side] = slices.Insert(l[side], i, rung{price: price})
	}
	l[side][i].orders++
}

// remove reports whether there was an order to remove.
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

func (l *livePrices) search(side engine.Side, price engine.Price) (int, bool) {
	return slices.BinarySearchFunc(l[side], price, func(r rung, p engine.Price) int {
		return int(r.price) - int(p)
	})
}

// twice returns twice the midpoint of outcome 0, bid plus ask; false unless both sides have orders.
func (l *livePrices) twice() (uint32, bool) {
	bids, asks := l[engine.Buy], l[engine.Sell]
	if len(bids) == 0 || len(asks) == 0 {
		return 0, false
	}
	bid, ask := bids[len(bids)-1].price, engine.PriceOne-asks[len(asks)-1].price
	return uint32(bid) + uint32(ask), true
}
