package matching

import (
	"fmt"
	"unsafe"

	"clobd/engine"
)

// bare is matching alone: the books of an Exchange without ids, ledger and Events. It runs the same
// levels and queues as the Exchange. Benchmarks compare it with other matchers; the difference to
// Apply is the cost of the rest of a Command.
type bare struct {
	books   []engine.Book
	queues  engine.Queues
	resting engine.Tray[bareOrder] // by handle
}

// bareOrder is a resting order of a bare.
type bareOrder struct {
	remaining engine.Size
	index     uint32
}

// arrival is an order on its way into a book.
type arrival struct {
	Index uint32      // limit in ticks, in [1, ticks-1]
	Side  engine.Side // in the ladder: Buy or Sell
	IOC   bool        // the order never rests
	Size  engine.Size // in any unit, at least 1
}

// bareFill is one fill of an arriving order, at the level of the resting one.
type bareFill struct {
	Handle    uint32
	Index     uint32
	Size      engine.Size
	Remaining engine.Size // of the resting order; 0 frees its handle
}

// newBare makes this many empty books with levels 1 to ticks-1; ticks is at most PriceOne.
func newBare(books, ticks int) *bare {
	if ticks < 2 || ticks > int(engine.PriceOne) {
		panic(fmt.Sprintf("BUG: a book of %d ticks", ticks))
	}
	b := &bare{books: make([]engine.Book, books)}
	for i := range b.books {
		b.books[i] = engine.NewBook(uint32(ticks), &b.queues)
	}
	return b
}

// Place matches an arriving order with a book, best price first and oldest first, and appends its
// fills to fills, which is not nil. The rest of the order rests unless it is IOC. The handle is 0
// if the order does not rest, and valid until a Cancel or a fill with nothing remaining.
func (b *bare) Place(book uint32, a arrival, fills *[]bareFill) (handle uint32) {
	k := &b.books[book]
	// The processor can predict neither IOC nor a match. IOC is known at once and correlates with a
	// match, so a wrong guess about IOC costs less.
	if a.IOC {
		b.match(k, a, fills)
		return 0
	}
	if engine.Within(a.Side, a.Index, k.Best[a.Side^1]) {
		if a.Size = b.match(k, a, fills); a.Size == 0 {
			return 0
		}
	}
	h := b.queues.Freed // the one that rest will hand out
	if h == 0 {
		return b.restFresh(k, a)
	}
	*b.resting.At(h) = bareOrder{a.Size, a.Index}
	return k.Rest(a.Index, a.Side, a.Size)
}

// restFresh rests an order when no number is free.
func (b *bare) restFresh(k *engine.Book, a arrival) (handle uint32) {
	*b.resting.At(b.resting.Next()) = bareOrder{a.Size, a.Index}
	return k.Rest(a.Index, a.Side, a.Size)
}

// match fills an arriving order and returns the rest.
func (b *bare) match(k *engine.Book, a arrival, fills *[]bareFill) (left engine.Size) {
	left = a.Size
	orders, met := b.resting.All, *fills
	for at := k.Best[a.Side^1]; engine.Within(a.Side, a.Index, at); at = k.Best[a.Side^1] {
		l, before := k.Level(at), left
		for h := l.Head; h != 0; {
			o := orders.At(h)
			if o.remaining > left {
				o.remaining -= left
				met = append(met, bareFill{h, at, left, o.remaining})
				left = 0
				break
			}
			left -= o.remaining
			met = append(met, bareFill{h, at, o.remaining, 0})
			h = k.Pop(at)
			if left == 0 {
				break
			}
		}
		l.Size -= before - left
		if left == 0 {
			break
		}
	}
	*fills = met
	return left
}

// Cancel removes a resting order from its book. The handle must be valid and of that book.
func (b *bare) Cancel(book, handle uint32) {
	o := b.resting.At(handle)
	b.books[book].Remove(handle, o.index, o.remaining)
}

// bareLevel is the book of a coming order and the level at its limit.
type bareLevel struct{ Book, Index uint32 }

// bareCancel is an order that will be cancelled. The handle must be valid and of that book.
type bareCancel struct{ Book, Handle uint32 }

// bareAhead is how many operations a caller of bare best looks ahead. With 16 the loops start too
// often, and 64 are no better.
const bareAhead = 32

// Fetch fetches the records of the orders of these ids, bareAhead at a time. An id is an index into
// handles; ids beyond it are skipped. A handle may be 0 or no longer valid. Fetch the handles
// earlier, with fetchHandles.
func (b *bare) Fetch(handles, ids []uint32) {
	links, orders := b.queues.Links.All, b.resting.All
	if links.Near != nil {
		fetchNear(handles, ids, unsafe.Pointer(links.Near), unsafe.Pointer(orders.Near))
		return
	}
	for _, id := range ids {
		if uint64(id) < uint64(len(handles)) && handles[id] != 0 {
			fetchLine(unsafe.Pointer(links.At(handles[id])))
			fetchLine(unsafe.Pointer(orders.At(handles[id])))
		}
	}
}

// IsNear reports whether so few orders ever rested at a time, in so few books, that Touch costs
// more than it gains. The bounds are those of an Exchange.
func (b *bare) IsNear() bool {
	return b.resting.Used <= engine.NearOrders && len(b.books) <= engine.NearMarkets
}

// Touch fetches the levels and links that operations will read and write. Call it after Fetch if
// IsNear is false. New orders and cancels are separate lists, because the processor cannot predict
// which kind comes next.
func (b *bare) Touch(places []bareLevel, cancels []bareCancel) {
	links, orders := b.queues.Links.All, b.resting.All
	for i := range places {
		p := &places[i]
		fetchLine(unsafe.Pointer(b.books[p.Book].Peek(p.Index)))
	}
	for i := range cancels {
		c := &cancels[i]
		l := links.At(c.Handle)
		fetchLine(unsafe.Pointer(b.books[c.Book].Peek(orders.At(c.Handle).index)))
		fetchLine(unsafe.Pointer(links.At(l.Next)))
		fetchLine(unsafe.Pointer(links.At(l.Prev)))
	}
	for i := range places {
		p := &places[i]
		if l := b.books[p.Book].Peek(p.Index); l != nil {
			fetchLine(unsafe.Pointer(links.At(l.Tail)))
		}
	}
}

// Resting counts the orders in all books.
func (b *bare) Resting() (orders int) {
	for i := range b.books {
		orders += int(b.books[i].Orders)
	}
	return orders
}
