package cases

import (
	"cmp"
	"slices"

	"clobd/engine"
)

// order is a resting order as the Events tell of it.
type order struct {
	id    engine.OrderID
	side  engine.Side  // in the ladder
	price engine.Price // of outcome 0
	left  engine.Size
}

// priceLevel is the queue at one price, oldest first.
type priceLevel struct {
	price  engine.Price
	orders []*order
}

// size is what all orders of a level have left.
func (l *priceLevel) size() (sum engine.Size) {
	for _, o := range l.orders {
		sum += o.left
	}
	return sum
}

// ladder is the book of a market folded from Events, in prices of outcome 0, best levels first.
type ladder struct {
	sides [2][]priceLevel
	live  map[engine.OrderID]*order
}

// find is where a level is, or belongs.
func (l *ladder) find(side engine.Side, price engine.Price) (at int, found bool) {
	return slices.BinarySearchFunc(l.sides[side], price, func(v priceLevel, p engine.Price) int {
		if side == engine.Buy {
			return cmp.Compare(p, v.price)
		}
		return cmp.Compare(v.price, p)
	})
}

// inLadder is an order's side and price in terms of outcome 0.
func inLadder(s engine.Side, o engine.Outcome, p engine.Price) (engine.Side, engine.Price) {
	if o == 0 {
		return s, p
	}
	return s.Other(), engine.PriceOne - p
}

// fold takes in what happened. A fill must be of the oldest order at the best price of its side.
func (l *ladder) fold(events []engine.Event) error {
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case engine.Placed:
			l.add(e)
		case engine.Filled, engine.Cancelled:
			o := l.live[e.Order]
			if o == nil {
				return differ("event", "an order that rests", e.Order.Hex())
			}
			if e.Kind == engine.Cancelled {
				if o.left != e.Remaining {
					return differ("size of a cancelled order", o.left, e.Remaining)
				}
				l.remove(o)
				continue
			}
			if first := l.sides[o.side][0].orders[0]; first != o {
				return differ("maker", "the oldest order at the best price, "+first.id.Hex(),
					e.Order.Hex())
			}
			if o.left -= e.Size; o.left != e.Remaining || o.left < 0 {
				return differ("what a fill leaves", o.left, e.Remaining)
			}
			if o.left == 0 {
				l.remove(o)
			}
		}
	}
	return nil
}

// add puts a placed order at the end of its queue.
func (l *ladder) add(e *engine.Event) {
	o := &order{id: e.Order, left: e.Remaining}
	o.side, o.price = inLadder(e.Side, e.Outcome, e.Price)
	at, found := l.find(o.side, o.price)
	if !found {
		l.sides[o.side] = slices.Insert(l.sides[o.side], at, priceLevel{price: o.price})
	}
	v := &l.sides[o.side][at]
	v.orders = append(v.orders, o)
	l.live[o.id] = o
}

// remove takes an order out, and its level if it was the last one there.
func (l *ladder) remove(o *order) {
	at, _ := l.find(o.side, o.price)
	v := &l.sides[o.side][at]
	v.orders = slices.Delete(v.orders, slices.Index(v.orders, o), slices.Index(v.orders, o)+1)
	if len(v.orders) == 0 {
		l.sides[o.side] = slices.Delete(l.sides[o.side], at, at+1)
	}
	delete(l.live, o.id)
}

// last reports whether nobody waits behind an order.
func (l *ladder) last(o *order) bool {
	at, _ := l.find(o.side, o.price)
	orders := l.sides[o.side][at].orders
	return orders[len(orders)-1] == o
}

// cost is what size costs when it is taken from a side, best level first, and the price of the last
// of it; false if the side holds less.
func (l *ladder) cost(side engine.Side, size engine.Size) (engine.Cash, engine.Price, bool) {
	sum, worst := engine.Cash(0), engine.Price(0)
	for i := 0; size > 0; i++ {
		if i == len(l.sides[side]) {
			return 0, 0, false
		}
		v := &l.sides[side][i]
		part := min(size, v.size())
		sum, worst, size = sum+engine.Cost(part, v.price), v.price, size-part
	}
	return sum, worst, true
}
