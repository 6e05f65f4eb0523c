package engine

import "fmt"

// Bare is matching alone: the books of an Exchange without ids, ledger and Events. It runs the same
// levels and queues as the Exchange. Benchmarks compare it with other matchers; the difference to
// Apply is the cost of the rest of a Command.
type Bare struct {
	books   []book
	queues  queues
	resting tray[bareOrder] // by handle
}

// bareOrder is a resting order of a Bare.
type bareOrder struct {
	remaining Size
	index     uint32
}

// Arrival is an order on its way into a book.
type Arrival struct {
	Index uint32 // limit in ticks, in [1, ticks-1]
	Side  Side   // in the ladder: Buy or Sell
	IOC   bool   // the order never rests
	Size  Size   // in any unit, at least 1
}

// BareFill is one fill of an arriving order, at the level of the resting one.
type BareFill struct {
	Handle    uint32
	Index     uint32
	Size      Size
	Remaining Size // of the resting order; 0 frees its handle
}

// NewBare makes this many empty books with levels 1 to ticks-1; ticks is at most PriceOne.
func NewBare(books, ticks int) *Bare {
	if ticks < 2 || ticks > int(PriceOne) {
		panic(fmt.Sprintf("BUG: a book of %d ticks", ticks))
	}
	b := &Bare{books: make([]book, books)}
	for i := range b.books {
		b.books[i] = newBook(uint32(ticks), &b.queues)
	}
	return b
}

// Place matches an arriving order with a book, best price first and oldest first, and appends its
// fills to fills, which is not nil. The rest of the order rests unless it is IOC. The handle is 0
// if the order does not rest, and valid until a Cancel or a fill with nothing remaining.
func (b *Bare) Place(book uint32, a Arrival, fills *[]BareFill) (handle uint32) {
	k := &b.books[book]
	// The processor can predict neither IOC nor a match. IOC is known at once and correlates with a
	// match, so a wrong guess about IOC costs less.
	if a.IOC {
		b.match(k, a, fills)
		return 0
	}
	if within(a.Side, a.Index, k.best[a.Side^1]) {
		if a.Size = b.match(k, a, fills); a.Size == 0 {
			return 0
		}
	}
	h := b.queues.freed // the one that rest will hand out
	if h == 0 {
		return b.restFresh(k, a)
	}
	*b.resting.at(h) = bareOrder{a.Size, a.Index}
	return k.rest(a.Index, a.Side, a.Size)
}

// restFresh rests an order when no number is free.
func (b *Bare) restFresh(k *book, a Arrival) (handle uint32) {
	b.queues.fresh()
	*b.resting.at(b.resting.next()) = bareOrder{a.Size, a.Index}
	return k.rest(a.Index, a.Side, a.Size)
}

// match fills an arriving order and returns the rest.
func (b *Bare) match(k *book, a Arrival, fills *[]BareFill) (left Size) {
	left = a.Size
	orders, met := b.resting.all, *fills
	for at := k.best[a.Side^1]; within(a.Side, a.Index, at); at = k.best[a.Side^1] {
		l, before := k.level(at), left
		for h := l.head; h != 0; {
			o := orders.at(h)
			if o.remaining > left {
				o.remaining -= left
				met = append(met, BareFill{h, at, left, o.remaining})
				left = 0
				break
			}
			left -= o.remaining
			met = append(met, BareFill{h, at, o.remaining, 0})
			h = k.pop(at)
			if left == 0 {
				break
			}
		}
		l.size -= before - left
		if left == 0 {
			break
		}
	}
	*fills = met
	return left
}

// Cancel removes a resting order from its book. The handle must be valid and of that book.
func (b *Bare) Cancel(book, handle uint32) {
	o := b.resting.at(handle)
	b.books[book].remove(handle, o.index, o.remaining)
}

// BareLevel is the book of a coming order and the level at its limit.
type BareLevel struct{ Book, Index uint32 }

// BareCancel is an order that will be cancelled. The handle must be valid and of that book.
type BareCancel struct{ Book, Handle uint32 }

// BareAhead is how many operations a caller of Bare best looks ahead. With 16 the loops start too
// often, and 64 are no better.
const BareAhead = 32

// Fetch fetches the records of the orders of these ids, BareAhead at a time. An id is an index into
// handles; ids beyond it are skipped. A handle may be 0 or no longer valid. Fetch the handles
// earlier, with FetchHandles.
func (b *Bare) Fetch(handles, ids []uint32) {
	links, orders := b.queues.links.all, b.resting.all
	if links.near != nil {
		fetchNear(handles, ids, links.near, orders.near)
		return
	}
	for _, id := range ids {
		if uint64(id) < uint64(len(handles)) && handles[id] != 0 {
			fetchLink(links.at(handles[id]))
			fetchBareOrder(orders.at(handles[id]))
		}
	}
}

// IsNear reports whether so few orders ever rested at a time, in so few books, that Touch costs
// more than it gains. The bounds are those of an Exchange.
func (b *Bare) IsNear() bool {
	return b.resting.used <= nearOrders && len(b.books) <= nearMarkets
}

// Touch fetches the levels and links that operations will read and write. Call it after Fetch if
// IsNear is false. New orders and cancels are separate lists, because the processor cannot predict
// which kind comes next.
func (b *Bare) Touch(places []BareLevel, cancels []BareCancel) {
	links, orders := b.queues.links.all, b.resting.all
	for i := range places {
		p := &places[i]
		fetchLevel(b.books[p.Book].peek(p.Index))
	}
	for i := range cancels {
		c := &cancels[i]
		l := links.at(c.Handle)
		fetchLevel(b.books[c.Book].peek(orders.at(c.Handle).index))
		fetchLink(links.at(l.next))
		fetchLink(links.at(l.prev))
	}
	for i := range places {
		p := &places[i]
		if l := b.books[p.Book].peek(p.Index); l != nil {
			fetchLink(links.at(l.tail))
		}
	}
}

// Resting counts the orders in all books.
func (b *Bare) Resting() (orders int) {
	for i := range b.books {
		orders += int(b.books[i].orders)
	}
	return orders
}
