package engine

// timers is a binary heap of the numbers of orders with an expiry: by expiry, then by market and
// rank, so that no two are equal. Each order knows its index in the heap.
type timers struct {
	heap slab[uint32] // from 1; the children of i are 2i and 2i+1
	n    uint32
}

// Due returns when the next order expires, 0 if none does. It trades until an Advance cancels it.
func (x *Exchange) Due() Time {
	if x.timers.n == 0 {
		return 0
	}
	return x.orders.at(*x.timers.heap.at(1)).expiry
}

// arm adds order h, whose expiry is not 0.
func (t *timers) arm(orders *slab[order], h uint32, o *order) {
	if t.n++; t.n > t.heap.used {
		t.heap.next()
	}
	t.rise(orders, t.n, h, o)
}

func (t *timers) disarm(orders *slab[order], o *order) {
	i := o.timer
	o.timer = 0
	h := *t.heap.at(t.n)
	t.n--
	if i > t.n {
		return
	}
	if last := orders.at(h); i > 1 && last.before(orders.at(*t.heap.at(i / 2))) {
		t.rise(orders, i, h, last)
	} else {
		t.sink(orders, i, h, last)
	}
}

func (o *order) before(p *order) bool {
	if o.expiry != p.expiry {
		return o.expiry < p.expiry
	}
	return o.market < p.market || o.market == p.market && o.rank < p.rank
}

// rise puts order h at the free index i of the heap, or above it.
func (t *timers) rise(orders *slab[order], i, h uint32, o *order) {
	heap := &t.heap
	for i > 1 {
		above := *heap.at(i / 2)
		p := orders.at(above)
		if !o.before(p) {
			break
		}
		*heap.at(i), p.timer = above, i
		i /= 2
	}
	*heap.at(i), o.timer = h, i
}

// sink puts order h at the free index i of the heap, or below it.
func (t *timers) sink(orders *slab[order], i, h uint32, o *order) {
	heap, n := &t.heap, t.n
	for 2*i <= n {
		next := 2 * i
		below := *heap.at(next)
		p := orders.at(below)
		if next < n {
			right := *heap.at(next + 1)
			if q := orders.at(right); q.before(p) {
				next, below, p = next+1, right, q
			}
		}
		if !p.before(o) {
			break
		}
		*heap.at(i), p.timer = below, i
		i = next
	}
	*heap.at(i), o.timer = h, i
}

// advance answers Advance: it cancels up to AdvanceOrders expired orders, earliest first.
func (x *Exchange) advance(c *Command, now Time, events []Event) []Event {
	n := 0
	for ; n < AdvanceOrders && x.timers.n != 0; n++ {
		h := *x.timers.heap.at(1)
		o := x.orders.at(h)
		if o.expiry > now {
			break
		}
		events = x.drop(h, o, Expired, events)
	}
	return append(events, Event{Kind: Advanced, Size: Size(n), Order: c.ID})
}
