package engine

import (
	"slices"
	"testing"
)

// Pairs of histories that might lead to the same Digest, and Commands to apply after each of them.
// Their Sequences differ.
var twoWays = map[string]struct {
	a, b  func(s *stage)
	after func(s *stage) []Event
}{
	// One of the two orders rested and left again, the other was refused for good.
	"ranks": {
		a: func(s *stage) {
			s.send(Command{Wallet: 1, Cash: Unit / 2, Side: Sell}, 1, 2)
			s.send(Command{Wallet: 2, Cash: Unit / 2, PostOnly: true}, 1, 3)
		},
		b: func(s *stage) {
			s.send(Command{Wallet: 1, Cash: Unit / 2, Side: Sell}, 1, 2)
			s.send(Command{Wallet: 2, Cash: Unit / 4}, 1, 3)
			s.apply(Command{Kind: Cancel, Owner: 2, ID: OrderID{3}})
		},
		after: func(s *stage) []Event { return s.send(Command{Wallet: 2, Cash: Unit / 4}, 1, 4) },
	},
	// The wallet had orders in market 1 first, or in market 2.
	"lists": {
		a: func(s *stage) {
			s.send(Command{Wallet: 1, Cash: Unit / 4}, 1, 1)
			s.send(Command{Wallet: 1, Cash: Unit / 4}, 2, 2)
			s.send(Command{Wallet: 1, Cash: Unit / 4}, 1, 3)
			s.apply(Command{Kind: Cancel, Owner: 1, ID: OrderID{1}})
		},
		b: func(s *stage) {
			s.send(Command{Wallet: 1, Cash: Unit / 4}, 1, 1)
			s.apply(Command{Kind: Cancel, Owner: 1, ID: OrderID{1}})
			s.send(Command{Wallet: 1, Cash: Unit / 4}, 2, 2)
			s.send(Command{Wallet: 1, Cash: Unit / 4}, 1, 3)
		},
		after: func(s *stage) []Event {
			return s.apply(Command{Kind: CancelAll, Wallet: 1, Owner: 1, Reason: ByOwner})
		},
	},
	// Two orders expire at once, and their placements are forgotten.
	"timers": {
		a: func(s *stage) {
			s.send(Command{Wallet: 1, Cash: Unit / 4, Type: GTD, Expiry: 5000}, 1, 1)
			s.send(Command{Wallet: 1, Cash: Unit / 4, Type: GTD, Expiry: 5000}, 2, 2)
			s.send(Command{Wallet: 1, Cash: Unit / 4}, 1, 3)
		},
		b: func(s *stage) {
			s.send(Command{Wallet: 1, Cash: Unit / 4, Type: GTD, Expiry: 5000}, 2, 2)
			s.send(Command{Wallet: 1, Cash: Unit / 4, Type: GTD, Expiry: 5000}, 1, 1)
			s.send(Command{Wallet: 1, Cash: Unit / 4}, 1, 3)
		},
		after: func(s *stage) []Event { s.seq = 6000; return s.apply(Command{Kind: Advance}) },
	},
	// More requests come at once than one request forgets.
	"requests": {
		a: func(s *stage) {
			for i := range 2 * requestsLeave {
				s.split(byte(i), 1000)
			}
		},
		b: func(s *stage) {
			for i := range 2 * requestsLeave {
				s.split(byte(2*requestsLeave-1-i), 1000)
			}
		},
		after: func(s *stage) []Event { return s.split(99, 1000+RequestWindow) },
	},
	// Both remember the same number of requests, but one has forgotten one more.
	"forgotten requests": {
		a: func(s *stage) { s.split(1, 1000); s.split(2, 1000+RequestWindow) },
		b: func(s *stage) {
			s.apply(Command{Kind: SplitTokens, Market: 1, Wallet: 1, Owner: 1, Size: 1})
			s.split(2, 1000+RequestWindow)
		},
		after: func(s *stage) []Event { return s.split(3, 1000+RequestWindow) },
	},
}

// send places an order of a share.
func (s *stage) send(c Command, m MarketNo, id byte) []Event {
	c.Kind, c.Market, c.Owner, c.Size, c.ID, c.Seen = Place, m, c.Wallet, Unit, OrderID{id}, 1<<60
	return s.apply(c)
}

// split applies a split at a Time.
func (s *stage) split(id byte, now Time) []Event {
	s.seq++
	return s.x.Apply(&Command{Kind: SplitTokens, Market: 1, Wallet: 1, Owner: 1, Size: 1,
		ID: OrderID{id, 1}}, s.seq, now, nil)
}

// TestEqualDigestsBehaveAlike: if two histories lead to the same Digest, the same later Commands
// yield the same Events, apart from Sequences, and the same Digest again.
func TestEqualDigestsBehaveAlike(t *testing.T) {
	same := map[string]bool{}
	for name, ways := range twoWays {
		var before, after [2]Digest
		var happened [2][]Event
		for i, way := range []func(s *stage){ways.a, ways.b} {
			s := newStage(1, 100, 100)
			s.fund(100*Unit, 100*Unit)
			way(s)
			before[i] = s.x.Digest()
			happened[i] = ways.after(s)
			for j := range happened[i] {
				happened[i][j].First = 0
			}
			after[i] = s.x.Digest()
			if err := audit(s.x); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		same[name] = before[0] == before[1]
		if same[name] && (after[0] != after[1] || !slices.Equal(happened[0], happened[1])) {
			t.Errorf("%s: the same digest, then\n%x%s\n%x%s", name, after[0], briefly(happened[0]),
				after[1], briefly(happened[1]))
		}
	}
	for name, want := range map[string]bool{"lists": true, "timers": true, "ranks": false} {
		if same[name] != want {
			t.Errorf("%s: digests the same: %v, want %v", name, same[name], want)
		}
	}
}
