package engine

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"clobd/engine/pages"
)

// growthOrders is the largest number of resting orders in BenchmarkGrowth: 10,000,000 need 2 GB.
var growthOrders = flag.Int("growth", 10_000, "resting orders of the largest BenchmarkGrowth")

// BenchmarkGrowth measures a cancel and a new order among more and more resting orders, touched
// ahead and in huge pages as in a node, and the memory per order without the ring of the last
// placements. The orders lie in as few markets as possible, in 1,000, or in 10,000. Each cancel
// hits a random order of a random wallet, and each new order goes to a random market and price.
// That is the worst case for the caches: clients mostly cancel recent orders. Each row runs in
// turns with the smallest one, 10,000 orders in one market, because a machine may be slower for
// minutes: times-least is the median of the ratios of the turns.
func BenchmarkGrowth(b *testing.B) {
	var least *growth
	for orders := 10_000; orders <= *growthOrders; orders *= 10 {
		for _, markets := range []int{1, 1000, 10_000} {
			markets = max(markets, orders/(MaxMarketOrders/2))
			if markets > orders/10 {
				continue // books of nothing
			}
			var g *growth
			b.Run(fmt.Sprintf("orders=%d/markets=%d", orders, markets), func(b *testing.B) {
				if least == nil {
					least = fullGrowth(10_000, 1)
				}
				if g == nil { // else it is still as full as it was
					g = fullGrowth(orders, markets)
				}
				benchGrowth(b, g, least)
			})
		}
	}
}

// growth is an Exchange full of orders that never meet: bids below 0.50 and asks above, of 2,000
// wallets, half of them within 28 ticks of the middle and half of the rest within 28 more.
type growth struct {
	x       *Exchange
	dice    dice
	markets int
	seq     Sequence
	events  []Event
	placed  []uint64 // what made the id and the owner of each live order
	used    int64    // bytes of the heap, but for the ring

	commands [2 * growthBatch]Command
	next     [2 * growthBatch]*Command
}

const (
	growthWallets = 2000
	growthBatch   = 256
	growthTurn    = 1 << 15 // operations: the caches are full of the other one's at first
)

// newGrowth lists the markets and funds the wallets.
func newGrowth(markets int) *growth {
	g := &growth{x: NewExchange(1), dice: 7, markets: markets, events: make([]Event, 0, 8)}
	for i := range markets {
		l := &Listing{Tick: 10, MinSize: Unit, Open: true}
		binary.BigEndian.PutUint64(l.Condition[:], uint64(i+1))
		binary.BigEndian.PutUint64(l.Tokens[0][:], uint64(2*i+1))
		binary.BigEndian.PutUint64(l.Tokens[1][:], uint64(2*i+2))
		g.apply(&Command{Kind: List, Listing: l})
	}
	for w := range growthWallets {
		c := Command{Kind: Deposit, Cash: MaxAmount / 2}
		binary.BigEndian.PutUint64(c.Address[:], uint64(w+1))
		g.apply(&c)
	}
	return g
}

// fullGrowth rests the orders and fills the ring of placements twice, for any number of orders:
// then the table has finished its growth.
func fullGrowth(orders, markets int) *growth {
	placed, before := make([]uint64, 0, orders+growthBatch), heapInUse()
	g := newGrowth(markets)
	g.placed = placed
	var c Command
	for range max(orders, 2*Window) {
		if len(g.placed) == orders {
			g.cancel(&c)
			g.apply(&c)
		}
		g.place(&c)
		g.apply(&c)
	}
	g.used = heapInUse() - before - Window*48
	return g
}

func (g *growth) apply(c *Command) {
	g.seq++
	g.events = g.x.Apply(c, g.seq, 1, g.events[:0])
	if last := &g.events[len(g.events)-1]; last.Kind == Rejected {
		panic(fmt.Sprintf("BUG: %+v", last))
	}
}

// id and wallet of an order are drawn from one number.
func (g *growth) id(n uint64) (id OrderID) {
	d := dice(n)
	for i := range 4 {
		binary.LittleEndian.PutUint64(id[8*i:], d.next())
	}
	return id
}

func (g *growth) wallet(n uint64) WalletNo { return WalletNo(n%growthWallets + 1) }

// place rests an order: BUY of either outcome below 0.50, which is both sides of the ladder. A
// wallet trades in few markets, so that positions do not outnumber orders.
func (g *growth) place(c *Command) {
	n := g.dice.next()
	w := g.wallet(n)
	market := (uint64(w)*7 + n>>32%8*uint64(g.markets)/8) % uint64(g.markets)
	*c = Command{Kind: Place, Market: MarketNo(market + 1), Outcome: Outcome(n >> 16 & 1),
		Wallet: w, Owner: w, Size: Size(1+n>>20%100) * Unit, Seen: 1 << 60, ID: g.id(n)}
	away := 1 + uint64(bits.TrailingZeros64(n>>40|1<<16))*28 + n>>57%28
	c.Cash = Cost(c.Size, Price(10*(500-min(away, 499))))
	g.placed = append(g.placed, n)
}

// cancel cancels a random order.
func (g *growth) cancel(c *Command) {
	i, last := g.dice.below(len(g.placed)), len(g.placed)-1
	n := g.placed[i]
	g.placed[i], g.placed = g.placed[last], g.placed[:last]
	*c = Command{Kind: Cancel, Owner: g.wallet(n), ID: g.id(n)}
}

func heapInUse() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// threadTime is the CPU time of this thread in ns.
func threadTime() int64 {
	const clock = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

// turn applies the operations of one turn, and returns the CPU time in ns.
func (g *growth) turn() (cpu int64) {
	for range growthTurn / len(g.commands) {
		for i := range g.commands {
			c := &g.commands[i]
			if g.next[i] = c; i%2 == 0 {
				g.cancel(c)
			} else {
				g.place(c)
			}
		}
		start := threadTime()
		for i := range g.commands {
			if i%TouchAhead == 0 {
				g.x.Touch(g.next[i:])
			}
			g.apply(&g.commands[i])
		}
		cpu += threadTime() - start
	}
	return cpu
}

// benchGrowth measures whole turns, at least b.N operations.
func benchGrowth(b *testing.B, g, least *growth) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	orders, cpu, done := len(g.placed), int64(0), 0
	ratios := make([]float64, 0, b.N/growthTurn+1)
	_, _ = pages.Gather(context.Background()) // as a node does; whether the kernel did, huge-% says
	b.ReportAllocs()
	b.ResetTimer()
	for ; done < b.N; done += growthTurn {
		took := g.turn()
		cpu += took
		ratios = append(ratios, float64(took)/float64(least.turn()))
	}
	b.StopTimer()
	if got := restingOrders(g.x); got != orders {
		b.Fatalf("%d orders rest, want %d", got, orders)
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "times-least")
	b.ReportMetric(float64(cpu)/float64(done), "cpu-ns/op")
	b.ReportMetric(0, "ns/op") // of both, with what makes the Commands
	b.ReportMetric(float64(g.used)/float64(orders), "B/order")
	if huge, all := kibOf("AnonHugePages:"), kibOf("Rss:"); all > 0 {
		b.ReportMetric(100*huge/all, "huge-%")
	}
	runtime.KeepAlive(g)
}

// kibOf returns a figure of this process's memory in KiB, 0 if the kernel does not tell it.
func kibOf(name string) (kib float64) {
	text, _ := os.ReadFile("/proc/self/smaps_rollup")
	_, rest, _ := strings.Cut(string(text), name)
	_, _ = fmt.Sscan(rest, &kib)
	return kib
}

// restingOrders counts the orders of all books.
func restingOrders(x *Exchange) (orders int) {
	for no := uint32(1); no <= x.markets.used; no++ {
		orders += int(x.markets.at(no).book.Orders)
	}
	return orders
}
