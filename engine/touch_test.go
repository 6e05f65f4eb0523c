package engine

import "testing"

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

// TestTouch: a touched Exchange does what one does that was not, and is not changed by it.
func TestTouch(t *testing.T) {
	x, y := NewExchange(1), NewExchange(1)
	m := newMixed(x, 3)
	newMixed(y, 3)
	var xs, ys []Event
	seq := Sequence(1 << 20)
	for range 200 {
		all := m.stream(2 * TouchAhead)
		var next []*Command
		for i := range all {
			next = append(next, &all[i])
		}
		before := x.Digest()
		x.Touch(next)
		x.Touch(nil)
		if x.Digest() != before {
			t.Fatal("touching changes the state")
		}
		for i := range all {
			seq++
			xs, ys = x.Apply(&all[i], seq, 1, xs), y.Apply(&all[i], seq, 1, ys)
		}
	}
	if x.Digest() != y.Digest() || len(xs) != len(ys) {
		t.Errorf("digests %x, %x; %d and %d Events", x.Digest(), y.Digest(), len(xs), len(ys))
	}
	if err := x.audit(); err != nil {
		t.Error(err)
	}
	all := m.stream(TouchAhead)
	next := make([]*Command, TouchAhead)
	for i := range all {
		next[i] = &all[i]
	}
	if n := mallocs(func() {
		for range 1000 {
			x.Touch(next)
		}
	}); n != 0 {
		t.Errorf("%d allocations in 1,000 times Touch", n)
	}
}
