package engine

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestFullWallet: a wallet with as many open orders as it may have still trades, with orders that
// do not rest.
func TestFullWallet(t *testing.T) {
	if auditing {
		t.Skip("an audit after each of 10,000 orders takes too long")
	}
	s := newStage(16, 100, 100)
	s.fund(1000*Unit, 1000*Unit)
	if no := s.open(1, 2, MaxWalletOrders); no != Accepted {
		t.Fatalf("rejected %d", no)
	}
	s.repeat(1, Command{Wallet: 2, Market: 1, Side: Sell, Size: 5 * Unit, Cash: 2 * Unit})
	buy := Command{Wallet: 1, Market: 1, Size: Unit, Cash: Unit / 2}
	for typ, want := range map[OrderType]Reject{
		GTC: RejectWalletOrders, FOK: Accepted, FAK: Accepted,
	} {
		buy.Type = typ
		if no := s.repeat(1, buy); no != want {
			t.Errorf("type %d: rejected %d, want %d", typ, no, want)
		}
	}
	if err := audit(s.x); err != nil {
		t.Error(err)
	}
}

// TestFairAgainstFractions: assertFair stops what is worse than the signature beyond the tolerance
// of the order's type, and nothing else.
func TestFairAgainstFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ticks := rapid.SampledFrom([]int64{10, 100, 200, 400, 1000, 10_000}).Draw(t, "ticks")
		c := Command{
			Type: OrderType(rapid.IntRange(0, 3).Draw(t, "type")),
			Side: Side(rapid.IntRange(0, 1).Draw(t, "side")),
			Size: Size(rapid.Int64Range(1, int64(MaxOrder)).Draw(t, "size")),
			Cash: Cash(rapid.Int64Range(1, MaxAmount).Draw(t, "cash")),
		}
		filled := int64(c.Size)
		if c.Side == Buy && c.Type > GTD { // a budget may get more than its size
			filled <<= rapid.IntRange(0, 12).Draw(t, "more")
		}
		// What is just allowed: filled * cash / size, one base unit or a fiftieth of a tick a share off.
		fair := big.NewRat(filled, int64(c.Size))
		fair.Mul(fair, big.NewRat(int64(c.Cash), 1))
		off := big.NewRat(filled, int64(c.Size))
		if c.Type > GTD {
			off = big.NewRat(filled, 50*ticks)
		}
		if c.Side == Sell {
			off.Neg(off)
		}
		fair.Add(fair, off)
		limit := floorRat(fair)
		if c.Side == Sell {
			limit = -floorRat(fair.Neg(fair))
		} else {
			limit = min(limit, int64(c.Cash))
		}
		try := func(cash int64) (fine bool) {
			if cash < 0 {
				return true
			}
			defer func() { fine = recover() == nil }()
			k := taker{c: &c, filled: Size(filled), cash: cash,
				market: &market{book: Book{ticks: uint32(ticks)}}}
			k.assertFair()
			return true
		}
		worse := limit + 1
		if c.Side == Sell {
			worse = limit - 1
		}
		if !try(max(limit, 0)) {
			t.Fatalf("%+v, %d for %d: is fair", c, limit, filled)
		}
		if worse >= 0 && try(worse) {
			t.Fatalf("%+v, %d for %d: is not fair", c, worse, filled)
		}
	})
}

// TestReceiptOf folds the Events of orders that end in each way.
func TestReceiptOf(t *testing.T) {
	fill := func(size Size, p Price, o Outcome, fee Cash) Event {
		return Event{Kind: Filled, Size: size, Price: p, Outcome: o, Fee: fee, Market: 9, Wallet: 8}
	}
	end := func(kind EventKind, why Reason, left Size) Event {
		return Event{Kind: kind, Reason: why, Remaining: left, Market: 3, Wallet: 4}
	}
	buy, sell := Command{Kind: Place}, Command{Kind: Place, Side: Sell, Outcome: 1}
	for name, c := range map[string]struct {
		c      *Command
		events []Event
		want   Receipt
	}{
		"rests": {&buy, []Event{end(Placed, 0, 5*Unit)}, Receipt{Status: Live, Remaining: 5 * Unit}},
		"rests in part": {&buy,
			[]Event{fill(2*Unit, 4000, 0, 10), fill(Unit, 6000, 1, 20), end(Placed, 0, Unit)},
			Receipt{Status: Live, Making: 1_200_000, Taking: 3 * Unit, Remaining: Unit, Fee: 30,
				Trades: 1}},
		"matched": {&sell,
			[]Event{fill(2*Unit, 4000, 0, 10), fill(Unit, 5000, 1, 0), end(Completed, 0, 0)},
			Receipt{Status: Matched, Making: 3 * Unit, Taking: 1_700_000, Fee: 10, Trades: 2}},
		"matched in part": {&sell,
			[]Event{fill(Unit, 5000, 1, 0), end(Completed, Unfilled, Unit)},
			Receipt{Status: Matched, Reason: Unfilled, Making: Unit, Taking: Unit / 2, Remaining: Unit,
				Trades: 1}},
		"met itself": {&buy, []Event{end(Cancelled, SelfTrade, 7), end(Completed, SelfTrade, Unit)},
			Receipt{Status: Canceled, Reason: SelfTrade, Remaining: Unit}},
		"met itself later": {&buy,
			[]Event{fill(Unit, 5000, 0, 0), end(Completed, SelfTrade, Unit)},
			Receipt{Status: Canceled, Reason: SelfTrade, Making: Unit / 2, Taking: Unit,
				Remaining: Unit, Trades: 1}},
		"rejected": {&buy, []Event{end(Cancelled, SelfTrade, 7),
			{Kind: Rejected, Reject: RejectFAK, Market: 3, Wallet: 4}}, Receipt{Reject: RejectFAK}},
	} {
		c.want.Sequence, c.want.Time, c.want.Market, c.want.Wallet = 1, 2, 3, 4
		if got := ReceiptOf(c.c, 1, 2, c.events); got != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, c.want)
		}
	}
}

// TestFairByFar: what is worse than signed by far, so that the products differ above 64 bits.
func TestFairByFar(t *testing.T) {
	for _, side := range []Side{Buy, Sell} {
		c := Command{Type: GTC, Side: side, Size: MaxOrder, Cash: Cash(MaxOrder / 2)}
		k := taker{c: &c, filled: MaxOrder, cash: 0, market: &market{book: Book{ticks: 100}}}
		if side == Buy {
			k.filled, k.cash = Lot, int64(c.Cash)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("side %d: %d for %d is fair", side, k.cash, k.filled)
				}
			}()
			k.assertFair()
		}()
	}
}

// TestLastUnit: what is free to the last base unit is enough, and one less is not, with a fee and
// without.
func TestLastUnit(t *testing.T) {
	for _, fee := range []Fee{{}, {Rate: 441, Exponent: 1}, {Rate: MaxFeeRate}} {
		for _, short := range []int64{0, 1} {
			for side, need := range []int64{int64(Cost(Unit, 5000) + fee.most(Unit, 5000)), Unit} {
				x, seq := NewExchange(1), Sequence(0)
				apply := func(c Command) Event {
					seq++
					events := x.Apply(&c, seq, 1, nil)
					return events[len(events)-1]
				}
				l := &Listing{Tick: 100, Open: true, Tokens: [2]Token{{1}, {2}}, Fee: fee}
				apply(Command{Kind: List, Listing: l})
				pay := Command{Kind: Deposit, Address: Address{1}, Cash: Cash(need - short)}
				if Side(side) == Sell {
					pay.Market, pay.Size = 1, Size(need-short)
				}
				apply(pay)
				e := apply(Command{Kind: Place, Side: Side(side), Market: 1, Wallet: 1, Owner: 1,
					Size: Unit, Cash: Unit / 2, ID: OrderID{1}})
				want := Event{Kind: Placed}
				if short != 0 {
					want.Kind, want.Reject, want.Args = Rejected, RejectBalance,
						[3]int64{need - short, 0, need}
				}
				if e.Kind != want.Kind || e.Reject != want.Reject || e.Args != want.Args {
					t.Errorf("side %d, fee %v, %d short: %+v, want %+v", side, fee, short, e, want)
				}
			}
		}
	}
}
