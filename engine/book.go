package engine

import "math/bits"

// Book holds the resting orders of one condition, for both its tokens in prices of outcome 0. A
// level has index = price / tick, in [1, ticks-1]. Its page is made when an order first rests
// there, so an idle market costs no more than its row. A Book never crosses. It is exported for
// package bench/matching, which measures it alone.
//
//	index   0   1 … Best[Buy]   …   Best[Sell] … ticks-1   ticks
//	       none    bids, best last      asks, best first     none
type Book struct {
	pages   []page // nil until something rests
	queues  *Queues
	summary [summaryWords]uint64 // the set of pages with a non-empty level
	Best    [2]uint32            // by ladder side; 0 and ticks mean that the side is empty
	ticks   uint32               // PriceOne / tick
	Orders  uint32
	rank    uint64 // of the last order that came to rest; later orders have higher ranks
}

// NewBook returns an empty Book with levels 1 to ticks-1. All Books of an Exchange share q.
func NewBook(ticks uint32, q *Queues) Book {
	return Book{queues: q, Best: [2]uint32{0, ticks}, ticks: ticks}
}

// front returns the first order that an arriving order of this ladder side meets, 0 if none.
func (b *Book) front(side Side, limit uint32) uint32 {
	at := b.Best[side^1]
	if !Within(side, limit, at) {
		return 0
	}
	return b.Level(at).Head
}

// Within reports whether a level lies within the limit of an arriving order of this ladder side. An
// empty side's index never does. No branch depends on the side, which is not predictable.
func Within(side Side, limit, index uint32) bool {
	sell := -int32(side)
	return (int32(limit)-int32(index))^sell >= sell
}

// behind returns the level that an arriving order of this ladder side meets after index.
func (b *Book) behind(side Side, index uint32) uint32 {
	if side == Buy {
		return b.above(index)
	}
	return b.below(index)
}

// levels ranges over the non-empty levels of an unchanging book: best bids first, then best asks.
func (b *Book) levels(yield func(index uint32, side Side) bool) {
	for i := b.Best[Buy]; i != 0; i = b.below(i) {
		if !yield(i, Buy) {
			return
		}
	}
	for i := b.Best[Sell]; i != b.ticks; i = b.above(i) {
		if !yield(i, Sell) {
			return
		}
	}
}

// each calls do with every order, level by level, at one price the oldest first.
func (b *Book) each(do func(h uint32)) {
	for i := range b.levels {
		for h := b.Level(i).Head; h != 0; h = b.queues.behind(h) {
			do(h)
		}
	}
}

// Level returns the level of an index. Its page must exist.
func (b *Book) Level(index uint32) *level {
	return b.pages[index>>pageBits].level(index)
}

// Rest puts an order at the end of a level's queue and returns its number. The rare work is a call
// at the very end, so that nothing is kept on the stack for it.
func (b *Book) Rest(index uint32, side Side, size Size) uint32 {
	n, q := uint(index>>pageBits), b.queues
	h := q.Freed
	if h == 0 || n >= uint(len(b.pages)) {
		return b.restFirst(index, side, size)
	}
	levels := b.pages[n].levels
	if levels == nil {
		return b.restFirst(index, side, size)
	}
	l, links := &levels[index&(pageSize-1)], q.Links.All
	last, k := l.Tail, links.At(h)
	l.Tail = h
	l.Size += size
	q.Freed = k.Next
	k.Next, k.Prev = 0, last
	links.At(last).Next = h
	b.Orders++
	if last == 0 {
		l.Head = h
		b.open(index, side)
	}
	return h
}

// restFirst is Rest when the page or a free number is missing.
func (b *Book) restFirst(index uint32, side Side, size Size) uint32 {
	b.page(index >> pageBits)
	if b.queues.Freed == 0 {
		b.queues.Freed = b.queues.Links.Next()
	}
	return b.Rest(index, side, size)
}

func (b *Book) page(n uint32) *page {
	if b.pages == nil {
		b.pages = make([]page, b.ticks>>pageBits+1)
	}
	p := &b.pages[n]
	if p.levels == nil {
		p.levels = new([pageSize]level)
	}
	return p
}

// open marks a level that is no longer empty. Rest has no registers left to inline it.
//
//go:noinline
func (b *Book) open(index uint32, side Side) {
	n := index >> pageBits
	b.pages[n].set |= 1 << (index & (pageSize - 1))
	b.summary[n>>6] |= 1 << (n & 63)
	if side == Buy {
		b.Best[Buy] = max(b.Best[Buy], index)
	} else {
		b.Best[Sell] = min(b.Best[Sell], index)
	}
}

// Remove removes order h, of size, from its level's queue, without a branch: ends lead to number 0.
func (b *Book) Remove(h, index uint32, size Size) {
	q := b.queues
	links := q.Links.All
	k := links.At(h)
	next, prev := k.Next, k.Prev
	k.Next, q.Freed = q.Freed, h
	links.At(next).Prev = prev
	links.At(prev).Next = next
	l := b.Level(index)
	head, tail := l.Head, l.Tail
	if prev == 0 {
		head = next
	}
	if next == 0 {
		tail = prev
	}
	l.Head, l.Tail = head, tail
	l.Size -= size
	b.Orders--
	if head == 0 {
		b.close(index)
	}
}

// putBack undoes the Remove of order h, whose link was k. No book may have changed in between.
func (b *Book) putBack(h uint32, o *order, k link) {
	l, q := b.Level(uint32(o.index)), b.queues
	links := q.Links.All
	q.Freed = links.At(h).Next
	*links.At(h) = k
	links.At(k.Next).Prev = h
	links.At(k.Prev).Next = h
	if k.Prev == 0 {
		l.Head = h
		b.open(uint32(o.index), ladderSide(o.side, o.outcome))
	}
	if k.Next == 0 {
		l.Tail = h
	}
	l.Size += o.remaining
	b.Orders++
}

// Pop is Remove for the first order of a level, fully filled. It returns the new first one, or 0.
func (b *Book) Pop(index uint32) uint32 {
	l, q := b.Level(index), b.queues
	h, links := l.Head, q.Links.All
	k := links.At(h)
	next := k.Next
	k.Next, q.Freed = q.Freed, h
	links.At(next).Prev = 0
	l.Head = next
	b.Orders--
	if next == 0 {
		l.Tail = 0
		b.close(index)
	}
	return next
}

// close marks a level that became empty, and moves Best if the level was the best of its side.
func (b *Book) close(index uint32) {
	n := index >> pageBits
	p := &b.pages[n]
	p.set &^= 1 << (index & (pageSize - 1))
	if p.set == 0 {
		b.summary[n>>6] &^= 1 << (n & 63)
	}
	switch index {
	case b.Best[Buy]:
		b.Best[Buy] = b.below(index)
	case b.Best[Sell]:
		b.Best[Sell] = b.above(index)
	}
}

// below returns the highest non-empty index under this one, 0 if there is none.
func (b *Book) below(index uint32) uint32 {
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
func (b *Book) above(index uint32) uint32 {
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
