package engine

import "testing"

// TestTransitions goes from each state of a market to each other, by SetState and by Resolve, and
// checks whether the market accepts orders, and whether resting orders are cancelled.
func TestTransitions(t *testing.T) {
	paths := map[MarketState][]MarketState{Unopened: nil, Open: {Open}, Paused: {Open, Paused},
		Closed: {Closed}, Settled: {Settled}}
	taken := map[MarketState]Reject{Unopened: RejectUnopened, Open: Accepted, Paused: RejectPaused,
		Closed: RejectClosed, Settled: RejectClosed}
	may := func(from, to MarketState) bool {
		switch {
		case from == Settled, to < Unopened || to > Closed:
			return false
		case from == Closed:
			return to == Closed || to == Open
		}
		return true
	}
	for from, path := range paths {
		for to := MarketState(0); to <= Settled+1; to++ {
			x, seq := NewExchange(1), Sequence(0)
			do := func(c Command) Event {
				seq++
				all := x.Apply(&c, seq, 1, nil)
				return all[len(all)-1]
			}
			do(Command{Kind: List, Listing: &Listing{Tick: 100, Tokens: [2]Token{{1}, {2}}}})
			do(Command{Kind: Deposit, Address: Address{1}, Cash: 100 * Unit})
			for _, s := range path {
				if s == Settled {
					do(Command{Kind: Resolve, Market: 1, Price: PriceOne})
				} else {
					do(Command{Kind: SetState, Market: 1, State: s})
				}
				if s == Open {
					if e := do(Command{Kind: Place, Market: 1, Wallet: 1, Owner: 1, Size: Unit,
						Cash: Unit / 2, ID: OrderID{1}}); e.Kind != Placed {
						t.Fatalf("state %d: %+v", from, e)
					}
				}
			}
			rests, digest := x.accounts.at(1).open, x.Digest()
			e := do(Command{Kind: SetState, Market: 1, State: to})
			if good := may(from, to); good != (e.Kind == StateChanged) ||
				!good && (e.Reject != RejectState || x.Digest() != digest) {
				t.Errorf("from %d to %d: %+v", from, to, e)
			}
			now := from
			if may(from, to) {
				now = to
			}
			if now == Closed {
				rests = 0
			}
			if got := x.accounts.at(1).open; got != rests || x.markets.known(1).state != now {
				t.Errorf("from %d to %d: state %d, %d orders rest", from, to, x.markets.known(1).state, got)
			}
			if e := do(Command{Kind: Place, Market: 1, Wallet: 1, Owner: 1, Size: Unit,
				Cash: Unit / 2, ID: OrderID{2}, Seen: seq}); e.Reject != taken[now] {
				t.Errorf("an order in state %d: %+v", now, e)
			}
			if err := audit(x); err != nil {
				t.Error(err)
			}
		}
	}
}
