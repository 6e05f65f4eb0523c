package matching

import "slices"

// textbook is the book that one would write with care and without this project's ladder: price
// levels sorted in a slice, best last and found by bisection, a queue of linked orders in each, a
// map from id to order. Orders and levels are used again, so that it allocates next to nothing.
type textbook struct {
	sides  [2][]*textLevel
	byID   map[uint64]*textOrder
	orders []*textOrder // to be used again
	levels []*textLevel // to be used again
}

type textOrder struct {
	id         uint64
	left       uint32
	side       uint8
	level      *textLevel
	next, prev *textOrder
}

type textLevel struct {
	price      uint32
	head, tail *textOrder
	size       uint64
}

// find returns the index of a price's level in its side, or where it would be.
func (t *textbook) find(side uint8, price uint32) (at int, ok bool) {
	levels := t.sides[side]
	low, high := 0, len(levels)
	for low < high {
		middle := int(uint(low+high) / 2)
		p := levels[middle].price
		if p == price {
			return middle, true
		}
		if (p < price) == (side == 0) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, false
}

// place matches an order and rests what is left of it, unless it is to be filled at once.
func (t *textbook) place(o *MixOp, filled func(id uint64, qty, price uint32)) {
	left, other := o.Qty, o.Side^1
	for left > 0 && len(t.sides[other]) > 0 {
		l := t.sides[other][len(t.sides[other])-1]
		if o.Side == 0 && l.price > o.Price || o.Side == 1 && l.price < o.Price {
			break
		}
		m := l.head
		size := min(left, m.left)
		filled(m.id, size, l.price)
		left -= size
		m.left -= size
		l.size -= uint64(size)
		if m.left == 0 {
			t.remove(m)
		}
	}
	if left > 0 && !o.IOC {
		t.rest(o, left)
	}
}

func (t *textbook) rest(o *MixOp, left uint32) {
	l, n := t.level(o.Side, o.Price), reuse(&t.orders)
	*n = textOrder{id: o.ID, left: left, side: o.Side, level: l, prev: l.tail}
	if l.tail != nil {
		l.tail.next = n
	} else {
		l.head = n
	}
	l.tail = n
	l.size += uint64(left)
	t.byID[o.ID] = n
}

// level is the level of a price, made if it is missing.
func (t *textbook) level(side uint8, price uint32) *textLevel {
	at, ok := t.find(side, price)
	if !ok {
		l := reuse(&t.levels)
		*l = textLevel{price: price}
		t.sides[side] = slices.Insert(t.sides[side], at, l)
	}
	return t.sides[side][at]
}

// reuse takes a used record, or a new one.
func reuse[T any](used *[]*T) *T {
	last := len(*used) - 1
	if last < 0 {
		return new(T)
	}
	r := (*used)[last]
	*used = (*used)[:last]
	return r
}

func (t *textbook) cancel(id uint64) { t.remove(t.byID[id]) }

// remove takes a resting order out.
func (t *textbook) remove(o *textOrder) {
	delete(t.byID, o.id)
	l := o.level
	if o.next != nil {
		o.next.prev = o.prev
	} else {
		l.tail = o.prev
	}
	if o.prev != nil {
		o.prev.next = o.next
	} else {
		l.head = o.next
	}
	l.size -= uint64(o.left)
	if l.head == nil {
		at, _ := t.find(o.side, l.price)
		t.sides[o.side] = slices.Delete(t.sides[o.side], at, at+1)
		t.levels = append(t.levels, l)
	}
	t.orders = append(t.orders, o)
}
