package engine

import "fmt"

// Bare is matching alone: the books of an Exchange with what they need and nothing else, no ids, no
// ledger, no Events. It runs the same levels and queues as the Exchange, and exists to be measured
// beside other matchers: the difference to Apply is what the rest of a Command costs.
type Bare struct {
	books   []book
	queues  queues
	resting tray[bareOrder] // by handle
}

// bareOrder is what a book alone must remember of a resting order.
type bareOrder struct {
	remaining Size
	index     uint32
}

// Arrival is an order on its way into a book.
type Arrival struct {
	Index uint32 // limit in ticks, in [1, ticks-1]
	Side  Side   // in the ladder: Buy or Sell
	IOC   bool   // what does not fill at once is dropped
	Size  Size   // in any unit, at least 1
}

// BareFill is one resting order that an arriving one met, at its level.
type BareFill struct {
	Handle    uint32
	Index     uint32
	Size      Size
	Remaining Size // 0: the handle is free for another order
}

// NewBare makes that many empty books of levels 1 to ticks-1; ticks is at most PriceOne.
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

// Place matches an arriving order with a book, best price first and oldest first, appends what it
// met to fills, not nil, and rests what remains of it, unless it is IOC. The handle is 0 if
// it does not rest, and good until a fill with nothing remaining or a Cancel.
func (b *Bare) Place(book uint32, a Arrival, fills *[]BareFill) (handle uint32) {
	k := &b.books[book]
	// Neither can be foreseen, whether it may rest and whether it meets another one. But the first
	// says much about the second, and is known at once: a wrong guess costs less.
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

// restFresh rests an order where no number is free.
func (b *Bare) restFresh(k *book, a Arrival) (handle uint32) {
	b.queues.fresh()
	*b.resting.at(b.resting.next()) = bareOrder{a.Size, a.Index}
	return k.rest(a.Index, a.Side, a.Size)
}

// match fills an arriving order and returns what is left of it.
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

// Cancel takes a resting order out of its book. Its handle must be good, and of that book.
func (b *Bare) Cancel(book, handle uint32) {
	o := b.resting.at(handle)
	b.books[book].remove(handle, o.index, o.remaining)
}

// BareLevel is where an order will arrive: a book and the level at its limit.
type BareLevel struct{ Book, Index uint32 }

// BareCancel is an order that will be cancelled. Its handle must be good, and of that book.
type BareCancel struct{ Book, Handle uint32 }

// BareAhead is how many operations are best looked ahead for a Bare: with 16 the loops begin too
// often, and 64 are no better.
const BareAhead = 32

// Fetch fetches what is kept of the orders of these ids, BareAhead at a time. An id is an index of
// handles, and passed over if it is beyond them; its handle is 0 for none, and may be one that is
// not good any more. It changes nothing. Where the handles are kept is best fetched earlier, by
// FetchHandles.
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

// IsNear says whether so few orders ever rested at a time, in so few books, that Touch is not worth
// its while. The bounds are those of an Exchange.
func (b *Bare) IsNear() bool {
	return b.resting.used <= nearOrders && len(b.books) <= nearMarkets
}

// Touch fetches what else operations will read and write, where so much rests that it is far away.
// It comes after Fetch and changes nothing. New orders and cancels come apart, since which of them
// is next cannot be foreseen, and each step goes one step along the pointers of all.
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
