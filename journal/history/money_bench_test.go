//go:build linux

package history

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal"
)

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
// they were flushed, while the largest of them have changed 100 times a second for 30 s, all of
// which still lies in memtables, and in turns while they change 2,000 times a second and at rest.
func BenchmarkHolders(b *testing.B) {
	const markets, moving, rounds = 20, 50, 600
	wallets := 100_000
	if testing.Short() {
		wallets /= 50
	}
	j := open(b, journal.Options{Dir: b.TempDir(), Async: true})
	defer j.Close()
	x, err := openIndex(j, Options{})
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
			p := newPosition(wallet+1, m+1)
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
	f := &flow{w, r, moving, markets}
	b.Run("moving", func(b *testing.B) { quantiles(b, rounds, func() { f.move(b, moving) }, ask) })
	b.Run("beside", func(b *testing.B) { f.beside(b, ask) })
}

// flow moves tokens of the first wallets of a crowd.
type flow struct {
	*crowd
	r               *rand.Rand
	wallets, tokens int
}

// move moves tokens of times two wallets, in one batch.
func (f *flow) move(b *testing.B, times int) {
	wallet := func() engine.WalletNo { return engine.WalletNo(1 + f.r.IntN(f.wallets)) }
	token := func() engine.MarketNo { return engine.MarketNo(1 + f.r.IntN(f.tokens)) }
	for range times {
		size := engine.Size(1+f.r.IntN(500)) * engine.Unit
		f.give(b, wallet(), token(), size)
		f.give(b, wallet(), token(), -size)
	}
	f.commit(b)
}

// beside asks in turns while 2,000 holders a second move, and when they have stopped.
func (f *flow) beside(b *testing.B, ask func()) {
	var stopped, flowing []time.Duration
	rounds := 10
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		still, stop := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(still)
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
					f.move(b, 10)
				}
			}
		}()
		flowing = append(flowing, repeat(ask)...)
		close(stop)
		<-still
		stopped = append(stopped, repeat(ask)...)
	}
	slices.Sort(stopped)
	slices.Sort(flowing)
	idle, busy := stopped[len(stopped)/2], flowing[len(flowing)/2]
	b.ReportMetric(float64(idle.Microseconds()), "stopped-p50-us")
	b.ReportMetric(float64(busy.Microseconds()), "flowing-p50-us")
	b.ReportMetric(float64(busy)/float64(idle), "flowing/stopped")
	b.ReportMetric(0, "ns/op")
}

// repeat does work for 300 ms, once every 5 ms, and says how long it took each time.
func repeat(work func()) (took []time.Duration) {
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		start := time.Now()
		work()
		took = append(took, time.Since(start))
		time.Sleep(5 * time.Millisecond)
	}
	return took
}

// BenchmarkPositions reads the 10,000 positions of one wallet.
func BenchmarkPositions(b *testing.B) {
	const markets = 10_000
	j := open(b, journal.Options{Dir: b.TempDir(), Async: true})
	defer j.Close()
	x, err := openIndex(j, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	w := &crowd{x: x}
	for wallet := range engine.WalletNo(10) {
		for m := range engine.MarketNo(markets) {
			w.give(b, wallet+1, m+1, engine.Size(wallet+1)*engine.Unit)
		}
	}
	w.commit(b)
	ask := func() {
		rows, err := positions(x.History, 5)
		if err != nil || len(rows) != markets {
			b.Fatal(len(rows), err)
		}
	}
	b.Run("memtable", func(b *testing.B) { quantiles(b, 50, func() {}, ask) })
	if err := x.db.Flush(); err != nil {
		b.Fatal(err)
	}
	b.Run("table", func(b *testing.B) { quantiles(b, 50, func() {}, ask) })
}
