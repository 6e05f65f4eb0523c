package workload

import "clobd/engine"

// model is what a venue would be without the engine: plain queues per price. It applies operations
// one after the other and knows what came of all. Nothing is refused for want of money in it.
type model struct {
	steps   int
	books   []rungs
	ops     []Op
	where   []restsAt    // by Op: where its order rests
	carried [Traders]int // by wallet: its resting orders
	exp     Expected
}

// rungs is one book: per index a queue of resting orders, oldest first.
type rungs struct {
	queues [2][][]uint32 // bids, asks by index 1..steps-1
	live   []uint32      // Ops with a live order, in no order; where[op].at is its position
}

// restsAt is where an order of the model rests.
type restsAt struct {
	left  engine.Size
	at    int // index in live, -1: gone
	ask   bool
	index int
}

func newModel(books, steps int) model {
	m := model{steps: steps, books: make([]rungs, books)}
	for i := range m.books {
		for side := range m.books[i].queues {
			m.books[i].queues[side] = make([][]uint32, steps)
		}
	}
	return m
}

// rests reports whether the order of an operation is in a book.
func (m *model) rests(id uint32) bool { return m.where[id].at >= 0 }

// best is the ladder index of the best ask or bid of a book, 0 if that side is empty.
func (m *model) best(b int, ask bool) int {
	l := &m.books[b]
	if ask {
		for i := 1; i < m.steps; i++ {
			if len(l.queues[1][i]) > 0 {
				return i
			}
		}
		return 0
	}
	for i := m.steps - 1; i > 0; i-- {
		if len(l.queues[0][i]) > 0 {
			return i
		}
	}
	return 0
}

// add appends an operation, applies it, and returns its index.
func (m *model) add(op Op) uint32 {
	id := uint32(len(m.ops))
	m.ops = append(m.ops, op)
	m.where = append(m.where, restsAt{at: -1})
	switch {
	case op.Read != 0:
	case op.Cancel && !m.rests(op.Target):
		m.exp.Missed++
	case op.Cancel:
		m.remove(op.Target)
	default:
		m.enter(id)
	}
	return id
}

// enter matches an arriving order and lets its rest join a queue. A FAK that meets nobody else is
// refused and changes nothing.
func (m *model) enter(id uint32) {
	op := &m.ops[id]
	ask, index := m.place(op)
	if op.FAK && !m.meets(id, ask, index) {
		m.exp.Missed++
		return
	}
	left := m.match(id, ask, index)
	switch {
	case left == 0:
	case op.FAK:
		m.exp.Killed++
	default:
		l, side := &m.books[op.Book], sideOf(ask)
		l.queues[side][index] = append(l.queues[side][index], id)
		m.where[id] = restsAt{left, len(l.live), ask, index}
		l.live = append(l.live, id)
		m.carried[op.Trader]++
	}
}

// place is where an order belongs on the ladder, whose prices are those of outcome 0.
func (m *model) place(op *Op) (ask bool, index int) {
	tick := int(engine.PriceOne) / m.steps
	ask, index = op.Side == engine.Sell, int(op.Price)/tick
	if op.Outcome == 1 {
		return !ask, m.steps - index
	}
	return ask, index
}

func sideOf(ask bool) int {
	if ask {
		return 1
	}
	return 0
}

// within reports whether a price of the opposite side lies within an order's limit.
func within(ask bool, index, best int) bool {
	return best > 0 && (ask && best >= index || !ask && best <= index)
}

// meets reports whether an order could trade with another wallet's.
func (m *model) meets(id uint32, ask bool, index int) bool {
	op := &m.ops[id]
	for i, queue := range m.books[op.Book].queues[sideOf(!ask)] {
		if !within(ask, index, i) {
			continue
		}
		for _, maker := range queue {
			if m.ops[maker].Trader != op.Trader {
				return true
			}
		}
	}
	return false
}

// match fills an arriving order and returns what is left of it. A resting order of the same trader
// is cancelled on the way, as the engine's self-trade rule does. A FAK that buys is bounded by what
// it may pay, and gets more for it at better prices.
func (m *model) match(id uint32, ask bool, index int) engine.Size {
	op := &m.ops[id]
	left, cash := op.Size, engine.Cost(op.Size, op.Price)
	budget := op.FAK && op.Side == engine.Buy
	for left > 0 || budget {
		best := m.best(int(op.Book), !ask)
		if !within(ask, index, best) {
			break
		}
		maker := m.books[op.Book].queues[sideOf(!ask)][best][0]
		resting := m.where[maker].left
		price := m.ops[maker].Price
		if m.ops[maker].Outcome != op.Outcome {
			price = engine.PriceOne - price
		}
		size := min(left, resting)
		if budget {
			size = min(resting, engine.Size(int64(cash)/int64(price))*engine.Lot)
		}
		if size == 0 {
			break
		}
		if m.ops[maker].Trader == op.Trader {
			m.exp.SelfTrades++
			m.remove(maker)
			continue
		}
		left, cash = max(left-size, 0), cash-engine.Cost(size, price)
		m.fill(op, maker, size)
		if resting > size {
			break // the order is complete, or cannot pay for more
		}
	}
	return left
}

// fill counts a fill and takes it from the resting order.
func (m *model) fill(op *Op, maker uint32, size engine.Size) {
	m.exp.Fills++
	m.exp.Volume += size
	if m.ops[maker].Outcome != op.Outcome {
		if op.Side == engine.Buy {
			m.exp.Mints++
		} else {
			m.exp.Merges++
		}
	}
	m.where[maker].left -= size
	if m.where[maker].left == 0 {
		m.remove(maker)
	}
}

// remove takes a resting order out of its book.
func (m *model) remove(id uint32) {
	l, p := &m.books[m.ops[id].Book], &m.where[id]
	side := sideOf(p.ask)
	queue := l.queues[side][p.index]
	for i, other := range queue {
		if other == id {
			l.queues[side][p.index] = append(queue[:i], queue[i+1:]...)
			break
		}
	}
	last := l.live[len(l.live)-1]
	l.live[p.at] = last
	m.where[last].at = p.at
	l.live = l.live[:len(l.live)-1]
	p.at, p.left = -1, 0
	m.carried[m.ops[id].Trader]--
}
