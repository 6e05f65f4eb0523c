package engine

// onGrid reports whether every level of a book of tick from lies on the grid of tick to.
func (b *Book) onGrid(from, to uint32) bool {
	for i := range b.levels {
		if i*from%to != 0 {
			return false
		}
	}
	return true
}

// regrid returns the same book on the grid of tick to. Queues move as they are, to a new index.
func (b *Book) regrid(orders *slab[order], from, to uint32) Book {
	n := NewBook(uint32(PriceOne)/to, b.queues)
	n.Orders, n.rank = b.Orders, b.rank
	for i, side := range b.levels {
		n.adopt(orders, b.Level(i), i*from/to, side)
	}
	return n
}

func (b *Book) adopt(orders *slab[order], l *level, index uint32, side Side) {
	p := b.page(index >> pageBits)
	p.levels[index&(pageSize-1)] = *l
	b.open(index, side)
	for h := l.Head; h != 0; {
		orders.at(h).index = uint16(index)
		h = b.queues.behind(h)
	}
}
