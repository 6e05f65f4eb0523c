package history

import (
	"slices"

	"clobd/engine"
)

// livePrices counts the live orders of a market by price, from the owners' worst price to the best.
type livePrices [2][]rung

// rung is a price with live orders: of outcome 0 for bids, its complement for asks.
type rung struct {
	price  engine.Price
	orders int32
}

// count counts by more orders at a price, 1 or -1, and reports whether there was one to take away.
func (l *livePrices) count(by int32, s engine.Side, o engine.Outcome, p engine.Price) bool {
	side := &l[s^engine.Side(o)]
	if s == engine.Sell { // sellers are sorted by the complement of their price
		p = engine.PriceOne - p
	}
	i, found := slices.BinarySearchFunc(*side, p, func(r rung, p engine.Price) int {
		return int(r.price) - int(p)
	})
	if !found && by < 0 {
		return false
	}
	if !found {
		*side = slices.Insert(*side, i, rung{price: p})
	}
	if (*side)[i].orders += by; (*side)[i].orders == 0 {
		*side = slices.Delete(*side, i, i+1)
	}
	return true
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
