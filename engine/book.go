package engine

import "math/bits"

// book holds the resting orders of one condition, for both its tokens in prices of outcome 0. A
// level has index = price / tick, in [1, ticks-1]. Its page is made when an order first rests
// there, so an idle market costs no more than its row. A book never crosses.
//
//	index   0   1 … best[Buy]   …   best[Sell] … ticks-1   ticks
//	       none    bids, best last      asks, best first     none
type book struct {
	pages   []page // nil until something rests
	queues  *queues
	summary [summaryWords]uint64 // the set of pages with a non-empty level
	best    [2]uint32            // by ladder side; 0 and ticks mean that the side is empty
	ticks   uint32               // PriceOne / tick
	orders  uint32
	rank    uint64 // of the last order that came to rest; later orders have higher ranks
}

// newBook returns an empty book. All books of an Exchange share their queues.
func newBook(ticks uint32, q *queues) book {
	return book{queues: q, best: [2]uint32{0, ticks}, ticks: ticks}
}

// front returns the first order that an arriving one of this ladder side and limit meets, 0 if
// none.
func (b *book) front(side Side, limit uint32) uint32 {
	at := b.best[side^1]
	if !within(side, limit, at) {
		return 0
	}
	return b.level(at).head
}

// within reports whether a level lies within the limit of an arriving order of this ladder side.
// The index that best and behind return for an empty side never does. The distance is negated for a
// sell without a branch, because the processor cannot predict the side.
func within(side Side, limit, index uint32) bool {
	sell := -int32(side)
	return (int32(limit)-int32(index))^sell >= sell
}

// behind returns the level that an arriving order of this ladder side meets after index.
func (b *book) behind(side Side, index uint32) uint32 {
	if side == Buy {
		return b.above(index)
	}
	return b.below(index)
}

// each calls do with every order: the best bids first, then the best asks, at one price the oldest.
func (b *book) each(do func(h uint32)) {
	for i := b.best[Buy]; i != 0; i = b.below(i) {
		b.queue(i, do)
	}
	for i := b.best[Sell]; i != b.ticks; i = b.above(i) {
		b.queue(i, do)
	}
}

// queue calls do with the orders of one level, oldest first.
func (b *book) queue(index uint32, do func(h uint32)) {
	for h := b.level(index).head; h != 0; h = b.queues.behind(h) {
		do(h)
	}
}

// level returns the level of an index. Its page must exist.
func (b *book) level(index uint32) *level {
	return b.pages[index>>pageBits].level(index)
}

// rest puts an order at the end of a level's queue and returns its number. The rare work is a call
// at the very end, so that nothing is kept on the stack for it.
func (b *book) rest(index uint32, side Side, size Size) uint32 {
	n, q := uint(index>>pageBits), b.queues
	h := q.freed
	if h == 0 || n >= uint(len(b.pages)) {
		return b.restFirst(index, side, size)
	}
	levels := b.pages[n].levels
	if levels == nil {
		return b.restFirst(index, side, size)
	}
	l, links := &levels[index&(pageSize-1)], q.links.all
	last, k := l.tail, links.at(h)
	l.tail = h
	l.size += size
	q.freed = k.next
	k.next, k.prev = 0, last
	links.at(last).next = h
	b.orders++
	if last == 0 {
		l.head = h
		b.open(index, side)
	}
	return h
}

// restFirst is rest when the page or a free number is missing.
func (b *book) restFirst(index uint32, side Side, size Size) uint32 {
	b.page(index >> pageBits)
	if b.queues.freed == 0 {
		b.queues.fresh()
	}
	return b.rest(index, side, size)
}

// page returns page n and makes a missing one.
func (b *book) page(n uint32) *page {
	if b.pages == nil {
		b.pages = make([]page, b.ticks>>pageBits+1)
	}
	p := &b.pages[n]
	if p.levels == nil {
		p.levels = new([pageSize]level)
	}
	return p
}

// open marks a level that is no longer empty. Inlined, it would need more registers in rest than
// there are.
//
//go:noinline
func (b *book) open(index uint32, side Side) {
	n := index >> pageBits
	b.pages[n].set |= 1 << (index & (pageSize - 1))
	b.summary[n>>6] |= 1 << (n & 63)
	if side == Buy {
		b.best[Buy] = max(b.best[Buy], index)
	} else {
		b.best[Sell] = min(b.best[Sell], index)
	}
}

// reduce subtracts the size of a fill from its level.
func (b *book) reduce(index uint32, size Size) {
	b.level(index).size -= size
}

// remove removes order h, of which size remains, from its level's queue and frees its number. The
// processor cannot predict whether an order has neighbours, so nothing branches on it: the ends of
// a queue lead to number 0, which belongs to no order and may be written.
func (b *book) remove(h, index uint32, size Size) {
	q := b.queues
	links := q.links.all
	k := links.at(h)
	next, prev := k.next, k.prev
	k.next, q.freed = q.freed, h
	links.at(next).prev = prev
	links.at(prev).next = next
	l := b.level(index)
	head, tail := l.head, l.tail
	if prev == 0 {
		head = next
	}
	if next == 0 {
		tail = prev
	}
	l.head, l.tail = head, tail
	l.size -= size
	b.orders--
	if head == 0 {
		b.close(index)
	}
}

// pop is remove for the first order of a level when nothing remains of it. It returns the new first
// order, 0 if there is none.
func (b *book) pop(index uint32) uint32 {
	l, q := b.level(index), b.queues
	h, links := l.head, q.links.all
	k := links.at(h)
	next := k.next
	k.next, q.freed = q.freed, h
	links.at(next).prev = 0
	l.head = next
	b.orders--
	if next == 0 {
		l.tail = 0
		b.close(index)
	}
	return next
}

// close marks a level that became empty, and moves best if the level was the best of its side.
func (b *book) close(index uint32) {
	n := index >> pageBits
	p := &b.pages[n]
	p.set &^= 1 << (index & (pageSize - 1))
	if p.set == 0 {
		b.summary[n>>6] &^= 1 << (n & 63)
	}
	switch index {
	case b.best[Buy]:
		b.best[Buy] = b.below(index)
	case b.best[Sell]:
		b.best[Sell] = b.above(index)
	}
}

// below returns the highest non-empty index under this one, 0 if there is none.
func (b *book) below(index uint32) uint32 {
	n := index >> pageBits
	if w := b.pages[n].set & (1<<(index&(pageSize-1)) - 1); w != 0 {
		return n<<pageBits + uint32(bits.Len64(w)) - 1
	}
	word := int(n >> 6)
	w := b.summary[word] & (1<<(n&63) - 1)
	for w == 0 {
		if word--; word < 0 {
			return 0
		}
		w = b.summary[word]
	}
	n = uint32(word<<6 + bits.Len64(w) - 1)
	return n<<pageBits + uint32(bits.Len64(b.pages[n].set)) - 1
}

// above returns the lowest non-empty index over this one, ticks if there is none.
func (b *book) above(index uint32) uint32 {
	n := index >> pageBits
	if w := b.pages[n].set >> (index & (pageSize - 1)) >> 1; w != 0 {
		return index + 1 + uint32(bits.TrailingZeros64(w))
	}
	word := int(n >> 6)
	w := b.summary[word] >> (n & 63) >> 1 << (n & 63) << 1
	for w == 0 {
		if word++; word == summaryWords {
			return b.ticks
		}
		w = b.summary[word]
	}
	n = uint32(word<<6 + bits.TrailingZeros64(w))
	return n<<pageBits + uint32(bits.TrailingZeros64(b.pages[n].set))
}
