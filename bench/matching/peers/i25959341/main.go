package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/i25959341/orderbook"
	"github.com/shopspring/decimal"

	"clobd/bench/matching/peers/mix"
)

// replayer is one turn.
type replayer struct {
	books         []*orderbook.OrderBook
	numbers       []decimal.Decimal // 0, 1, 2 …, for prices and quantities
	ids           []string
	fills, volume uint64
}

func newReplayer(m *mix.Mix) *replayer {
	r := &replayer{books: make([]*orderbook.OrderBook, m.Books)}
	for i := range max(m.Ticks, 100) + 1 {
		r.numbers = append(r.numbers, decimal.New(int64(i), 0))
	}
	for i := range r.books {
		r.books[i] = orderbook.NewOrderBook()
	}
	r.ids = make([]string, m.IDs+1)
	for i := range r.ids {
		r.ids[i] = strconv.Itoa(i)
	}
	return r
}

// replay replays operations.
func (r *replayer) replay(ops []mix.Op) {
	sides := [2]orderbook.Side{orderbook.Buy, orderbook.Sell}
	for i := range ops {
		o := &ops[i]
		b, id := r.books[o.Book], r.ids[o.ID]
		if o.Cancel {
			b.CancelOrder(id)
			continue
		}
		var got taken
		var err error
		got.done, got.partial, got.filled, err = b.ProcessLimitOrder(sides[o.Side], id,
			r.numbers[o.Qty], r.numbers[o.Price])
		if err != nil {
			panic(fmt.Sprintf("BUG: order %s refused: %v", id, err))
		}
		if o.IOC && !r.take(id, got) {
			b.CancelOrder(id)
		}
	}
}

// taken is what the peer answers to an order.
type taken struct {
	done    []*orderbook.Order
	partial *orderbook.Order
	filled  decimal.Decimal // of partial
}

// take counts what a taker got, and reports whether that was all it asked for: otherwise the peer
// rests it, as it has no taker with a limit, and it is to be cancelled. A taker that got all stands
// last in done, and partial, if any, is the order that gave the last part.
func (r *replayer) take(id string, got taken) (all bool) {
	last := len(got.done) - 1
	if all = last >= 0 && got.done[last].ID() == id; all {
		got.done = got.done[:last]
		if got.partial != nil {
			r.add(got.filled, got.partial.Price())
		}
	}
	for _, o := range got.done {
		r.add(o.Quantity(), o.Price())
	}
	return all
}

func (r *replayer) add(qty, price decimal.Decimal) {
	r.fills++
	r.volume += uint64(qty.CoefficientInt64() * price.CoefficientInt64())
}

// playOnce is a turn from empty books.
func playOnce(m *mix.Mix, own bool) (t mix.Turn) {
	r := newReplayer(m)
	r.replay(m.Ops[:m.Prefill])
	if !own {
		mix.Gather()
	}
	t.Timed(func() { r.replay(m.Ops[m.Prefill:]) })
	t.Fills, t.Volume = r.fills, r.volume
	for i := range m.Ops {
		if o := &m.Ops[i]; !o.Cancel && r.books[o.Book].Order(r.ids[o.ID]) != nil {
			t.Resting++
		}
	}
	return t
}

func main() {
	own := flag.Bool("own", false, "collect garbage as Go does by itself")
	flag.Parse()
	if err := run(flag.Args(), *own); err != nil {
		fmt.Fprintln(os.Stderr, "i25959341:", err)
		os.Exit(1)
	}
}

// run serves the mix that is named.
func run(args []string, own bool) error {
	m, err := mix.Read(args)
	if err != nil {
		return err
	}
	if !own {
		debug.SetGCPercent(-1) // between the turns only
	}
	return mix.Serve(os.Stdin, os.Stdout, func() mix.Turn { return playOnce(m, own) })
}
