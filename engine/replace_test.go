package engine

import (
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestReplaceFields: a Place names the order that it replaces, whatever the id, also after encoding
// and decoding. Other Kinds replace nothing.
func TestReplaceFields(t *testing.T) {
	for _, id := range []OrderID{{}, {1}, {19: 1}, {20: 1}, {31: 1}, {3: 1, 28: 7}} {
		c := Command{Kind: Place, Market: 1, Size: 1}
		c.Replace(OrderID{9, 18: 9, 27: 9, 31: 9})
		c.Replace(id)
		f, back := Frame{Engine: Version, Commands: []Command{c}, Ends: []uint32{0}}, Frame{}
		f.Encode(Hash{})
		if err := DecodeFrame(f.Bytes, &back); err != nil {
			t.Fatal(err)
		}
		for _, c := range []Command{c, back.Commands[0]} {
			got, is := c.Replaced()
			if got != id || is != (id != OrderID{}) {
				t.Errorf("%x: got %x, %t", id, got, is)
			}
			c.Kind = Link
			if got, is := c.Replaced(); is || got != (OrderID{}) {
				t.Errorf("a Link replaces %x", got)
			}
		}
		c.Replace(OrderID{})
		if c.Address != (Address{}) || c.Holder != (Address{}) {
			t.Errorf("%x: %x %x are left", id, c.Address, c.Holder)
		}
	}
}

// TestReplaceIsCancelAndPlace: a Place that replaces an order has the Events and the Digest of a
// Cancel of that order, followed by the same Place without replacement. If that Place is refused,
// neither happens.
func TestReplaceIsCancelAndPlace(t *testing.T) {
	checks(t, 300)
	taken, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		draw := fromRapid(t)
		x := newExchange(1, 8)
		h := record(newDeck(draw), x, 1+draw(100), 1)
		y := newExchange(2, 8)
		for i := range h.commands {
			c, want := h.commands[i], h.events[i]
			id, is := c.Replaced()
			last := &want[len(want)-1]
			if !is || last.Reject == RejectReplaced || last.Reject == RejectDuplicate {
				y.Apply(&c, h.at(i), h.times[i], nil)
				continue
			}
			single, gone := c, Command{Kind: Cancel, Owner: c.Owner, ID: id}
			single.Replace(OrderID{})
			parted := y
			if last.Kind == Rejected { // y must keep the order for the next Commands
				parted = newExchange(3, 8)
				for j := range i {
					parted.Apply(&h.commands[j], h.at(j), h.times[j], nil)
				}
				y.Apply(&c, h.at(i), h.times[i], nil)
			}
			var got []Event
			if last.Reject != RejectWallet && last.Reject != RejectLink && last.Reject != RejectRecheck {
				got = parted.Apply(&gone, h.at(i), h.times[i], nil)
			}
			got = parted.Apply(&single, h.at(i), h.times[i], got)
			if last.Kind == Rejected {
				got = got[len(got)-1:]
				refused++
			} else {
				taken++
			}
			if !slices.Equal(got, want) || last.Kind != Rejected && y.Digest() != h.digests[i] {
				t.Fatalf("#%d: %s\ngot%s\nwant%s", h.at(i), brief(&c), briefly(got), briefly(want))
			}
		}
		if y.Digest() != x.Digest() {
			t.Fatal("another digest in the end")
		}
	})
	if min(taken, refused) < 10 {
		t.Errorf("%d orders replaced others, %d were refused", taken, refused)
	}
}

// TestReplaceAtLimits: the replaced order does not count towards the limits of its wallet and its
// market when the new order is checked.
func TestReplaceAtLimits(t *testing.T) {
	if auditing {
		t.Skip("an audit after each of 75,000 orders takes too long")
	}
	s := newStage(16, 100, 100)
	for w := 1; w <= 8; w++ {
		s.apply(Command{Kind: Deposit, Address: Address{byte(w)}, Cash: MaxAmount})
	}
	for w := WalletNo(1); w <= 7; w++ {
		most := min(MaxWalletOrders, MaxMarketOrders-int(w-1)*MaxWalletOrders)
		if no := s.open(w, 1, most); no != Accepted {
			t.Fatalf("wallet %d: rejected %d", w, no)
		}
	}
	first := s.all[len(s.all)-MaxMarketOrders].ID
	try := func(c Command, old OrderID, want Reject) {
		t.Helper()
		c.Replace(old)
		if no := s.repeat(1, c); no != want {
			t.Errorf("%+v: rejected %d, want %d", c, no, want)
		}
		if err := audit(s.x); err != nil {
			t.Error(err)
		}
	}
	order := Command{Wallet: 1, Market: 1, Size: Lot, Cash: 2000}
	try(order, OrderID{}, RejectWalletOrders)
	try(order, first, Accepted) // the wallet and the market are full
	second := s.all[len(s.all)-1].ID
	order.Market = 2
	try(order, second, Accepted)
	third := s.all[len(s.all)-1].ID
	if no := s.open(8, 1, 1); no != Accepted { // in the place that the replaced order had
		t.Errorf("rejected %d", no)
	}
	order.Market = 1
	try(order, third, RejectMarketOrders) // the replaced order was in another market
	if h, _ := s.x.seen.resting(&s.x.orders, &third, 0); h == 0 {
		t.Error("the refused order has replaced another")
	}
}

// replacing draws the next n Commands. In place of half the cancels there are orders that replace
// the orders to be canceled.
func (m *mixed) replacing(n int) []Command {
	all, like := m.stream(n), Command{}
	for i := range all {
		c := &all[i]
		if c.Kind == Place {
			like = *c
		} else if like.Kind == Place && i%2 == 0 {
			id, owner := c.ID, c.Owner
			*c = like
			c.Wallet, c.Owner = owner, owner
			binary.LittleEndian.PutUint64(c.ID[8:], m.dice.next())
			c.Replace(id)
			m.ids, m.owners = append(m.ids, c.ID), append(m.owners, owner)
		}
	}
	return all
}

// TestReplaceAllocatesNothing: the engine allocates no memory for orders that replace others,
// whether accepted or refused.
func TestReplaceAllocatesNothing(t *testing.T) {
	if auditing {
		t.Skip("the audit allocates")
	}
	_, ends := steady(t, func() (*Exchange, *mixed, stream) {
		x := newExchange(1, 1<<10)
		m := newMixed(x, 3)
		return x, m, m.replacing
	})
	if ends[Cancelled] < 1000 || ends[Rejected] < 1000 {
		t.Errorf("events %v", ends)
	}
}

// TestTouchReplaces: for a Place that replaces an order, Touch guesses that order, in a small state
// and in a large one. Apply uses the guess, and has the same results without it.
func TestTouchReplaces(t *testing.T) {
	for _, markets := range []int{3, nearPositions/mixedWallets + 1} {
		x, y := NewExchange(1), NewExchange(1)
		m := newMixed(x, markets)
		newMixed(y, markets)
		seq, right, asked, rounds := Sequence(1<<20), 0, 0, 200
		if auditing {
			rounds = 10
		}
		for range rounds {
			all := m.replacing(TouchAhead)
			x.Touch(touched(all, 0))
			for i := range all {
				c, ahead := &all[i], x.hints
				if id, is := c.Replaced(); is {
					h, _, _ := x.seen.find(&x.orders, &id, x.seen.salt.tag(&id))
					if hint := ahead.pop(); h != 0 && hint == h {
						right++
					}
					asked += min(int(h), 1)
				}
				seq++
				xs, ys := x.Apply(c, seq, 1, nil), y.Apply(c, seq, 1, nil)
				if !slices.Equal(xs, ys) {
					t.Fatalf("touched:\n%+v\nuntouched:\n%+v", xs, ys)
				}
			}
		}
		if x.Digest() != y.Digest() {
			t.Errorf("digests %x, %x", x.Digest(), y.Digest())
		}
		if asked < 2*rounds || right < asked/2 { // other orders arrived or left after Touch
			t.Errorf("%d of %d hints are right", right, asked)
		}
	}
}

// TestTouchOddCancels: Touch counts a Cancel with fields of a Place as one Cancel.
func TestTouchOddCancels(t *testing.T) {
	x := NewExchange(1)
	m := newMixed(x, 3)
	for i, c := range m.stream(100) {
		x.Apply(&c, Sequence(1<<20+i), 1, nil)
	}
	odd := make([]Command, TouchAhead)
	for i := range odd {
		odd[i] = Command{Kind: Cancel, ID: m.ids[i], Address: Address{1}}
	}
	to := toucher{x: x}
	to.touch(touched(odd, 0))
	if to.cancels != TouchAhead {
		t.Errorf("%d cancels", to.cancels)
	}
}
