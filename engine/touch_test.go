package engine

import (
	"slices"
	"testing"
)

// TestPeek looks for levels where none was made: Touch does, and would go no further if it failed.
func TestPeek(t *testing.T) {
	var q queues
	b := newBook(10_000, &q)
	if l := b.peek(1); l != nil {
		t.Errorf("an empty book has level %+v", *l)
	}
	h := b.rest(200, Buy, Lot)
	if l := b.peek(200); l == nil || l.head != h {
		t.Errorf("level 200 is %+v, order %d rests there", l, h)
	}
	for _, index := range []uint32{1, 9_999, 10_000 << pageBits} {
		if l := b.peek(index); l != nil {
			t.Errorf("level %d is %+v", index, *l)
		}
	}
}

// TestTouch: a touched Exchange does what one does that was not, and is not changed by it, whether
// what comes is what was touched, some of it, something else or the same in another order: few
// positions and many, which are touched in other ways.
func TestTouch(t *testing.T) {
	for _, markets := range []int{3, touchPositions/mixedWallets + 1} {
		x, y := NewExchange(1), NewExchange(1)
		m := newMixed(x, markets)
		newMixed(y, markets)
		if wide := x.positions.used > touchPositions; wide != (markets > 3) {
			t.Fatalf("%d positions in %d markets", x.positions.used, markets)
		}
		seq := Sequence(1 << 20)
		for round := range 300 {
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
		if err := x.audit(); err != nil {
			t.Error(err)
		}
		next := touched(m.stream(TouchAhead), 0)
		if n := mallocs(func() {
			for range 1000 {
				x.Touch(next)
			}
		}); n != 0 {
			t.Errorf("%d allocations in 1,000 times Touch", n)
		}
	}
}

// touched are the Commands to touch: those that come, those but for the first ones, those the other
// way round, or each twice.
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

// TestTouchHints: what Touch takes for the order and the position of a Command is what Apply then
// finds, so that it need not search.
func TestTouchHints(t *testing.T) {
	x := NewExchange(1)
	m := newMixed(x, touchPositions/mixedWallets+1)
	seq, right, asked := Sequence(1<<20), 0, 0
	for round := range 200 {
		all := m.stream(TouchAhead)
		x.Touch(touched(all, 0))
		if round > 0 && int(x.hints.count) != len(all) {
			t.Fatalf("%d hints for %d Commands", x.hints.count, len(all))
		}
		for i := range all {
			c, hint := &all[i], x.hints.refs[i]
			want := x.position(c.Wallet, c.Market)
			if c.Kind == Cancel {
				want, _, _ = x.find(&c.ID, x.seen.tag(&c.ID))
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
	if asked < 1000 || right < asked*9/10 {
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
