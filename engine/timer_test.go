package engine

import (
	"cmp"
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTimers arms and disarms at random: the next one due is that of a sorted list.
func TestTimers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newExchange(1, 4)
		var live []uint32 // sorted
		var ranks [4]uint64
		least := func(a, b uint32) int {
			o, p := x.orders.at(a), x.orders.at(b)
			return cmp.Or(cmp.Compare(o.expiry, p.expiry), cmp.Compare(o.market, p.market),
				cmp.Compare(o.rank, p.rank))
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(live) > 0 && rapid.IntRange(0, 9).Draw(t, "what") < 4 {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				x.timers.disarm(&x.orders, x.orders.at(live[i]))
				live = slices.Delete(live, i, i+1)
			} else {
				h := x.orders.next()
				o := x.orders.at(h)
				o.expiry = Time(rapid.IntRange(1, 9).Draw(t, "expiry"))
				o.market = MarketNo(rapid.IntRange(1, 3).Draw(t, "market"))
				ranks[o.market]++
				o.rank = ranks[o.market]
				x.timers.arm(&x.orders, h, o)
				live = append(live, h)
				slices.SortFunc(live, least)
			}
			due := Time(0)
			if len(live) > 0 {
				due = x.orders.at(live[0]).expiry
				if h := *x.timers.heap.at(1); h != live[0] {
					t.Fatalf("order %d is next, want %d", h, live[0])
				}
			}
			if x.Due() != due || int(x.timers.n) != len(live) {
				t.Fatalf("%d timers, due %d; want %d, %d", x.timers.n, x.Due(), len(live), due)
			}
			for _, h := range live {
				if *x.timers.heap.at(x.orders.at(h).timer) != h {
					t.Fatalf("order %d does not know its place", h)
				}
			}
		}
	})
}

// TestAdvanceBound: one Advance expires AdvanceOrders of what is due; those that follow do the
// rest, and an order that is not due stays.
func TestAdvanceBound(t *testing.T) {
	if auditing {
		t.Skip("an audit after each of 1,100 orders takes too long")
	}
	const over = 30
	s := newStage(16, 100, 100)
	s.apply(Command{Kind: Deposit, Address: Address{1}, Cash: MaxAmount})
	bid := Command{Wallet: 1, Market: 1, Size: Unit, Cash: Unit / 10, Type: GTD}
	place := func(n int, market MarketNo, expiry Time) {
		t.Helper()
		bid.Market, bid.Expiry = market, expiry
		if no := s.repeat(n, bid); no != Accepted {
			t.Fatalf("rejected %d", no)
		}
	}
	place(over, 1, 6000)
	place(AdvanceOrders, 2, 5000)
	place(1, 1, 7000)
	for i, want := range []struct {
		expired int
		due     Time
	}{{AdvanceOrders, 6000}, {over, 7000}, {0, 7000}} {
		if i == 0 && s.x.Due() != 5000 {
			t.Errorf("due at %d", s.x.Due())
		}
		s.seq++
		events := s.x.Apply(&Command{Kind: Advance}, s.seq, 6999, nil)
		last := events[len(events)-1]
		if len(events) != want.expired+1 || last.Kind != Advanced ||
			last.Size != Size(want.expired) || s.x.Due() != want.due {
			t.Errorf("advance %d: %d events, %+v, then due at %d", i, len(events), last, s.x.Due())
		}
		if !slices.IsSortedFunc(events[:want.expired], func(a, b Event) int {
			return cmp.Compare(a.First, b.First)
		}) {
			t.Errorf("advance %d: not in the order of placing", i)
		}
	}
	if err := audit(s.x); err != nil {
		t.Error(err)
	}
}

// TestControlAllocatesNothing: in steady state neither do orders that expire, nor requests that are
// remembered and forgotten, nor cancelling all.
func TestControlAllocatesNothing(t *testing.T) {
	if auditing {
		t.Skip("the audit allocates")
	}
	s := newStage(64, 100)
	s.apply(Command{Kind: Deposit, Address: Address{1}, Cash: MaxAmount})
	events, now := make([]Event, 0, 64), Time(0)
	c := new(Command)
	run := func(next Command) {
		s.seq++
		*c = next
		binary.BigEndian.PutUint64(c.ID[:], uint64(s.seq))
		if c.Kind == CancelAll {
			c.ID = OrderID{}
		}
		events = s.x.Apply(c, s.seq, now, events[:0])
		if e := events[len(events)-1]; e.Kind == Rejected {
			t.Fatalf("%+v rejected: %d", *c, e.Reject)
		}
	}
	round := func() {
		now += 10_000
		for i := range Time(4) {
			run(Command{Kind: Place, Type: GTD, Market: 1, Wallet: 1, Owner: 1, Seen: s.seq,
				Size: Unit, Cash: Unit / 10, Expiry: now + 10_000*(1+i)})
		}
		run(Command{Kind: Advance})
		run(Command{Kind: SplitTokens, Market: 1, Wallet: 1, Owner: 1, Size: Unit})
		run(Command{Kind: MergeTokens, Market: 1, Wallet: 1, Owner: 1, Size: Unit})
		if now%40_000 == 0 {
			run(Command{Kind: CancelAll, Wallet: 1, Owner: 1, Reason: ByOwner})
		}
	}
	for range 100 {
		round()
	}
	got := least(func() uint64 {
		return mallocs(func() {
			for range 100 {
				round()
			}
		})
	})
	if got != 0 {
		t.Errorf("%d allocations in 100 rounds", got)
	}
	if n := s.x.requests.all.used; n > 64 {
		t.Errorf("%d records for the requests of 12 rounds", n)
	}
}
