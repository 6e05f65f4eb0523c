//go:build linux

package journal

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clobd/engine"
)

// crowd is an index past its journal, for whoever needs more wallets than an engine would make in
// time: tokens come from outside, or go there.
type crowd struct {
	x      *Index
	seq    engine.Sequence
	events [1]engine.Event
	waits  int
}

// give moves size tokens to a wallet, or away from it if size is below 0.
func (w *crowd) give(t testing.TB, wallet engine.WalletNo, m engine.MarketNo, size engine.Size) {
	t.Helper()
	w.events[0] = engine.Event{Kind: engine.Deposited, Wallet: wallet, Market: m, Size: size}
	if size < 0 {
		w.events[0].Kind, w.events[0].Size = engine.Withdrawn, -size
	}
	w.seq++
	c := engine.Command{Kind: engine.Deposit, Market: m, Size: size}
	if err := w.x.fold.command(&c, w.seq, makerTime, w.events[:]); err != nil {
		t.Fatal(err)
	}
	w.x.fold.at.sequence = w.seq
	if w.waits++; w.waits == 8192 {
		w.commit(t)
	}
}

// commit shows what was given so far.
func (w *crowd) commit(t testing.TB) {
	t.Helper()
	if err := w.x.fold.commit(); err != nil {
		t.Fatal(err)
	}
	w.x.History.publish(w.seq)
	w.x.flush()
	w.waits = 0
}

// quantiles runs work n times, each after prepare, and reports the median and the 90th percentile.
func quantiles(b *testing.B, n int, prepare, work func()) {
	took := make([]time.Duration, n)
	for i := range took {
		prepare()
		start := time.Now()
		work()
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[n/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[n*9/10].Microseconds()), "p90-us")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkHolders asks for the 100 largest holders of 20 tokens that 100,000 wallets hold each: as
// they were flushed, and while the largest of them have changed 100 times a second for 30 s, all
// of which still lies in memtables.
func BenchmarkHolders(b *testing.B) {
	const markets, wallets, moving, rounds = 20, 100_000, 50, 600
	j := open(b, Options{Dir: b.TempDir(), Async: true})
	defer j.Close()
	x, err := OpenIndex(j, IndexOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	w := &crowd{x: x}
	r := rand.New(rand.NewPCG(1, 2))
	for wallet := range engine.WalletNo(wallets) {
		for m := range engine.MarketNo(markets) {
			if wallet < moving {
				w.give(b, wallet+1, m+1, 1_000_000*engine.Unit)
				continue
			}
			p := position{wallet: wallet + 1, market: m + 1}
			p.tokens[0].Size = 1 + engine.Size(r.Int64N(1000*engine.Unit))
			if err := x.fold.ledger.list(&p, x.fold.batch); err != nil {
				b.Fatal(err)
			}
		}
		if wallet%500 == 0 {
			w.commit(b)
		}
	}
	w.commit(b)
	if err := x.db.Flush(); err != nil {
		b.Fatal(err)
	}
	ask := func() {
		for m := range engine.MarketNo(markets) {
			all, err := x.History.Holders(m+1, 0, 100, 1)
			if err != nil || len(all) != 100 {
				b.Fatal(len(all), err)
			}
		}
	}
	ask()
	b.Run("still", func(b *testing.B) { quantiles(b, 100, func() {}, ask) })
	b.Run("moving", func(b *testing.B) {
		quantiles(b, rounds, func() {
			for range moving {
				size := engine.Size(1+r.IntN(500)) * engine.Unit
				w.give(b, engine.WalletNo(1+r.IntN(moving)), engine.MarketNo(1+r.IntN(markets)), size)
				w.give(b, engine.WalletNo(1+r.IntN(moving)), engine.MarketNo(1+r.IntN(markets)), -size)
			}
			w.commit(b)
		}, ask)
	})
}

// BenchmarkPositions reads the 10,000 positions of one wallet.
func BenchmarkPositions(b *testing.B) {
	const positions = 10_000
	j := open(b, Options{Dir: b.TempDir(), Async: true})
	defer j.Close()
	x, err := OpenIndex(j, IndexOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	w := &crowd{x: x}
	for wallet := range engine.WalletNo(10) {
		for m := range engine.MarketNo(positions) {
			w.give(b, wallet+1, m+1, engine.Size(wallet+1)*engine.Unit)
		}
	}
	w.commit(b)
	ask := func() {
		rows, err := x.History.Positions(5)
		if err != nil || len(rows) != positions {
			b.Fatal(len(rows), err)
		}
	}
	b.Run("memtable", func(b *testing.B) { quantiles(b, 50, func() {}, ask) })
	if err := x.db.Flush(); err != nil {
		b.Fatal(err)
	}
	b.Run("table", func(b *testing.B) { quantiles(b, 50, func() {}, ask) })
}
