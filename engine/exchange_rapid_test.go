package engine

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// stage has markets and funded wallets, and draws Commands.
type stage struct {
	x     *Exchange
	seq   Sequence
	ids   []OrderID
	all   []Command
	ticks []Price
}

const stageWallets = 4

func newStage(window uint32, ticks ...Price) *stage {
	s := &stage{x: newExchange(uint64(window), window), ticks: ticks}
	for i, tick := range ticks {
		l := &Listing{Tick: tick, Open: true, MinSize: Lot}
		l.Condition[0], l.Tokens[0][0], l.Tokens[1][0] = byte(i+1), byte(2*i+1), byte(2*i+2)
		s.apply(Command{Kind: List, Listing: l})
	}
	return s
}

func (s *stage) fund(cash Cash, tokens Size) {
	for w := 1; w <= stageWallets; w++ {
		a := Address{byte(w)}
		s.apply(Command{Kind: Deposit, Address: a, Cash: cash})
		for m := range s.ticks {
			for o := range Outcome(2) {
				s.apply(Command{Kind: Deposit, Address: a, Size: tokens,
					Market: MarketNo(m + 1), Outcome: o})
			}
		}
	}
}

func (s *stage) apply(c Command) []Event {
	s.seq++
	s.all = append(s.all, c)
	return s.x.Apply(&c, s.seq, Time(s.seq), nil)
}

// draw makes a Place around the middle of the book, or a Cancel.
func (s *stage) draw(t *rapid.T) Command {
	w := WalletNo(rapid.IntRange(1, stageWallets).Draw(t, "wallet"))
	if len(s.ids) > 0 && rapid.IntRange(0, 9).Draw(t, "what") < 3 {
		return Command{Kind: Cancel, Owner: w, ID: rapid.SampledFrom(s.ids).Draw(t, "id")}
	}
	m := rapid.IntRange(1, len(s.ticks)).Draw(t, "market")
	tick := s.ticks[m-1]
	c := Command{Kind: Place, Market: MarketNo(m), Wallet: w, Owner: w, Seen: s.seq}
	c.Side = Side(rapid.IntRange(0, 1).Draw(t, "side"))
	c.Outcome = Outcome(rapid.IntRange(0, 1).Draw(t, "outcome"))
	n := rapid.IntRange(1, min(int(PriceOne/tick)-1, 12)).Draw(t, "price")
	if tick < 1000 { // around a half, so that both sides have room
		n += int(PriceOne/tick)/2 - 6
	}
	c.Size = Size(rapid.IntRange(1, 2000).Draw(t, "lots")) * Lot
	c.Cash = Cost(c.Size, Price(n)*tick)
	binary.BigEndian.PutUint64(c.ID[:], uint64(s.seq+1))
	if len(s.ids) > 0 && rapid.IntRange(0, 19).Draw(t, "again") == 0 {
		c.ID = rapid.SampledFrom(s.ids).Draw(t, "id")
	}
	s.ids = append(s.ids, c.ID)
	return c
}

// TestSmallWindow audits after every Command while placements fall out of the window.
func TestSmallWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStage(uint32(rapid.IntRange(1, 9).Draw(t, "window")), 25)
		s.fund(5000*Unit, 1000*Unit)
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			s.apply(s.draw(t))
			if err := audit(s.x); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestPlacementOrder: the same live orders and bound ids have another Digest if the ids were bound
// in another order, or if another number was forgotten: other ids are then forgotten next.
func TestPlacementOrder(t *testing.T) {
	run := func(window uint32, ids ...byte) *Exchange {
		s := newStage(window, 100, 100)
		s.fund(100*Unit, 0)
		for _, n := range ids {
			c := Command{Kind: Place, Wallet: 1, Owner: 1, Market: MarketNo(1 + n%2), Seen: s.seq,
				Size: Unit, Cash: Unit / 10, ID: OrderID{n}}
			s.apply(c)
			s.apply(Command{Kind: Cancel, Owner: 1, ID: c.ID})
		}
		if err := audit(s.x); err != nil {
			t.Fatal(err)
		}
		return s.x
	}
	first := run(4, 1, 2, 3)
	for name, other := range map[string]*Exchange{
		"another order":                 run(4, 2, 1, 3),
		"another order in the ring":     run(4, 3, 1, 2),
		"the same, after forgotten":     run(3, 4, 1, 2, 3),
		"the same, after two forgotten": run(3, 5, 4, 1, 2, 3),
	} {
		if other.Digest() == first.Digest() {
			t.Errorf("%s: the same digest", name)
		}
		if other.seen.ring.used != first.seen.ring.used {
			t.Errorf("%s: %d remembered", name, other.seen.ring.used)
		}
	}
	if run(4, 1, 2, 3).Digest() != first.Digest() {
		t.Error("the same, another digest")
	}
	two, three := run(3, 4, 1, 2, 3), run(3, 5, 4, 1, 2, 3)
	if two.Digest() == three.Digest() {
		t.Error("another number of forgotten ids: the same digest")
	}
}
