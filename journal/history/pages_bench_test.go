//go:build linux

package history

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal"
)

const (
	fairWallets = 1000
	fairMarkets = 100
	fairBatch   = 32 // Commands
)

// fair writes an index straight from an Exchange: wallet 1 makes a third of the markets, all others
// come and go.
type fair struct {
	x      *Index
	e      *engine.Exchange
	r      *rand.Rand
	seq    engine.Sequence
	trades int
	events []engine.Event
}

// do applies a Command and folds it.
func (w *fair) do(b *testing.B, c engine.Command) {
	w.seq++
	now := makerTime + engine.Time(w.seq/4)
	binary.BigEndian.PutUint64(c.ID[:], w.r.Uint64())
	binary.BigEndian.PutUint64(c.ID[8:], uint64(w.seq))
	c.Seen = w.seq - 1
	w.events = w.e.Apply(&c, w.seq, now, w.events[:0])
	if c.Kind == engine.Place && len(w.events) > 1 {
		w.trades++
	}
	if w.seq%fairBatch == 1 {
		if err := w.x.fold.mark(now, w.seq); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.x.fold.command(&c, w.seq, now, w.events); err != nil {
		b.Fatal(err)
	}
	w.x.fold.at.sequence = w.seq
	if w.seq%fairBatch == 0 {
		w.commit(b)
	}
}

// commit ends a batch.
func (w *fair) commit(b *testing.B) {
	if err := w.x.fold.commit(); err != nil {
		b.Fatal(err)
	}
	w.x.History.publish(w.seq)
}

// open lists markets and funds wallets.
func (w *fair) open(b *testing.B) {
	w.do(b, engine.Command{Kind: engine.Started})
	for i := range fairMarkets {
		l := &engine.Listing{Group: uint64(i), Tick: 100, MinSize: 5 * engine.Unit, Open: true}
		l.Condition[0], l.Tokens[0][0], l.Tokens[1][0] = byte(i+1), 1, 2
		l.Tokens[0][1], l.Tokens[1][1] = byte(i), byte(i)
		w.do(b, engine.Command{Kind: engine.List, Listing: l})
	}
	for i := range fairWallets {
		a := engine.Address{18: byte(i >> 8), 19: byte(i), 0: 1}
		w.do(b, engine.Command{Kind: engine.Deposit, Address: a, Cash: 1 << 49})
		for m := range engine.MarketNo(fairMarkets) {
			w.do(b, engine.Command{Kind: engine.Deposit, Address: a, Market: m + 1,
				Size: 1 << 40})
		}
	}
}

// trade lets two wallets trade, and a third one rest an order, for a while.
func (w *fair) trade(b *testing.B) {
	place := func(side engine.Side, kind engine.OrderType, m int, price int64) {
		wallet := engine.WalletNo(1)
		if w.r.IntN(3) > 0 {
			wallet = engine.WalletNo(1 + w.r.IntN(fairWallets))
		}
		w.do(b, engine.Command{Kind: engine.Place, Side: side, Type: kind, Wallet: wallet,
			Market: engine.MarketNo(m), Owner: wallet, Size: 5 * engine.Unit,
			Cash: engine.Cash(5 * engine.Unit * price / 100)})
	}
	m := 1 + w.r.IntN(fairMarkets)
	place(engine.Sell, engine.GTC, m, 40+w.r.Int64N(20))
	place(engine.Buy, engine.FAK, m, 60)
	if w.r.IntN(4) == 0 {
		place(engine.Buy, engine.GTC, m, 10+w.r.Int64N(10))
	}
	if w.seq%(1<<18) < 4 {
		for i := range engine.WalletNo(fairWallets) {
			if i%8 > 0 { // one in eight leaves its orders for ever
				w.do(b, engine.Command{Kind: engine.CancelAll, Wallet: i + 1, Owner: i + 1,
					Reason: engine.ByOwner})
			}
		}
	}
}

// BenchmarkPages reads pages of 100 anywhere in a history of a million trades and more orders; with
// -short, of 10,000.
func BenchmarkPages(b *testing.B) {
	trades := 1_000_000
	if testing.Short() {
		trades = 10_000
	}
	j := open(b, journal.Options{Dir: b.TempDir(), Async: true})
	defer j.Close()
	x, err := openIndex(j, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	w := &fair{x: x, e: engine.NewExchange(1), r: rand.New(rand.NewPCG(1, 2))}
	start := time.Now()
	w.open(b)
	for w.trades < trades {
		w.trade(b)
	}
	w.commit(b)
	if err := x.db.Flush(); err != nil {
		b.Fatal(err)
	}
	for x.db.Metrics().Compact.NumInProgress > 0 {
		time.Sleep(time.Millisecond)
	}
	b.Logf("%d Commands, %d trades, %d resting orders, %d of wallet 1 in %v\n%s", w.seq, w.trades,
		x.resting.live, len(x.resting.owners[1].orders), time.Since(start), x.db.Metrics())
	none := func(f *Filter) {}
	market := func(f *Filter) { f.Market = engine.MarketNo(1 + w.r.IntN(fairMarkets)) }
	before := func(f *Filter) { f.Before = makerTime + engine.Time(w.r.Uint64N(uint64(w.seq/4))) }
	token := func(f *Filter) { f.OneToken, f.Outcome = true, 1 }
	taker := func(f *Filter) { f.Taker = 8 }
	for _, c := range []struct {
		name  string
		maker bool
		draw  func(f *Filter)
	}{
		{"anyone", false, none}, {"anyone/market", false, market}, {"maker", true, none},
		{"maker/market", true, market}, {"maker/token", true, token},
		{"maker/before", true, before}, {"maker/taker", true, taker},
	} {
		owner := func() engine.WalletNo {
			if c.maker {
				return 1
			}
			return engine.WalletNo(2 + w.r.IntN(fairWallets-1))
		}
		b.Run("trades/"+c.name, func(b *testing.B) {
			spread(b, func() int { return w.readTrades(b, owner(), c.draw) })
		})
		b.Run("orders/"+c.name, func(b *testing.B) {
			spread(b, func() int { return w.readOrders(b, owner(), c.draw) })
		})
	}
	b.Run("tape", func(b *testing.B) {
		spread(b, func() int { return w.readTrades(b, 0, market) })
	})
}

// readTrades reads a page of an owner's trades, or of a tape, from anywhere on.
func (w *fair) readTrades(b *testing.B, owner engine.WalletNo, draw func(f *Filter)) int {
	f := new(Filter)
	draw(f)
	from := tradeRef{engine.Sequence(w.r.Uint64N(uint64(w.seq))), 0}.number()
	rows, _, err := w.x.History.tradesOf(owner, f, Page{from, 100})
	if err != nil {
		b.Fatal(err)
	}
	return len(rows)
}

// readOrders reads a page of an owner's orders, from anywhere on.
func (w *fair) readOrders(b *testing.B, owner engine.WalletNo, draw func(f *Filter)) int {
	f, from := new(Filter), uint64(0)
	draw(f)
	if q := w.x.resting.owners[owner]; q != nil {
		from = uint64(q.orders[w.r.IntN(len(q.orders))].seq)
	}
	rows, _, err := w.x.History.Orders(owner, f, Page{from, 100})
	if err != nil {
		b.Fatal(err)
	}
	return len(rows)
}

// spread reports how long reads take and how many rows they give.
func spread(b *testing.B, read func() (rows int)) {
	took := make([]time.Duration, b.N)
	rows := 0
	for i := range took {
		start := time.Now()
		rows += read()
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[b.N/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[b.N*9/10].Microseconds()), "p90-us")
	b.ReportMetric(float64(rows)/float64(b.N), "rows")
}
