package engine

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestWorth compares payouts with big.Int arithmetic.
func TestWorth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := [2]int64{
			rapid.Int64Range(0, MaxSupply).Draw(t, "a"), rapid.Int64Range(0, MaxSupply).Draw(t, "b")}
		payout := Price(rapid.IntRange(0, int(PriceOne)).Draw(t, "payout"))
		sum := new(big.Int).Mul(big.NewInt(tokens[0]), big.NewInt(int64(payout)))
		sum.Add(sum, new(big.Int).Mul(big.NewInt(tokens[1]), big.NewInt(int64(PriceOne-payout))))
		want := sum.Div(sum, big.NewInt(int64(PriceOne))).Int64()
		if got := worth(tokens, payout); got != want {
			t.Fatalf("%v at %v: %d, want %d", tokens, payout, got, want)
		}
	})
}

// TestEverybodyIsPaid resolves a market and redeems every wallet, in any order, with any dust: the
// vault never falls short, and keeps less than a base unit for each of them and of what is outside.
func TestEverybodyIsPaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStage(16, 100)
		amount := func() Size { return Size(rapid.IntRange(1, 99_999).Draw(t, "amount")) }
		for w := 1; w <= stageWallets; w++ {
			a := Address{byte(w)}
			s.apply(Command{Kind: Deposit, Address: a, Cash: Unit})
			s.apply(Command{Kind: Deposit, Address: a, Market: 1, Size: amount(),
				Outcome: Outcome(w % 2)})
			s.apply(Command{Kind: SplitTokens, Wallet: WalletNo(w), Owner: WalletNo(w), Market: 1,
				Size: amount()})
			s.apply(Command{Kind: Withdraw, Address: a, Market: 1, Size: amount(), Outcome: 1})
		}
		payout := Price(rapid.IntRange(0, int(PriceOne)).Draw(t, "payout"))
		s.apply(Command{Kind: Resolve, Market: 1, Price: payout})
		for _, i := range rapid.Permutation([]int{1, 2, 3, 4}).Draw(t, "order") {
			w := WalletNo(i)
			e := s.apply(Command{Kind: RedeemTokens, Wallet: w, Owner: w, Market: 1})[0]
			if e.Kind != Redeemed || worth([2]int64{e.Args[0], e.Args[1]}, payout) != int64(e.Size) {
				t.Fatalf("%+v", e)
			}
			if err := audit(s.x); err != nil {
				t.Fatal(err)
			}
		}
		m := s.x.markets.known(1)
		outside := worth([2]int64{int64(m.external[0]), int64(m.external[1])}, payout)
		if rest := int64(m.vault) - outside; rest < 0 || rest > stageWallets {
			t.Fatalf("the vault holds %d, outside there is %d to pay", m.vault, outside)
		}
	})
}

// TestRequests remembers and forgets like a list that is searched from end to end, however Time
// jumps. Records are used again.
func TestRequests(t *testing.T) {
	type known struct {
		id    OrderID
		first Sequence
		at    Time
	}
	rapid.Check(t, func(t *rapid.T) {
		x, now := newExchange(1, 4), Time(1)
		var all []known
		most := 0
		for i := range rapid.IntRange(1, 300).Draw(t, "steps") {
			now += Time(rapid.SampledFrom([]int{0, 1, 7000, 60_000, 119_999, 120_000}).Draw(t, "ms"))
			id := OrderID{31: byte(rapid.IntRange(1, 12).Draw(t, "id"))}
			want, live := Sequence(0), 0
			for _, k := range all {
				if now-k.at < RequestWindow {
					live++
					if k.id == id {
						want = k.first
					}
				}
			}
			most = max(most, live)
			got := Sequence(0)
			if r := x.requests.known(&Command{ID: id}, now); r != nil {
				got = r.first
			}
			if got != want {
				t.Fatalf("step %d: bound by %d, want %d", i, got, want)
			}
			if want == 0 {
				x.digest += x.requests.remember(&Command{ID: id}, Sequence(i+1), now, 1)
				all = append(all, known{id, Sequence(i + 1), now})
			}
			if err := audit(x); err != nil {
				t.Fatal(err)
			}
		}
		if n := int(x.requests.all.used); n > most+1 {
			t.Fatalf("%d records, at most %d were remembered", n, most)
		}
	})
}

// TestSearchedRequests: an id that ingress has looked for in the index is accepted once for good.
// While the engine remembers it, also beyond RequestWindow, the engine answers; after that the
// index must have come as far as the forgotten requests, or the Command is sent back to it.
func TestSearchedRequests(t *testing.T) {
	s := newStage(1<<10, 100)
	s.fund(100*Unit, 0)
	split := func(name byte, now Time, seen Sequence) Event {
		c := Command{Kind: SplitTokens, ID: OrderID{name}, Market: 1, Wallet: 1, Owner: 1, Size: Unit,
			Seen: seen}
		s.seq++
		events := s.x.Apply(&c, s.seq, now, nil)
		return events[len(events)-1]
	}
	first := s.seq + 1
	if e := split(1, 1000, s.seq); e.Kind != Split {
		t.Fatalf("a new request: %+v", e)
	}
	for _, now := range []Time{1000, 1000 + RequestWindow, 1000 + 100*RequestWindow} {
		if e := split(1, now, 1); e.Reject != RejectDuplicate || e.First != first {
			t.Fatalf("the same at %d: %+v", now, e)
		}
	}
	second := s.seq + 1
	if e := split(2, 1000+101*RequestWindow, s.seq); e.Kind != Split { // forgets the first one
		t.Fatalf("the next request: %+v", e)
	}
	const late = 1000 + 102*RequestWindow
	if e := split(1, late, first-1); e.Reject != RejectRecheck || e.First != second-1 {
		t.Fatalf("an index that ends before the first one: %+v", e)
	}
	if e := split(3, late, second-1); e.Kind != Split {
		t.Fatalf("an index that holds all that is forgotten: %+v", e)
	}
	if err := audit(s.x); err != nil {
		t.Error(err)
	}
}

// TestRequestsLeave: after a burst every new request forgets some old ones, so that none pays for
// all.
func TestRequestsLeave(t *testing.T) {
	x := newExchange(1, 4)
	for i := range 100 {
		x.digest += x.requests.remember(&Command{ID: OrderID{byte(i), 1}}, Sequence(i+1), 1, 1)
	}
	for i := range 20 {
		c := Command{ID: OrderID{byte(i), 2}}
		x.digest += x.requests.remember(&c, Sequence(i+101), 1+RequestWindow, 1)
		if left, want := int(x.requests.table.used), max(100-requestsLeave*(i+1), 0)+i+1; left != want {
			t.Fatalf("after %d: %d remembered, want %d", i+1, left, want)
		}
	}
	if x.requests.known(&Command{ID: OrderID{99, 1}}, 1+RequestWindow) != nil {
		t.Error("one that is over is still known")
	}
	if err := audit(x); err != nil {
		t.Error(err)
	}
}
