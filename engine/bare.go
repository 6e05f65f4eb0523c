package engine

import (
	"fmt"
	"math/bits"
)

// Bare is matching alone: books with what they need and nothing else, no ids, no ledger, no Events.
// It exists to be measured beside other matchers. Its books are those of an Exchange by design: a
// level found by its index, the next best one by sets of levels, queues linked by number, numbers
// used again last in, first out. They are laid out for nothing else, so that the orders of a book
// stay in the cache: levels and orders are nodes of 16 bytes in one slice, and each level is the
// beginning and the end of a ring of its orders.
type Bare struct {
	books  []bareBook
	sets   []uint64 // of all books: the levels that are not empty
	nodes  []node   // the levels of all books, then the orders, by handle
	fills  []BareFill
	stride uint32 // levels of a book, in nodes
	words  uint32 // of a book, in sets
	freed  uint32 // first of the handles to be used again, linked by next
}

// bareBook is one book; best and summary are those of book.
type bareBook struct {
	best    [2]uint32
	orders  uint32
	summary [summaryWords]uint64
}

// node is a resting order or a level in their ring. An order that leaves it writes to its
// neighbours whoever they are; a level's links mean nothing while it has no orders.
type node struct {
	next, prev uint32
	word       uint64 // of an order: size << indexBits | index; of a level: the size of all orders
}

// indexBits hold the index of a level; what is above them of a word holds MaxOrder.
const indexBits = 16

// Arrival is an order on its way into a book.
type Arrival struct {
	Book  uint32 // from 0
	Index uint32 // limit in ticks, in [1, ticks-1]
	Side  Side   // in the ladder: Buy or Sell
	IOC   bool   // what does not fill at once is dropped
	Size  Size   // in any unit, in [1, MaxOrder]
}

// BareFill is one resting order that an arriving one met, at its level.
type BareFill struct {
	Handle    uint32
	Index     uint32
	Size      Size
	Remaining Size // 0: the handle is free for another order
}

// bareRoom is for how many orders there is room from the start: memory that nobody touches before
// they come. Beyond it the nodes are moved now and then.
const bareRoom = 1 << 18

// NewBare makes that many empty books of levels 1 to ticks-1, of 16 bytes each; ticks is at most
// PriceOne.
func NewBare(books, ticks int) *Bare {
	if ticks < 2 || ticks > int(PriceOne) {
		panic(fmt.Sprintf("BUG: a book of %d ticks", ticks))
	}
	b := &Bare{books: make([]bareBook, books), stride: uint32(ticks)}
	b.words = b.stride>>pageBits + 1
	b.sets = make([]uint64, books*int(b.words))
	levels := max(books*ticks, 1) // so that no order has number 0
	b.nodes = make([]node, levels, levels+bareRoom)
	for i := range b.books {
		b.books[i].best = [2]uint32{0, uint32(ticks)}
	}
	return b
}

// Place matches an arriving order, best price first and oldest first, and rests what remains of it,
// unless it is IOC. The handle is 0 if it does not rest, and good until a fill with nothing
// remaining or a Cancel. The fills are what it met, until the next Place.
func (b *Bare) Place(a *Arrival) (handle uint32, fills []BareFill) {
	k := &b.books[a.Book]
	left := a.Size
	if within(a.Side, a.Index, k.best[a.Side&1^1]) {
		left = b.take(k, a)
		if fills = b.fills; left == 0 {
			return 0, fills
		}
	}
	if a.IOC {
		return 0, fills
	}
	h := b.freed
	if h == 0 {
		h = uint32(len(b.nodes))
		b.nodes = append(b.nodes, node{})
	} else {
		b.freed = b.nodes[h].next
	}
	s := a.Book*b.stride + a.Index
	l := &b.nodes[s]
	if l.word == 0 {
		b.open(k, a, s)
	}
	last := l.prev
	l.prev = h
	l.word += uint64(left)
	b.nodes[last].next = h
	b.nodes[h] = node{s, last, uint64(left)<<indexBits | uint64(a.Index)}
	k.orders++
	return h, fills
}

// take fills an arriving order from the levels within its limit, and is what is left of it.
func (b *Bare) take(k *bareBook, a *Arrival) (left Size) {
	left = a.Size
	fills := b.fills[:0]
	for left > 0 {
		at := k.best[a.Side&1^1]
		if !within(a.Side, a.Index, at) {
			break
		}
		s := a.Book*b.stride + at
		l := &b.nodes[s]
		for h := l.next; ; {
			n := &b.nodes[h]
			have := Size(n.word >> indexBits)
			size := min(have, left)
			left -= size
			l.word -= uint64(size)
			fills = append(fills, BareFill{h, at, size, have - size})
			if have > size {
				n.word -= uint64(size) << indexBits
				l.next, n.prev = h, s
				break
			}
			next := n.next // the order leaves; its level learns at the end who is first
			n.next, b.freed = b.freed, h
			k.orders--
			if h = next; h == s {
				b.close(k, a.Book, at)
				break
			}
			if left == 0 {
				l.next, b.nodes[h].prev = h, s
				break
			}
		}
	}
	b.fills = fills
	return left
}

// Cancel takes a resting order out of its book. Its handle must be good, and of that book.
func (b *Bare) Cancel(book, handle uint32) {
	nodes := b.nodes
	n := &nodes[handle]
	next, prev, word := n.next, n.prev, n.word
	n.next, b.freed = b.freed, handle
	nodes[next].prev = prev
	nodes[prev].next = next
	index := uint32(word & (1<<indexBits - 1))
	l := &nodes[book*b.stride+index]
	l.word -= word >> indexBits
	k := &b.books[book]
	k.orders--
	if l.word == 0 {
		b.close(k, book, index)
	}
}

// open marks a level that is no longer empty: s among the nodes, a ring of itself.
func (b *Bare) open(k *bareBook, a *Arrival, s uint32) {
	b.nodes[s] = node{next: s, prev: s}
	n := a.Index >> pageBits
	b.sets[a.Book*b.words+n] |= 1 << (a.Index & (pageSize - 1))
	k.summary[n>>6] |= 1 << (n & 63)
	if a.Side == Buy {
		k.best[Buy] = max(k.best[Buy], a.Index)
	} else {
		k.best[Sell] = min(k.best[Sell], a.Index)
	}
}

// close marks a level that became empty; if it was the best of its side, the next one is.
func (b *Bare) close(k *bareBook, book, index uint32) {
	n := index >> pageBits
	w := &b.sets[book*b.words+n]
	*w &^= 1 << (index & (pageSize - 1))
	if *w == 0 {
		k.summary[n>>6] &^= 1 << (n & 63)
	}
	switch index {
	case k.best[Buy]:
		k.best[Buy] = b.below(k, book, index)
	case k.best[Sell]:
		k.best[Sell] = b.above(k, book, index)
	}
}

// below is the highest index under this one that is not empty, 0 if none.
func (b *Bare) below(k *bareBook, book, index uint32) uint32 {
	sets := b.sets[book*b.words:]
	n := index >> pageBits
	if w := sets[n] & (1<<(index&(pageSize-1)) - 1); w != 0 {
		return n<<pageBits + uint32(bits.Len64(w)) - 1
	}
	word := int(n >> 6)
	w := k.summary[word] & (1<<(n&63) - 1)
	for w == 0 {
		if word--; word < 0 {
			return 0
		}
		w = k.summary[word]
	}
	n = uint32(word<<6 + bits.Len64(w) - 1)
	return n<<pageBits + uint32(bits.Len64(sets[n])) - 1
}

// above is the lowest index over this one that is not empty, ticks if none.
func (b *Bare) above(k *bareBook, book, index uint32) uint32 {
	sets := b.sets[book*b.words:]
	n := index >> pageBits
	if w := sets[n] >> (index & (pageSize - 1)) >> 1; w != 0 {
		return index + 1 + uint32(bits.TrailingZeros64(w))
	}
	word := int(n >> 6)
	w := k.summary[word] >> (n & 63) >> 1 << (n & 63) << 1
	for w == 0 {
		if word++; word == summaryWords {
			return b.stride
		}
		w = k.summary[word]
	}
	n = uint32(word<<6 + bits.TrailingZeros64(w))
	return n<<pageBits + uint32(bits.TrailingZeros64(sets[n]))
}

// Resting counts the orders in all books.
func (b *Bare) Resting() (orders int) {
	for i := range b.books {
		orders += int(b.books[i].orders)
	}
	return orders
}
