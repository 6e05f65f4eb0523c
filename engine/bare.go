package engine

import "fmt"

// Bare is matching alone: the books of an Exchange with what they need and nothing else, no ids, no
// ledger, no Events. It runs the same levels and queues as the Exchange, and exists to be measured
// beside other matchers: the difference to Apply is what the rest of a Command costs.
type Bare struct {
	books   []book
	queues  queues
	resting slab[bareOrder] // by handle
}

// bareOrder is what a book alone must remember of a resting order.
type bareOrder struct {
	remaining Size
	index     uint32
}

// Arrival is an order on its way into a book.
type Arrival struct {
	Book  uint32 // from 0
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

// Place matches an arriving order, best price first and oldest first, appends what it met to fills
// and rests what remains of it, unless it is IOC. The handle is 0 if it does not rest, and good
// until a fill with nothing remaining or a Cancel.
func (b *Bare) Place(a Arrival, fills []BareFill) (handle uint32, all []BareFill) {
	k, left := &b.books[a.Book], a.Size
	for left > 0 {
		at := k.best[a.Side^1]
		if !within(a.Side, a.Index, at) {
			break
		}
		l := k.level(at)
		for h := l.head; h != 0 && left > 0; h = l.head {
			o := b.resting.at(h)
			size := min(o.remaining, left)
			left -= size
			o.remaining -= size
			l.size -= size
			fills = append(fills, BareFill{h, at, size, o.remaining})
			if o.remaining == 0 {
				k.unlink(h, at, 0)
				b.queues.give(h)
			}
		}
	}
	if left == 0 || a.IOC {
		return 0, fills
	}
	h := b.queues.take()
	if h > b.resting.used {
		b.resting.next()
	}
	*b.resting.at(h) = bareOrder{left, a.Index}
	k.rest(h, a.Index, a.Side, left)
	return h, fills
}

// Cancel takes a resting order out of its book. Its handle must be good, and of that book.
func (b *Bare) Cancel(book, handle uint32) {
	o := b.resting.at(handle)
	b.books[book].unlink(handle, o.index, o.remaining)
	b.queues.give(handle)
}

// Resting counts the orders in all books.
func (b *Bare) Resting() (orders int) {
	for i := range b.books {
		orders += int(b.books[i].orders)
	}
	return orders
}
