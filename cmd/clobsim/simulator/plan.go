package simulator

import (
	"fmt"
	"math/rand/v2"

	"clobd/engine"
)

// plan is what the seed decides before the run: sizes, rules, and how often each thing happens.
type plan struct {
	disk       string
	faults     Faults
	now        engine.Time
	ring       int // slots
	frames     int // in flight
	batch      int // Commands of a frame
	wallets    int
	markets    []engine.Listing
	rich       engine.Cash // first deposit
	spread     int         // ticks around the middle in which orders are drawn
	faultEvery int         // a fault comes once in so many steps
	hurry      int         // Commands entered at once, at most
	weights    [4]int      // of Enter, Step, Append, Commit
}

// draw makes the plan of a run.
func draw(o *Options) plan {
	r := rand.New(rand.NewPCG(o.Seed, 0))
	pick := func(values ...int) int { return values[r.IntN(len(values))] }
	p := plan{
		faults:     o.Faults,
		now:        1_700_000_000_000 + engine.Time(r.IntN(1_000_000_000)),
		ring:       pick(8, 16, 64, 512, 4096),
		frames:     pick(1, 2, 4, 4, 8),
		batch:      pick(1, 3, 16, 64, 256),
		rich:       engine.Cash(pick(50, 5_000, 1_000_000)) * engine.Unit,
		spread:     pick(2, 6, 30, 1000),
		faultEvery: pick(40, 120, 400),
		hurry:      pick(1, 4, 20),
		disk:       []string{MemoryDisk, MemoryDisk, PebbleDisk}[r.IntN(3)],
	}
	p.wallets = 2 + r.IntN(10)
	for i := range p.weights {
		p.weights[i] = pick(1, 2, 4)
	}
	for i := range 1 + r.IntN(4) {
		p.markets = append(p.markets, listing(r.IntN, i))
	}
	if o.Disk != DrawnDisk {
		p.disk = o.Disk
	}
	return p
}

// listing draws the i-th market, from 0.
func listing(below func(n int) int, i int) engine.Listing {
	pick := func(values ...int) int { return values[below(len(values))] }
	l := engine.Listing{Group: uint64(1 + below(2)), NegRisk: below(3) == 0, Open: true,
		Tick:    engine.Price(pick(1000, 100, 100, 50, 25, 10, 1)),
		MinSize: engine.Size(pick(0, 1, 5)) * engine.Unit,
		Fee:     engine.Fee{Rate: uint16(pick(0, 0, 100, 700)), Exponent: uint8(below(4))}}
	if below(4) == 0 {
		l.MinBuy = engine.Unit
	}
	l.Condition[0], l.Tokens[0][0], l.Tokens[1][0] = byte(i+1), byte(2*i+1), byte(2*i+2)
	return l
}

// String is the plan in one line.
func (p *plan) String() string {
	return fmt.Sprintf("%s disk, ring %d, %d frames of %d, %d wallets with %d, %d markets, "+
		"weights %v, a fault in %d steps of %s", p.disk, p.ring, p.frames, p.batch, p.wallets,
		p.rich/engine.Unit, len(p.markets), p.weights, p.faultEvery, p.faults)
}
