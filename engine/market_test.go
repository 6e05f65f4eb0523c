package engine

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestAdjustIsInvisible trades in a market whose tick is refined during the test, and in one with
// the fine tick from the start: both yield the same Events.
func TestAdjustIsInvisible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		coarse := rapid.SampledFrom([]Price{1000, 100, 50}).Draw(t, "coarse")
		fine := rapid.SampledFrom([]Price{25, 10, 1}).Draw(t, "fine")
		if coarse%fine != 0 {
			fine = 1
		}
		s, other := newStage(Window, coarse), newStage(Window, fine)
		s.fund(500*Unit, 100*Unit)
		other.fund(500*Unit, 100*Unit)
		for _, tick := range []Price{coarse, fine} {
			s.ticks[0] = tick
			for range rapid.IntRange(1, 40).Draw(t, "commands") {
				c := s.draw(t)
				if got, want := s.apply(c), other.apply(c); !slices.Equal(got, want) {
					t.Fatalf("%+v\ngot  %+v\nwant %+v", c, got, want)
				}
			}
			l := s.x.markets.known(1).listing()
			l.Tick = fine
			adjust := Command{Kind: Adjust, Market: 1, Listing: &l}
			if e := s.apply(adjust)[0]; e.Kind != Adjusted {
				t.Fatalf("refused: %+v", e)
			}
			other.apply(adjust)
			if err := audit(s.x); err != nil {
				t.Fatal(err)
			}
		}
		if s.x.Digest() != other.x.Digest() {
			t.Fatal("the same market, another digest")
		}
	})
}

// TestCoarsening: a tick is coarsened if and only if all resting prices lie on it.
func TestCoarsening(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStage(Window, 1)
		s.fund(500*Unit, 100*Unit)
		step := rapid.SampledFrom([]Price{1, 10, 25, 50, 100, 1000}).Draw(t, "step")
		for range rapid.IntRange(1, 8).Draw(t, "orders") {
			c := Command{Kind: Place, Market: 1, Wallet: 1, Owner: 1, Seen: s.seq, Size: Unit}
			c.Outcome = Outcome(rapid.IntRange(0, 1).Draw(t, "outcome"))
			n := rapid.IntRange(1, max(1, 4000/int(step))).Draw(t, "price")
			c.Cash = Cost(c.Size, Price(n)*step)
			binary.BigEndian.PutUint64(c.ID[:], uint64(s.seq+1))
			s.apply(c)
		}
		for _, tick := range []Price{10, 25, 50, 100, 1000} {
			fits := true
			for h := uint32(1); h <= s.x.orders.used; h++ {
				fits = fits && s.x.orders.at(h).price%tick == 0
			}
			l := s.x.markets.known(1).listing()
			l.Tick = tick
			e := s.apply(Command{Kind: Adjust, Market: 1, Listing: &l})[0]
			if fits != (e.Kind == Adjusted) || !fits && e.Reject != RejectRules {
				t.Fatalf("tick %v fits: %v, got %+v", tick, fits, e)
			}
			if err := audit(s.x); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// idleMarkets is as many as the largest exchange of the kind lists.
const idleMarkets = 165_000

// listMany lists n markets with names that look random.
func listMany(n int) *Exchange {
	x, d := NewExchange(1), dice(1)
	l := &Listing{Tick: 10, MinSize: 5 * Unit, Open: true}
	c := Command{Kind: List, Listing: l}
	events := make([]Event, 0, 1)
	for i := range n {
		l.Group = uint64(i / 4)
		for _, name := range []*[32]byte{
			(*[32]byte)(&l.Condition), (*[32]byte)(&l.Tokens[0]), (*[32]byte)(&l.Tokens[1])} {
			for at := 0; at < 32; at += 8 {
				binary.LittleEndian.PutUint64(name[at:], d.next())
			}
		}
		events = x.Apply(&c, Sequence(i+1), 1, events[:0])
		if events[0].Kind != Listed || events[0].Market != MarketNo(i+1) {
			panic(fmt.Sprintf("BUG: market %d: %+v", i, events[0]))
		}
	}
	return x
}

// TestIdleMarkets measures the memory of a market without orders.
func TestIdleMarkets(t *testing.T) {
	if auditing {
		t.Skip("an audit after each market takes too long")
	}
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	x := listMany(idleMarkets)
	used := int64(heap()) - int64(before)
	t.Logf("%d idle markets: %.1f MB, %d bytes each; a row is %d bytes", idleMarkets,
		float64(used)/1e6, used/idleMarkets, unsafe.Sizeof(market{}))
	if used > 58e6 {
		t.Errorf("%d idle markets take %d bytes", idleMarkets, used)
	}
	runtime.KeepAlive(x)
}
