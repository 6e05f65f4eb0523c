package matching

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
)

// Mix is the flow of a prediction market against bare books, for measuring matchers side by side:
// half new orders that rest, two fifths cancels, a tenth takers that never rest.
type Mix struct {
	Books   int    // drawn by Zipf(1.1)
	Ticks   int    // price steps in 1.00 less one: 99 or 999
	Prefill int    // new orders before the clock starts
	Ops     int    // operations under the clock
	Seed    uint64 // the same Mix draws the same operations everywhere
}

// NewMix is the mix of that many books and ticks at its usual size: 2,000,000 operations after
// 10,000 orders in one book, or 100,000 in many.
func NewMix(books, ticks int, seed uint64) Mix {
	m := Mix{Books: books, Ticks: ticks, Prefill: 10_000, Ops: 2_000_000, Seed: seed}
	if books > 1 {
		m.Prefill = 100_000
	}
	return m
}

// mixLive bounds the resting orders of one book: beyond it a cancel is drawn instead of a new
// order. An exchange takes no more than 65,536.
const mixLive = 60_000

// mixRecent is among how many of a book's latest orders half of the cancels are drawn.
const mixRecent = 64

// MixOp is one operation. A record of a mix file is the same in 40 bytes, little endian: cancel,
// side, ioc (a byte each, then one of zero), quantity (4), number of the operation, id, price in
// ticks (8 each), book (4) and 4 bytes of zero.
type MixOp struct {
	Cancel bool
	Side   uint8  // 0 buys, 1 sells
	IOC    bool   // what does not fill at once is cancelled
	Qty    uint32 // in shares, [1, 100]
	ID     uint64 // of the order, from 1 without gaps; of a cancel: the order it takes out
	Price  uint32 // in [1, Ticks]
	Book   uint32 // from 0
}

// MixSum is the result that a run of all operations must have.
type MixSum struct {
	Fills   uint64 `json:"fills"`
	Volume  uint64 `json:"volume"`  // sum of quantity times price, in ticks, of all fills
	Resting uint64 `json:"resting"` // orders at the end
	// Chain folds id and quantity of each resting order that was filled, in the order in which it
	// happened.
	Chain uint64 `json:"chain"`
}

// Add takes one fill of a resting order in.
func (s *MixSum) Add(id uint64, qty, price uint32) {
	s.Fills++
	s.Volume += uint64(qty) * uint64(price)
	s.fold(id, qty)
}

func (s *MixSum) fold(id uint64, qty uint32) {
	s.Chain = (s.Chain ^ id<<8 ^ uint64(qty)) * 0x9e3779b97f4a7c15
}

// mixer draws a mix against a model of its own.
type mixer struct {
	m     Mix
	rng   *rand.Rand
	zipf  *rand.Zipf
	books []mixBook
	ops   []MixOp
	rests []mixOrder // by id
	sum   MixSum
}

// mixBook is one book of the model. An order that was cancelled stays in its queue, with nothing
// left, until the queue's turn comes.
type mixBook struct {
	queues [][]uint64 // by price; bids below asks
	count  []uint32   // of live orders, by price
	best   [2]int     // highest bid, lowest ask; 0 and ticks+1 for none
	mid    float64
	live   []uint64 // ids, in no order
	latest [mixRecent]uint64
	placed int
}

// mixOrder is an order of the model.
type mixOrder struct {
	left  uint32
	price uint32
	at    uint32 // in live
}

// Draw makes the operations, the prefill first.
func (m Mix) Draw() ([]MixOp, MixSum) {
	g := &mixer{m: m, rng: rand.New(rand.NewPCG(m.Seed, 0x6d6978)), rests: make([]mixOrder, 1)}
	g.zipf = rand.NewZipf(g.rng, 1.1, 1, uint64(max(m.Books-1, 1)))
	g.books = make([]mixBook, m.Books)
	g.ops = make([]MixOp, 0, m.Prefill+m.Ops)
	for i := range g.books {
		g.books[i] = mixBook{queues: make([][]uint64, m.Ticks+2), count: make([]uint32, m.Ticks+2),
			best: [2]int{0, m.Ticks + 1}, mid: float64(m.Ticks+1) / 2}
	}
	for range m.Prefill {
		g.rest(g.book())
	}
	for range m.Ops {
		g.step(g.book())
	}
	for i := range g.books {
		g.sum.Resting += uint64(len(g.books[i].live))
	}
	return g.ops, g.sum
}

// book draws a book: the first is the hottest.
func (g *mixer) book() int {
	if len(g.books) == 1 {
		return 0
	}
	return int(g.zipf.Uint64())
}

// step draws one operation on a book, whose middle drifts by a fifth of the range at most.
func (g *mixer) step(at int) {
	b, span := &g.books[at], float64(g.m.Ticks+1)
	b.mid = min(max(b.mid+g.rng.NormFloat64()*span/20_000, span*3/10), span*7/10)
	switch p := g.rng.IntN(10); {
	case p < 5 && len(b.live) < mixLive || len(b.live) == 0:
		g.rest(at)
	case p < 9:
		g.cancel(at)
	default:
		g.cross(at)
	}
}

// rest draws an order off the middle that does not cross: its distance is exponential.
func (g *mixer) rest(at int) {
	b, side := &g.books[at], g.rng.IntN(2)
	away := int(g.rng.ExpFloat64() * float64(g.m.Ticks+1) / 25)
	price := int(math.Ceil(b.mid)) - 1 - away
	if side == 1 {
		price = max(int(math.Floor(b.mid))+1+away, b.best[0]+1)
	} else {
		price = min(price, b.best[1]-1)
	}
	price = min(max(price, 1), g.m.Ticks)
	if side == 0 && price >= b.best[1] || side == 1 && price <= b.best[0] {
		g.cross(at) // the other side has taken the whole range
		return
	}
	id, qty := uint64(len(g.rests)), uint32(1+g.rng.IntN(100))
	g.ops = append(g.ops, MixOp{Side: uint8(side), Qty: qty, ID: id, Price: uint32(price),
		Book: uint32(at)})
	g.rests = append(g.rests, mixOrder{qty, uint32(price), uint32(len(b.live))})
	b.live = append(b.live, id)
	b.latest[b.placed%mixRecent] = id
	b.placed++
	b.queues[price] = append(b.queues[price], id)
	b.count[price]++
	if side == 0 {
		b.best[0] = max(b.best[0], price)
	} else {
		b.best[1] = min(b.best[1], price)
	}
}

// cancel draws a cancel of a live order: half of them of one of the latest.
func (g *mixer) cancel(at int) {
	b := &g.books[at]
	id := b.live[g.rng.IntN(len(b.live))]
	if g.rng.IntN(2) == 1 && b.placed >= mixRecent {
		if recent := b.latest[g.rng.IntN(mixRecent)]; g.rests[recent].left > 0 {
			id = recent
		}
	}
	g.ops = append(g.ops, MixOp{Cancel: true, ID: id, Price: g.rests[id].price, Book: uint32(at)})
	g.remove(b, id)
}

// cross draws a taker whose limit lies two ticks beyond the best price of the other side.
func (g *mixer) cross(at int) {
	b, side := &g.books[at], g.rng.IntN(2)
	if b.best[0] == 0 {
		side = 0
	} else if b.best[1] > g.m.Ticks {
		side = 1
	}
	limit := b.best[1-side] + 2 - 4*side
	limit = min(max(limit, 1), g.m.Ticks)
	id, qty := uint64(len(g.rests)), uint32(1+g.rng.IntN(80))
	g.ops = append(g.ops, MixOp{Side: uint8(side), IOC: true, Qty: qty, ID: id,
		Price: uint32(limit), Book: uint32(at)})
	g.rests = append(g.rests, mixOrder{})
	for qty > 0 {
		best := b.best[1-side]
		if best == 0 || best > g.m.Ticks || side == 0 && best > limit || side == 1 && best < limit {
			return
		}
		maker := g.front(b, best)
		size := min(qty, g.rests[maker].left)
		g.sum.Add(maker, size, uint32(best))
		qty -= size
		if g.rests[maker].left == size {
			g.remove(b, maker)
		} else {
			g.rests[maker].left -= size
		}
	}
}

// front is the oldest live order of a price that has one.
func (g *mixer) front(b *mixBook, price int) uint64 {
	queue := b.queues[price]
	for g.rests[queue[0]].left == 0 {
		queue = queue[1:]
	}
	b.queues[price] = queue
	return queue[0]
}

// remove takes an order out of the model.
func (g *mixer) remove(b *mixBook, id uint64) {
	o := &g.rests[id]
	o.left = 0
	last := b.live[len(b.live)-1]
	b.live[o.at] = last
	g.rests[last].at = o.at
	b.live = b.live[:len(b.live)-1]
	price := int(o.price)
	if b.count[price]--; b.count[price] > 0 {
		return
	}
	b.queues[price] = nil
	if b.best[0] == price {
		for b.best[0] > 0 && b.count[b.best[0]] == 0 {
			b.best[0]--
		}
	}
	if b.best[1] == price {
		for b.best[1] <= g.m.Ticks && b.count[b.best[1]] == 0 {
			b.best[1]++
		}
	}
}

// The file of a mix: a header of 96 bytes, then the records. All numbers are little endian.
const (
	mixMagic  = "clobmix1"
	mixHeader = 96
	mixRecord = 40
)

// Write stores operations and what they come to, for matchers in other processes.
//
//	0 magic  8 books  16 ticks  24 prefill  32 operations, prefill included  40 ids
//	48 fills  56 volume  64 resting  72 chain  80 seed  88 zero
func (m Mix) Write(file string, ops []MixOp, sum MixSum) error {
	b := make([]byte, mixHeader, mixHeader+mixRecord*len(ops))
	copy(b, mixMagic)
	ids := uint64(0)
	for i := range ops {
		ids = max(ids, ops[i].ID)
	}
	le := binary.LittleEndian
	for i, v := range []uint64{uint64(m.Books), uint64(m.Ticks), uint64(m.Prefill),
		uint64(len(ops)), ids, sum.Fills, sum.Volume, sum.Resting, sum.Chain, m.Seed} {
		le.PutUint64(b[8+8*i:], v)
	}
	for i := range ops {
		o, r := &ops[i], [mixRecord]byte{}
		if o.Cancel {
			r[0] = 1
		}
		r[1] = o.Side
		if o.IOC {
			r[2] = 1
		}
		le.PutUint32(r[4:], o.Qty)
		le.PutUint64(r[8:], uint64(i))
		le.PutUint64(r[16:], o.ID)
		le.PutUint64(r[24:], uint64(o.Price))
		le.PutUint32(r[32:], o.Book)
		b = append(b, r[:]...)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		return fmt.Errorf("write mix: %w", err)
	}
	return nil
}

// errMix says that a file holds no mix.
var errMix = errors.New("not a mix file")

// ReadMix reads what Write wrote.
func ReadMix(file string) (m Mix, ops []MixOp, sum MixSum, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return m, nil, sum, fmt.Errorf("read mix: %w", err)
	}
	if len(b) < mixHeader || string(b[:8]) != mixMagic {
		return m, nil, sum, fmt.Errorf("read %s: %w", file, errMix)
	}
	le := binary.LittleEndian
	word := func(i int) uint64 { return le.Uint64(b[8*i:]) }
	n := word(4)
	if uint64(len(b)-mixHeader) != n*mixRecord || word(3) > n {
		return m, nil, sum, fmt.Errorf("read %s: %d bytes for %d records: %w", file, len(b), n, errMix)
	}
	m = Mix{Books: int(word(1)), Ticks: int(word(2)), Prefill: int(word(3)),
		Ops: int(n - word(3)), Seed: word(10)}
	sum = MixSum{Fills: word(6), Volume: word(7), Resting: word(8), Chain: word(9)}
	ops = make([]MixOp, n)
	for i := range ops {
		r := b[mixHeader+mixRecord*i:]
		ops[i] = MixOp{Cancel: r[0] == 1, Side: r[1], IOC: r[2] == 1, Qty: le.Uint32(r[4:]),
			ID: le.Uint64(r[16:]), Price: uint32(le.Uint64(r[24:])), Book: le.Uint32(r[32:])}
	}
	return m, ops, sum, nil
}
