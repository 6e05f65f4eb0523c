package engine

import "math/bits"

// book is the ladder of one condition, in prices of outcome 0, for both its tokens. A level is
// found by index = price / tick, in [1, ticks-1]; its page is made when something first rests
// there, so an idle market costs no more than its row. A book never crosses.
//
//	index   0   1 … best[Buy]   …   best[Sell] … ticks-1   ticks
//	       none    bids, best last      asks, best first     none
type book struct {
	pages   []*page              // nil until something rests
	summary [summaryWords]uint64 // the pages that hold a level that is not empty
	best    [2]uint32            // by ladder side; 0 and ticks say that a side is empty
	ticks   uint32               // PriceOne / tick
	orders  uint32
	rank    uint64 // of the last order that came to rest
}

func newBook(ticks uint32) book {
	return book{best: [2]uint32{0, ticks}, ticks: ticks}
}

// front is the first order that an arriving one of this ladder side and limit meets, 0 if none.
func (b *book) front(side Side, limit uint32) uint32 {
	at := b.best[side^1]
	if side == Buy {
		if limit < at {
			return 0
		}
	} else if limit > at {
		return 0
	}
	return b.level(at).head
}

// level is the level of an index whose page was made.
func (b *book) level(index uint32) *level {
	return &b.pages[index>>pageBits].levels[index&(pageSize-1)]
}

// rest puts order h at the end of its level's queue and ranks it behind all before it.
func (b *book) rest(orders *slab[order], h uint32, o *order) {
	index := uint32(o.index)
	p := b.page(index >> pageBits)
	l := &p.levels[index&(pageSize-1)]
	o.next, o.prev = 0, l.tail
	if l.tail != 0 {
		orders.at(l.tail).next = h
	} else {
		l.head = h
		b.open(p, index, ladderSide(o.side, o.outcome))
	}
	l.tail = h
	l.count++
	l.size += o.remaining
	b.orders++
}

// nextRank is the rank of the order that comes to rest next.
func (b *book) nextRank() uint64 {
	b.rank++
	return b.rank
}

// page is the page of that number, made if it is missing.
func (b *book) page(n uint32) *page {
	if b.pages == nil {
		b.pages = make([]*page, b.ticks>>pageBits+1)
	}
	p := b.pages[n]
	if p == nil {
		p = new(page)
		b.pages[n] = p
	}
	return p
}

// open marks a level that is no longer empty.
func (b *book) open(p *page, index uint32, side Side) {
	n := index >> pageBits
	p.set |= 1 << (index & (pageSize - 1))
	b.summary[n>>6] |= 1 << (n & 63)
	if side == Buy {
		b.best[Buy] = max(b.best[Buy], index)
	} else {
		b.best[Sell] = min(b.best[Sell], index)
	}
}

// reduce takes size out of the level of an order that was filled in part or whole.
func (b *book) reduce(o *order, size Size) {
	b.level(uint32(o.index)).size -= size
}

// unlink takes an order out of its level's queue, with what remains of it.
func (b *book) unlink(orders *slab[order], o *order) {
	index := uint32(o.index)
	p := b.pages[index>>pageBits]
	l := &p.levels[index&(pageSize-1)]
	if o.next != 0 {
		orders.at(o.next).prev = o.prev
	} else {
		l.tail = o.prev
	}
	if o.prev != 0 {
		orders.at(o.prev).next = o.next
	} else {
		l.head = o.next
	}
	l.count--
	l.size -= o.remaining
	b.orders--
	if l.head == 0 {
		b.close(p, index)
	}
}

// close marks a level that became empty; if it was the best of its side, the next one is.
func (b *book) close(p *page, index uint32) {
	n := index >> pageBits
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

// below is the highest index under this one that is not empty, 0 if none.
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

// above is the lowest index over this one that is not empty, ticks if none.
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
