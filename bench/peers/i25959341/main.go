package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/i25959341/orderbook"
	"github.com/shopspring/decimal"
)

// replayer is one turn.
type replayer struct {
	books         []*orderbook.OrderBook
	numbers       []decimal.Decimal // 0, 1, 2 …, for prices and quantities
	ids           []string
	fills, volume uint64
}

func newReplayer(m *mix) *replayer {
	r := &replayer{books: make([]*orderbook.OrderBook, m.books)}
	for i := range max(m.ticks, 100) + 1 {
		r.numbers = append(r.numbers, decimal.New(int64(i), 0))
	}
	for i := range r.books {
		r.books[i] = orderbook.NewOrderBook()
	}
	r.ids = make([]string, m.ids+1)
	for i := range r.ids {
		r.ids[i] = strconv.Itoa(i)
	}
	return r
}

// replay replays operations.
func (r *replayer) replay(ops []op) {
	sides := [2]orderbook.Side{orderbook.Buy, orderbook.Sell}
	for i := range ops {
		o := &ops[i]
		b, id := r.books[o.book], r.ids[o.id]
		if o.cancel {
			b.CancelOrder(id)
			continue
		}
		var got taken
		var err error
		got.done, got.partial, got.filled, err = b.ProcessLimitOrder(sides[o.side], id,
			r.numbers[o.qty], r.numbers[o.price])
		if err != nil {
			panic(fmt.Sprintf("BUG: order %s refused: %v", id, err))
		}
		if o.ioc && !r.take(id, got) {
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
func playOnce(m *mix, own bool) (t turn) {
	r := newReplayer(m)
	r.replay(m.ops[:m.prefill])
	if !own {
		gather()
	}
	t.timed(func() { r.replay(m.ops[m.prefill:]) })
	t.Fills, t.Volume = r.fills, r.volume
	for i := range m.ops {
		if o := &m.ops[i]; !o.cancel && r.books[o.book].Order(r.ids[o.id]) != nil {
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
	m, err := readMix(args)
	if err != nil {
		return err
	}
	if !own {
		debug.SetGCPercent(-1) // between the turns only
	}
	return serve(os.Stdin, os.Stdout, func() turn { return playOnce(m, own) })
}
