package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"clobd/engine"
)

// Workload is a named mix of operations. The shares are percentages and add up to 100.
type Workload struct {
	Name   string
	New    int // new orders that rest
	Cancel int // cancels: half among the 64 latest, half of any live order
	Cross  int // orders whose limit lies up to two ticks beyond the best opposite price
	Books  int
	Tick   engine.Price
}

// Workloads are the mixes that a run can ask for by name.
func Workloads() []Workload {
	return []Workload{
		{"canonical", 50, 40, 10, 1, 100},
		{"canonical-fine", 50, 40, 10, 1, 10},
		{"place", 30, 0, 70, 1, 100},
		{"cancel-heavy", 48, 48, 4, 1, 100},
		{"hot-market", 50, 40, 10, 1000, 100},
	}
}

// WorkloadNamed finds a mix by name.
func WorkloadNamed(name string) (Workload, error) {
	names := ""
	for _, w := range Workloads() {
		if w.Name == name {
			return w, nil
		}
		names += " " + w.Name
	}
	return Workload{}, fmt.Errorf("no workload is called %q: choose one of%s", name, names)
}

// Traders is the number of wallets that a workload trades with.
const Traders = 64

// Op is one operation of a workload. Price is in the order's own token.
type Op struct {
	Cancel  bool
	FAK     bool   // the order never rests: what is not filled at once is killed
	Read    Read   // no order: one GET, on level L3 only
	List    uint32 // operations beside each other with this number travel in one request; 0: alone
	Side    engine.Side
	Outcome engine.Outcome
	Price   engine.Price
	Trader  uint16
	Book    uint16
	Target  uint32 // of a cancel: the index of the Op that placed the order
	Size    engine.Size
}

// Read is what an operation reads of its book, 0 nothing.
type Read uint8

// The reads of a workload: GET /book, /price and /midpoint of the operation's token, and GET
// /data/orders of its trader.
const (
	ReadBook Read = iota + 1
	ReadPrice
	ReadMidpoint
	ReadOrders
)

// Expected is the end state of a run that keeps the operations' order.
type Expected struct {
	Fills  int64
	Volume engine.Size // sum of the sizes of all fills
	Live   int64       // orders resting at the end
	Missed int64       // cancels of orders that were already gone
}

// generator draws operations against a model of its own: plain queues per price, so that cancels
// aim at live orders and the end state is known without the engine.
type generator struct {
	w     Workload
	rng   *rand.Rand
	zipf  *rand.Zipf
	steps int
	books []model
	ops   []Op
	where []restsAt // by Op: where its order rests
	exp   Expected
}

// model is one book: per ladder index a queue of resting orders, oldest first.
type model struct {
	queues [2][][]uint32 // bids, asks by index 1..steps-1
	mid    float64
	live   []uint32 // Ops with a live order, in no order; where[op].at is its position
	latest [64]uint32
	placed int
}

// restsAt is where an order of the model rests.
type restsAt struct {
	left  engine.Size
	at    int // index in live, -1: gone
	ask   bool
	index int
}

// Generate draws n operations after prefill new orders, from seed alone: the same arguments give
// the same operations everywhere.
func Generate(w Workload, seed uint64, prefill, n int) ([]Op, Expected) {
	ops, exp, err := generate(context.Background(), w, seed, [2]int{prefill, n})
	if err != nil {
		panic("BUG: the draw was stopped: " + err.Error())
	}
	return ops, exp
}

// generate is Generate for sizes prefill and n; millions of operations take seconds, so it ends
// early with ctx.
func generate(ctx context.Context, w Workload, seed uint64, sizes [2]int) (
	[]Op, Expected, error) {
	g := &generator{w: w, rng: rand.New(rand.NewPCG(seed, 0x636c6f62)),
		steps: int(engine.PriceOne / w.Tick), books: make([]model, w.Books)}
	g.zipf = rand.NewZipf(g.rng, 1.1, 1, uint64(w.Books-1))
	for i := range g.books {
		g.books[i].mid = float64(g.steps) / 2
		for side := range g.books[i].queues {
			g.books[i].queues[side] = make([][]uint32, g.steps)
		}
	}
	for range sizes[0] {
		g.rest(g.book())
	}
	for i := range sizes[1] {
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

// book draws a book: Zipf(1.1), so that one market is hot.
func (g *generator) book() int {
	if len(g.books) == 1 {
		return 0
	}
	return int(g.zipf.Uint64())
}

// step draws one operation from the mix.
func (g *generator) step() {
	b := g.book()
	m := &g.books[b]
	m.mid += g.rng.NormFloat64() * float64(g.steps) / 2000
	m.mid = min(max(m.mid, float64(g.steps)/5), float64(g.steps)*4/5)
	switch p := g.rng.IntN(100); {
	case p < g.w.New:
		g.rest(b)
	case p < g.w.New+g.w.Cancel && len(m.live) > 0:
		g.cancel(b)
	default:
		g.cross(b)
	}
}

// rest draws an order that does not cross: its distance from the middle is exponential.
func (g *generator) rest(b int) {
	m := &g.books[b]
	ask := g.rng.IntN(2) == 1
	distance := 1 + int(g.rng.ExpFloat64()*float64(g.steps)/25)
	index := int(math.Round(m.mid)) - distance
	best := g.best(m, !ask)
	if ask {
		index = int(math.Round(m.mid)) + distance
		if best > 0 {
			index = max(index, best+1)
		}
	} else if best > 0 {
		index = min(index, best-1)
	}
	g.place(b, ask, index, engine.Size(5+g.rng.IntN(96))*engine.Unit)
}

// cross draws an order whose limit is up to two ticks beyond the best opposite price.
func (g *generator) cross(b int) {
	m := &g.books[b]
	ask := g.rng.IntN(2) == 1
	best := g.best(m, !ask)
	if best == 0 {
		g.rest(b)
		return
	}
	slip := g.rng.IntN(3)
	if ask {
		slip = -slip
	}
	g.place(b, ask, best+slip, engine.Size(5+g.rng.IntN(136))*engine.Unit)
}

// best is the ladder index of the best ask or bid of the model, 0 if that side is empty.
func (g *generator) best(m *model, ask bool) int {
	if ask {
		for i := 1; i < g.steps; i++ {
			if len(m.queues[1][i]) > 0 {
				return i
			}
		}
		return 0
	}
	for i := g.steps - 1; i > 0; i-- {
		if len(m.queues[0][i]) > 0 {
			return i
		}
	}
	return 0
}

// place appends an order as an operation and applies it to the model. A bid is drawn as a BUY of
// outcome 0 or a SELL of outcome 1, so that transfers, mints and merges all occur.
func (g *generator) place(b int, ask bool, index int, size engine.Size) {
	index = min(max(index, 1), g.steps-1)
	op := Op{Book: uint16(b), Trader: uint16(g.rng.IntN(Traders)), Size: size}
	price := engine.Price(index) * g.w.Tick
	op.Side, op.Outcome, op.Price = engine.Buy, 0, price
	if ask {
		op.Side = engine.Sell
	}
	if g.rng.IntN(2) == 1 {
		op.Side, op.Outcome, op.Price = op.Side.Other(), 1, engine.PriceOne-price
	}
	id := uint32(len(g.ops))
	g.ops = append(g.ops, op)
	g.where = append(g.where, restsAt{at: -1})
	left := g.match(b, id, ask, index)
	if left == 0 {
		return
	}
	m := &g.books[b]
	side := 0
	if ask {
		side = 1
	}
	m.queues[side][index] = append(m.queues[side][index], id)
	g.where[id] = restsAt{left, len(m.live), ask, index}
	m.live = append(m.live, id)
	m.latest[m.placed%len(m.latest)] = id
	m.placed++
}

// match fills an arriving order against the model and returns what is left of it. A resting order
// of the same trader is cancelled on the way, as the engine's self-trade rule does.
func (g *generator) match(b int, id uint32, ask bool, index int) engine.Size {
	m := &g.books[b]
	left := g.ops[id].Size
	for left > 0 {
		best := g.best(m, !ask)
		if best == 0 || ask && best < index || !ask && best > index {
			break
		}
		side := 1
		if ask {
			side = 0
		}
		maker := m.queues[side][best][0]
		if g.ops[maker].Trader == g.ops[id].Trader {
			g.remove(b, maker)
			continue
		}
		size := min(left, g.where[maker].left)
		left -= size
		g.where[maker].left -= size
		g.exp.Fills++
		g.exp.Volume += size
		if g.where[maker].left == 0 {
			g.remove(b, maker)
		}
	}
	return left
}

// remove takes a resting order out of the model.
func (g *generator) remove(b int, id uint32) {
	m := &g.books[b]
	p := &g.where[id]
	side := 0
	if p.ask {
		side = 1
	}
	queue := m.queues[side][p.index]
	for i, other := range queue {
		if other == id {
			m.queues[side][p.index] = append(queue[:i], queue[i+1:]...)
			break
		}
	}
	last := m.live[len(m.live)-1]
	m.live[p.at] = last
	g.where[last].at = p.at
	m.live = m.live[:len(m.live)-1]
	p.at, p.left = -1, 0
}

// cancel draws a cancel: half of them among the latest orders, which may be gone already.
func (g *generator) cancel(b int) {
	m := &g.books[b]
	target := m.live[g.rng.IntN(len(m.live))]
	if g.rng.IntN(2) == 1 && m.placed >= len(m.latest) {
		target = m.latest[g.rng.IntN(len(m.latest))]
	}
	g.ops = append(g.ops, Op{Cancel: true, Book: uint16(b), Target: target,
		Trader: g.ops[target].Trader})
	g.where = append(g.where, restsAt{at: -1})
	if g.where[target].at < 0 {
		g.exp.Missed++
		return
	}
	g.remove(b, target)
}
