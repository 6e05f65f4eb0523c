package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/geseq/orderbook"
	"github.com/geseq/udecimal"
)

// pooled is how many orders the peer's pool holds, which all its books share, and indexed for how
// many orders their indexes are made. With the million of either that it takes by itself, each
// order leaves the caches before it is used again, and one book takes twice as long.
const (
	pooled  = 1 << 10
	indexed = 1 << 17
)

// tally counts what the peer reports.
type tally struct{ fills, volume uint64 }

// PutOrder is told of each order that is taken, refused or cancelled.
func (*tally) PutOrder(orderbook.MsgType, orderbook.OrderStatus, uint64, udecimal.Decimal, error) {
}

// PutTrade is told of each fill.
func (t *tally) PutTrade(_, _ uint64, _, _ orderbook.OrderStatus, qty, price udecimal.Decimal) {
	t.fills++
	t.volume += qty.Int() * price.Int()
}

// book is a book and the number of its last call, which it checks.
type book struct {
	*orderbook.OrderBook
	calls uint64
}

// replayer is one turn.
type replayer struct {
	books   []book
	numbers []udecimal.Decimal // 0, 1, 2 …, for prices and quantities
	seen    tally
}

// newReplayer makes the books, of the sizes above or of those that the peer takes by itself.
func newReplayer(m *mix, own bool) *replayer {
	r := &replayer{books: make([]book, m.books)}
	for i := range max(m.ticks, 100) + 1 {
		r.numbers = append(r.numbers, udecimal.NewI(uint64(i), 0))
	}
	if own {
		r.books[0].OrderBook = orderbook.NewOrderBook(&r.seen)
		return r
	}
	size := func(n uint64) []orderbook.Option {
		return []orderbook.Option{orderbook.WithOrderPoolSize(n), orderbook.WithOrderQueuePoolSize(n)}
	}
	for i := range r.books {
		r.books[i].OrderBook = orderbook.NewOrderBook(&r.seen, size(uint64(indexed/m.books))...)
	}
	orderbook.NewOrderBook(&r.seen, size(pooled)...) // the last book made makes the pool of all
	return r
}

// replay replays operations. A taker is a limit order that is filled at once or not at all.
func (r *replayer) replay(ops []op) {
	sides := [2]orderbook.SideType{orderbook.Buy, orderbook.Sell}
	for i := range ops {
		o := &ops[i]
		b := &r.books[o.book]
		b.calls++
		if o.cancel {
			b.CancelOrder(b.calls, o.id)
			continue
		}
		how := orderbook.None
		if o.ioc {
			how = orderbook.IoC
		}
		b.AddOrder(b.calls, o.id, orderbook.Limit, sides[o.side], r.numbers[o.qty],
			r.numbers[o.price], udecimal.Zero, how)
	}
}

// playOnce is a turn from empty books.
func playOnce(m *mix, own bool) (t turn) {
	r := newReplayer(m, own)
	r.replay(m.ops[:m.prefill])
	if !own {
		gather()
	}
	t.timed(func() { r.replay(m.ops[m.prefill:]) })
	t.Fills, t.Volume = r.seen.fills, r.seen.volume
	for i := range m.ops {
		if o := &m.ops[i]; !o.cancel && r.books[o.book].Order(o.id) != nil {
			t.Resting++
		}
	}
	return t
}

func main() {
	own := flag.Bool("own", false, "the sizes and the GOGC that the peer and Go take by themselves")
	flag.Parse()
	if err := run(flag.Args(), *own); err != nil {
		fmt.Fprintln(os.Stderr, "geseq:", err)
		os.Exit(1)
	}
}

// run serves the mix that is named.
func run(args []string, own bool) error {
	m, err := readMix(args)
	if err != nil {
		return err
	}
	if own && m.books > 1 {
		return fmt.Errorf("-own with %d books: each would take 100 MB", m.books)
	}
	if !own {
		debug.SetGCPercent(-1) // between the turns only
	}
	return serve(os.Stdin, os.Stdout, func() turn { return playOnce(m, own) })
}
