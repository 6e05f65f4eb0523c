package engine

import (
	"slices"
	"testing"
)

// TestPeek peeks at levels without a page, as Touch does.
func TestPeek(t *testing.T) {
	var q Queues
	b := NewBook(10_000, &q)
	if l := b.Peek(1); l != nil {
		t.Errorf("an empty book has level %+v", *l)
	}
	h := b.Rest(200, Buy, Lot)
	if l := b.Peek(200); l == nil || l.Head != h {
		t.Errorf("level 200 is %+v, order %d rests there", l, h)
	}
	for _, index := range []uint32{1, 9_999, 10_000 << pageBits} {
		if l := b.Peek(index); l != nil {
			t.Errorf("level %d is %+v", index, *l)
		}
	}
}

// TestTouch: Touch changes nothing, and a touched Exchange behaves like an untouched one: whether
// the touched Commands come next, some of them, others, or the same in another order; in a small
// state and in a large one, which Touch handles differently.
func TestTouch(t *testing.T) {
	for _, markets := range []int{3, nearPositions/mixedWallets + 1} {
		x, y := NewExchange(1), NewExchange(1)
		m := newMixed(x, markets)
		newMixed(y, markets)
		if near := isNear(x); near != (markets == 3) {
			t.Fatalf("%d positions in %d markets: near is %t", x.positions.used, markets, near)
		}
		seq, rounds := Sequence(1<<20), 300
		if auditing {
			rounds = 10 // each Command is followed by a look at everything
		}
		for round := range rounds {
			all := m.stream(2 * TouchAhead)
			next := touched(all, round)
			before := x.Digest()
			x.Touch(next)
			if round%5 == 4 {
				x.Touch(nil)
			}
			if x.Digest() != before {
				t.Fatal("touching changes the state")
			}
			for i := range all {
				seq++
				xs, ys := x.Apply(&all[i], seq, 1, nil), y.Apply(&all[i], seq, 1, nil)
				if !slices.Equal(xs, ys) {
					t.Fatalf("touched:\n%+v\nuntouched:\n%+v", xs, ys)
				}
			}
		}
		if x.Digest() != y.Digest() {
			t.Errorf("digests %x, %x", x.Digest(), y.Digest())
		}
		if err := audit(x); err != nil {
			t.Error(err)
		}
		next := touched(m.stream(TouchAhead), 0)
		n := least(func() uint64 {
			return mallocs(func() {
				for range 1000 {
					x.Touch(next)
				}
			})
		})
		if n != 0 {
			t.Errorf("%d allocations in 1,000 times Touch", n)
		}
	}
}

// touched returns the Commands to touch: the coming ones, all but the first ones, the reverse, or
// each twice.
func touched(all []Command, round int) (next []*Command) {
	for i := range all {
		next = append(next, &all[i])
	}
	switch round % 4 {
	case 1:
		return next[3:]
	case 2:
		slices.Reverse(next)
	case 3:
		for i := range next {
			next[i] = &all[i/2]
		}
	}
	return next
}

// TestTouchHints: the hints of Touch are right for nearly all Commands, so Apply need not search.
func TestTouchHints(t *testing.T) {
	x := NewExchange(1)
	m := newMixed(x, nearPositions/mixedWallets+1)
	seq, right, asked, rounds := Sequence(1<<20), 0, 0, 100
	if auditing {
		rounds = 25
	}
	for round := range rounds {
		all := m.stream(TouchAhead)
		x.Touch(touched(all, 0))
		if round > 0 && int(x.hints.count) != len(all) {
			t.Fatalf("%d hints for %d Commands", x.hints.count, len(all))
		}
		for i := range all {
			c, ahead := &all[i], x.hints
			hint := ahead.pop()
			want := x.position(c.Wallet, c.Market)
			if c.Kind == Cancel {
				want, _, _ = x.seen.find(&x.orders, &c.ID, x.seen.salt.tag(&c.ID))
			}
			if want != 0 {
				asked++
			}
			if want != 0 && hint == want {
				right++
			}
			seq++
			x.Apply(c, seq, 1, nil)
			if round > 0 && int(x.hints.next) != i+1 {
				t.Fatalf("Command %d has taken hint %d", i, x.hints.next)
			}
		}
	}
	// What the Commands before it place or fill was not there to be touched, or not yet gone.
	if asked < 5*rounds || right < asked*9/10 {
		t.Errorf("%d of %d hints are right", right, asked)
	}
}

// TestTouchGone cancels an order twice, touched once: when the second one comes, the record is
// still there and the order is not.
func TestTouchGone(t *testing.T) {
	x := NewExchange(1)
	m := newMixed(x, 1)
	for seq := Sequence(1 << 20); ; seq += 3 {
		c := m.stream(1)[0]
		if events := x.Apply(&c, seq, 1, nil); events[len(events)-1].Kind != Placed {
			continue
		}
		gone := Command{Kind: Cancel, Owner: c.Owner, ID: c.ID}
		x.Touch([]*Command{&gone, &gone})
		once, again := x.Apply(&gone, seq+1, 1, nil), x.Apply(&gone, seq+2, 1, nil)
		if once[0].Kind != Cancelled || again[0].Reject != RejectNotFound {
			t.Errorf("once: %+v\nagain: %+v", once, again)
		}
		return
	}
}

// TestTouchSteps touches valid and invalid Commands in a small state and in a large one: nothing
// panics. Touch would hide a panic and fetch less.
func TestTouchSteps(t *testing.T) {
	for _, markets := range []int{1, nearPositions/mixedWallets + 1} {
		x := NewExchange(1)
		v := newVaried(x, markets)
		end := Time(4000)
		if auditing {
			end = 1000
		}
		for at := Time(0); at < end; {
			all := v.stream(TouchAhead)
			if x.orders.used != 0 {
				(&toucher{x: x}).touch(touched(all, 0))
				odd := slices.Clone(all)
				for i := range odd {
					c := &odd[i]
					*[]*Size{&c.Size, new(Size)}[i%2] = 0
					c.Market, c.Wallet = c.Market*MarketNo(i%3), c.Wallet+WalletNo(i%5*1000)
					c.Outcome, c.Kind = c.Outcome+Outcome(i%7/6), c.Kind+Kind(i%11/10)
					c.Side += Side(i % 13 / 12)
				}
				(&toucher{x: x}).touch(touched(odd, 0))
			}
			for i := range all {
				at++
				x.Apply(&all[i], Sequence(1<<20+at), at, nil)
			}
		}
	}
}

// TestTouchRefused: each Place and each Cancel uses its own hint, even behind refused Commands and
// other Kinds.
func TestTouchRefused(t *testing.T) {
	x := NewExchange(1)
	m := newMixed(x, nearPositions/mixedWallets+1)
	seq := Sequence(1 << 20)
	apply := func(c Command) Event {
		seq++
		events := x.Apply(&c, seq, 1, nil)
		return events[len(events)-1]
	}
	var rests Command
	for rests.Kind == 0 {
		if c := m.stream(1)[0]; apply(c).Kind == Placed {
			rests = c
		}
	}
	fresh := rests
	fresh.ID[0]++
	nobody, nowhere, nothing, stranger := fresh, fresh, fresh, fresh
	nobody.Wallet, nowhere.Market, nothing.Size, stranger.Owner = 1<<30, 1<<30, 0, 1<<30
	next := []Command{
		nobody, {Kind: Advance}, {Kind: Place - 1}, nowhere, {Kind: SetMode}, {Kind: Cancel + 1},
		nothing, rests, stranger, {Kind: Cancel, ID: OrderID{1}},
		fresh, {Kind: Cancel, ID: rests.ID, Owner: rests.Owner},
	}
	x.Touch(touched(next, 0))
	position := x.position(fresh.Wallet, fresh.Market)
	order, _, _ := x.seen.find(&x.orders, &rests.ID, x.seen.salt.tag(&rests.ID))
	taken := uint32(0)
	for i := range next {
		c := &next[i]
		if c.Kind == Place || c.Kind == Cancel {
			taken++
		}
		want, ahead := map[int]uint32{10: position, 11: order}[i], x.hints
		if i >= 10 && (want == 0 || ahead.pop() != want) {
			t.Errorf("Command %d will not take %d, but %d of %v", i, want, x.hints.next, x.hints)
		}
		refused := apply(*c).Kind == Rejected
		good := i >= 10 || c.Kind == Advance || c.Kind == SetMode
		if want := !good; refused != want || x.hints.next != taken {
			t.Errorf("Command %d: refused is %t, %d hints taken, want %t, %d", i, refused,
				x.hints.next, want, taken)
		}
	}
	apply(fresh)
	if x.hints.next != taken || x.hints.count != taken {
		t.Errorf("%d of %d hints taken by %d", x.hints.next, x.hints.count, taken)
	}
	if x.Touch(nil); x.hints != (hints{}) {
		t.Errorf("hints that nobody left: %v", x.hints)
	}
}

// TestTouchFar: a Place may get the number of an order, where there are far fewer positions.
func TestTouchFar(t *testing.T) {
	x := NewExchange(1)
	m := newMixed(x, 1)
	var last Command
	for seq := Sequence(1 << 20); x.orders.used < 2*slabPage; seq++ {
		c := m.stream(1)[0]
		if c.Kind == Place && c.Type == GTC && x.Apply(&c, seq, 1, nil)[0].Kind == Placed {
			last = c
		}
	}
	gone, next := Command{Kind: Cancel, ID: last.ID, Owner: last.Owner}, last
	next.ID[0]++
	x.Touch([]*Command{&gone})
	if ahead := x.hints; ahead.pop() <= x.positions.used {
		t.Fatalf("hints %v, %d positions", x.hints, x.positions.used)
	}
	if e := x.Apply(&next, 1<<21, 1, nil)[0]; e.Kind != Placed || e.Wallet != next.Wallet {
		t.Errorf("%+v", e)
	}
}

// TestTouchUsed: Apply uses right hints without a search: the test removes the entries that a
// search would find.
func TestTouchUsed(t *testing.T) {
	if auditing {
		t.Skip("the audit would find what is taken away here")
	}
	x := NewExchange(1)
	m := newMixed(x, nearPositions/mixedWallets+1)
	c := m.stream(1)[0]
	for ; c.Kind != Place || x.Apply(&c, 1<<20, 1, nil)[0].Kind != Placed; c = m.stream(1)[0] {
	}
	next, gone := c, Command{Kind: Cancel, ID: c.ID, Owner: c.Owner}
	next.ID[0]++
	x.Touch([]*Command{&next, &gone})
	tag, number := positionTag(c.Wallet, c.Market), x.position(c.Wallet, c.Market)
	x.index.remove(entryOf(tag, number))
	x.seen.salt.left++
	positions := x.positions.used
	if e := x.Apply(&next, 1<<20+1, 1, nil)[0]; e.Kind != Placed || x.positions.used != positions {
		t.Errorf("%d positions instead of %d: %+v", x.positions.used, positions, e)
	}
	if e := x.Apply(&gone, 1<<20+2, 1, nil)[0]; e.Kind != Cancelled {
		t.Errorf("%+v", e)
	}
}

// TestLeaving: the placement that one more will push out is the oldest, and so on, and none while
// there is room.
func TestLeaving(t *testing.T) {
	s := seen{table: newTable(), window: 3, salt: newSalt(1)}
	for n := uint32(1); n <= 8; n++ {
		for ahead := range s.window {
			want := uint32(0)
			if n+ahead > s.window {
				want = n + ahead - s.window // their tags are their numbers
			}
			if got := s.leaving(ahead); got != want {
				t.Errorf("%d placed: %d more push out %d, want %d", n-1, ahead+1, got, want)
			}
		}
		if s.ring.used < s.window {
			s.at = s.ring.next()
		} else {
			s.at = s.at%s.window + 1
		}
		s.ring.at(s.at).tag = n
	}
}
