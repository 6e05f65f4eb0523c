package workload

import (
	"context"
	"math"

	"clobd/engine"
)

// generator draws operations against a model of its own, so that cancels aim at live orders and the
// end state is known without the engine.
type generator struct {
	model
	w     Workload
	dice  drawer
	ranks *ranks
	limit int // so many operations are drawn
	list  uint32
	spots []spot
}

// spot is what the generator remembers of a book beside its orders.
type spot struct {
	middle float64 // as an index of the ladder
	latest [64]uint32
	placed int
	quotes map[int][]uint32 // by maker: its last quote, oldest first
}

// MostOps is how many operations are drawn or read at most for one Exchange. It and the model
// remember every order.
const MostOps = 4_000_000

// Draw draws n operations after prefill new orders, from seed alone: the same arguments give the
// same operations everywhere. Expected is what a run that keeps their order ends with. Millions of
// operations take seconds, so it ends early with ctx.
func (w *Workload) Draw(ctx context.Context, seed uint64, prefill, n int) ([]Op, Expected, error) {
	g := &generator{w: *w, dice: newDice(seed, 0x636c6f62), spots: make([]spot, w.Books),
		model: newModel(w.Books, int(engine.PriceOne/w.Tick)), limit: prefill}
	if w.Books > 1 {
		g.ranks = newRanks(w.Books, w.Zipf)
	}
	for i := range g.spots {
		g.spots[i].middle = float64(g.steps) / 2
	}
	if w.Quote > 0 {
		g.limit += n
		g.open()
	}
	for !g.full() {
		g.rest(g.book())
	}
	g.limit = prefill + n
	for i := 0; !g.full(); i++ {
		if i%65536 == 0 && ctx.Err() != nil {
			return nil, Expected{}, ctx.Err()
		}
		g.step()
	}
	for i := range g.books {
		g.exp.Live += int64(len(g.books[i].live))
	}
	return g.ops, g.exp, nil
}

// DrawApart draws n operations or a few less, those of a book of its own in each of so many books,
// and deals them in turn. None is in place before them.
func (w *Workload) DrawApart(ctx context.Context, seed uint64, books, n int) ([]Op, error) {
	all := make([]Op, n/books*books)
	for b := range books {
		ops, _, err := w.Draw(ctx, seed+uint64(b), 0, n/books)
		if err != nil {
			return nil, err
		}
		for i, op := range ops {
			op.Book, op.Target = uint16(b), op.Target*uint32(books)+uint32(b)
			all[i*books+b] = op
		}
	}
	return all, nil
}

// full reports whether all operations are drawn. The rest of a list that ends later is dropped.
func (g *generator) full() bool { return len(g.ops) >= g.limit }

// open lets every maker quote in each of its books; there are no other orders to begin with.
func (g *generator) open() {
	for b := range g.spots {
		g.spots[b].quotes = map[int][]uint32{}
		for k := range g.w.makersOf() {
			g.quote(b, g.w.maker(b, k))
		}
	}
	g.limit = len(g.ops)
}

// book draws a book.
func (g *generator) book() int {
	if g.ranks == nil {
		return 0
	}
	return g.ranks.draw(g.dice)
}

// step draws one operation from the mix, or the lists of a quote.
func (g *generator) step() {
	b := g.book()
	if g.w.Read > 0 && g.dice.IntN(100) < g.w.Read {
		g.read(b)
		return
	}
	s, resting := &g.spots[b], len(g.books[b].live)
	s.middle += float64(float64(g.dice.bellCurve()*float64(g.steps)) / float64(g.w.Drift))
	s.middle = min(max(s.middle, float64(g.steps)/5), float64(g.steps)*4/5)
	switch p := g.dice.IntN(100); {
	case p < g.w.New:
		if resting >= g.w.Orders[1] && g.w.Cancel > 0 {
			g.cancel(b)
			return
		}
		g.rest(b)
	case p < g.w.New+g.w.Cancel && resting > 0:
		if resting <= g.w.Orders[0] {
			g.rest(b)
			return
		}
		g.cancel(b)
	case p < g.w.New+g.w.Cancel+g.w.Cross:
		g.cross(b)
	default:
		g.quote(b, g.w.maker(b, g.dice.IntN(g.w.makersOf())))
	}
}

// read draws a read: half of them of a whole book.
func (g *generator) read(b int) {
	op := Op{Read: ReadOrders, Book: uint16(b), Outcome: engine.Outcome(g.dice.IntN(2)),
		Trader: uint16(g.w.taker(b, g.dice.IntN(g.w.takersOf())))}
	switch p := g.dice.IntN(100); {
	case p < 50:
		op.Read = ReadBook
	case p < 70:
		op.Read = ReadPrice
	case p < 85:
		op.Read = ReadMidpoint
	}
	g.add(op)
}

// rest draws an order that does not cross: its distance from the middle is exponential.
func (g *generator) rest(b int) {
	ask := g.dice.IntN(2) == 1
	distance := 1 + int(float64(g.dice.decay()*float64(g.steps))/float64(g.w.Depth))
	index := g.behind(b, ask, distance)
	g.place(b, ask, index, Op{Size: g.shares(g.w.Size)})
}

// behind is the index so far behind the middle on one side of a book, or farther if that would
// cross.
func (g *generator) behind(b int, ask bool, distance int) int {
	middle := int(math.Round(g.spots[b].middle))
	best := g.best(b, !ask)
	if ask {
		if best > 0 {
			return max(middle+distance, best+1)
		}
		return middle + distance
	}
	if best > 0 {
		return min(middle-distance, best-1)
	}
	return middle - distance
}

// shares draws a size between two bounds, both of which it may have.
func (g *generator) shares(between [2]int) engine.Size {
	return engine.Size(between[0]+g.dice.IntN(between[1]-between[0]+1)) * engine.Unit
}

// cross draws an order whose limit is at or beyond the best opposite price. On an empty side it
// meets nobody, and rests.
func (g *generator) cross(b int) {
	ask := g.dice.IntN(2) == 1
	best := g.best(b, !ask)
	switch {
	case best == 0 && g.w.Quote > 0:
		g.quote(b, g.w.maker(b, g.dice.IntN(g.w.makersOf())))
		return
	case best == 0:
		g.rest(b)
		return
	}
	slip := g.w.Slip[0] + g.dice.IntN(g.w.Slip[1]-g.w.Slip[0]+1)
	if ask {
		slip = -slip
	}
	size := g.shares(g.w.Taken)
	fak := g.w.FAK > 0 && g.dice.IntN(100) < g.w.FAK
	g.place(b, ask, best+slip, Op{Size: size, FAK: fak})
}

// place makes an order of a taker's. A bid is drawn as a BUY of outcome 0 or a SELL of outcome 1,
// so that transfers, mints and merges all occur.
func (g *generator) place(b int, ask bool, index int, op Op) {
	trader := g.dice.IntN(g.w.takersOf())
	for range g.w.takersOf() { // a wallet that has all orders it may have leaves the order to the next
		if op.Trader = uint16(g.w.taker(b, trader)); g.carried[op.Trader] < engine.MaxWalletOrders {
			break
		}
		trader = (trader + 1) % g.w.takersOf()
	}
	id := g.send(b, ask, index, op)
	if id < 0 || !g.rests(uint32(id)) {
		return
	}
	s := &g.spots[b]
	s.latest[s.placed%len(s.latest)] = uint32(id)
	s.placed++
}

// send appends an order and applies it to the model, and returns its index, -1 if all are drawn.
func (g *generator) send(b int, ask bool, index int, op Op) int {
	index = min(max(index, 1), g.steps-1)
	other := g.dice.IntN(2) == 1
	if g.w.Alike { // the side that trades with its like in the other token
		other = ask != (b%2 == 1)
	}
	price := engine.Price(index) * g.w.Tick
	op.Book, op.Side, op.Outcome, op.Price = uint16(b), engine.Buy, 0, price
	if ask {
		op.Side = engine.Sell
	}
	if other {
		op.Side, op.Outcome, op.Price = op.Side.Other(), 1, engine.PriceOne-price
	}
	if g.full() {
		return -1
	}
	return int(g.add(op))
}

// quote lets a maker cancel what is left of its quote in a book, in one list, and post another one
// around the middle, in a second list.
func (g *generator) quote(b, maker int) {
	s := &g.spots[b]
	g.list++
	for _, id := range s.quotes[maker] {
		if g.rests(id) && !g.full() {
			g.add(Op{Cancel: true, Book: uint16(b), Target: id, Trader: uint16(maker), List: g.list})
		}
	}
	g.list++
	quotes := s.quotes[maker][:0]
	away := 1 + g.dice.IntN(3)
	for rung := range g.w.Rungs {
		for _, ask := range [2]bool{false, true} {
			index := g.behind(b, ask, away+rung)
			id := g.send(b, ask, index, Op{Size: g.shares(g.w.Size), Trader: uint16(maker), List: g.list})
			if id >= 0 {
				quotes = append(quotes, uint32(id))
			}
		}
	}
	s.quotes[maker] = quotes
}

// cancel draws a cancel: some of them among the latest orders, which may be gone already.
func (g *generator) cancel(b int) {
	m, s := &g.books[b], &g.spots[b]
	target := m.live[g.dice.IntN(len(m.live))]
	if g.w.Far {
		for range 3 {
			if other := m.live[g.dice.IntN(len(m.live))]; g.away(b, other) > g.away(b, target) {
				target = other
			}
		}
	}
	if g.w.Latest > 0 && g.dice.IntN(g.w.Latest) == g.w.Latest-1 && s.placed >= len(s.latest) {
		target = s.latest[g.dice.IntN(len(s.latest))]
	}
	g.add(Op{Cancel: true, Book: uint16(b), Target: target, Trader: g.ops[target].Trader})
}

// away is how far a resting order is from the middle of its book.
func (g *generator) away(b int, id uint32) int {
	d := g.where[id].index - int(math.Round(g.spots[b].middle))
	return max(d, -d)
}
