package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/geseq/orderbook"
	"github.com/geseq/udecimal"

	"clobd/bench/matching/peers/mix"
)

// pooled is the number of orders in the peer's pool, which all its books share. indexed is the
// number of orders that their indexes are made for. The peer's default for both is a million: then
// each order has left the caches before it is used again, and one book takes twice as long.
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
func newReplayer(m *mix.Mix, own bool) *replayer {
	r := &replayer{books: make([]book, m.Books)}
	for i := range max(m.Ticks, 100) + 1 {
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
		r.books[i].OrderBook = orderbook.NewOrderBook(&r.seen, size(uint64(indexed/m.Books))...)
	}
	orderbook.NewOrderBook(&r.seen, size(pooled)...) // the last book made makes the pool of all
	return r
}

// replay replays operations. A taker is a limit order that is filled at once or not at all.
func (r *replayer) replay(ops []mix.Op) {
	sides := [2]orderbook.SideType{orderbook.Buy, orderbook.Sell}
	for i := range ops {
		o := &ops[i]
		b := &r.books[o.Book]
		b.calls++
		if o.Cancel {
			b.CancelOrder(b.calls, o.ID)
			continue
		}
		how := orderbook.None
		if o.IOC {
			how = orderbook.IoC
		}
		b.AddOrder(b.calls, o.ID, orderbook.Limit, sides[o.Side], r.numbers[o.Qty],
			r.numbers[o.Price], udecimal.Zero, how)
	}
}

// playOnce is a turn from empty books.
func playOnce(m *mix.Mix, own bool) (t mix.Turn) {
	r := newReplayer(m, own)
	r.replay(m.Ops[:m.Prefill])
	if !own {
		mix.Gather()
	}
	t.Timed(func() { r.replay(m.Ops[m.Prefill:]) })
	t.Fills, t.Volume = r.seen.fills, r.seen.volume
	for i := range m.Ops {
		if o := &m.Ops[i]; !o.Cancel && r.books[o.Book].Order(o.ID) != nil {
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
	m, err := mix.Read(args)
	if err != nil {
		return err
	}
	if own && m.Books > 1 {
		return fmt.Errorf("-own with %d books: each would take 100 MB", m.Books)
	}
	if !own {
		debug.SetGCPercent(-1) // between the turns only
	}
	return mix.Serve(os.Stdin, os.Stdout, func() mix.Turn { return playOnce(m, own) })
}
