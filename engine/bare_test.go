package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// flatOrder is an order of the model of Bare: a slice, searched from its start.
type flatOrder struct {
	Arrival
	book, handle uint32
}

// meets reports whether two orders of one book trade.
func (o *flatOrder) meets(a *flatOrder) bool {
	if o.book != a.book || o.Side == a.Side {
		return false
	}
	return a.Side == Buy && o.Index <= a.Index || a.Side == Sell && o.Index >= a.Index
}

// TestBare replays random orders and cancels beside a slice of orders.
func TestBare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ticks := rapid.SampledFrom([]int{2, 10, 100, 400, 1000, 10_000}).Draw(t, "ticks")
		x, flat := NewBare(2, ticks), []flatOrder(nil)
		var fills []BareFill
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			touchBare(t, x, flat, uint32(ticks))
			if len(flat) > 0 && rapid.IntRange(0, 9).Draw(t, "what") < 4 {
				i := rapid.IntRange(0, len(flat)-1).Draw(t, "which")
				x.Cancel(flat[i].book, flat[i].handle)
				flat = slices.Delete(flat, i, i+1)
				continue
			}
			book := rapid.Uint32Range(0, 1).Draw(t, "book")
			a := Arrival{
				Index: rapid.Uint32Range(1, uint32(ticks-1)).Draw(t, "index"),
				Side:  Side(rapid.IntRange(0, 1).Draw(t, "side")),
				IOC:   rapid.Bool().Draw(t, "ioc"),
				Size:  Size(rapid.IntRange(1, 9).Draw(t, "size")),
			}
			fills = fills[:0]
			h := x.Place(book, a, &fills)
			want, left := flatPlace(&flat, flatOrder{a, book, h})
			if !slices.Equal(fills, want) {
				t.Fatalf("%+v met %+v, want %+v", a, fills, want)
			}
			if (h != 0) != (left > 0 && !a.IOC) {
				t.Fatalf("%+v with %d left: handle %d", a, left, h)
			}
			if h != 0 {
				a.Size = left
				flat = append(flat, flatOrder{a, book, h})
			}
			if x.Resting() != len(flat) {
				t.Fatalf("%d rest, want %d", x.Resting(), len(flat))
			}
		}
	})
}

// touchBare fetches orders by valid and invalid handles, and any levels.
func touchBare(t *rapid.T, x *Bare, flat []flatOrder, ticks uint32) {
	handles, ids := []uint32{0, x.queues.freed}, []uint32{0, 1, 1 << 31}
	var cancels []BareCancel
	for i := range flat {
		handles = append(handles, flat[i].handle)
		ids = append(ids, uint32(2+i))
		cancels = append(cancels, BareCancel{flat[i].book, flat[i].handle})
	}
	FetchHandles(handles, ids)
	FetchHandles(handles, nil)
	x.Fetch(handles, ids)
	x.Touch([]BareLevel{{0, rapid.Uint32Range(0, ticks).Draw(t, "touch")}, {1, 1}}, cancels)
}

// TestBareNear tests IsNear at its bounds, and fetches orders that lie in pages.
func TestBareNear(t *testing.T) {
	rest := func(x *Bare, orders int) (handles []uint32) {
		for range orders {
			handles = append(handles, x.Place(0, Arrival{Index: 1, Size: 1}, nil))
		}
		return handles
	}
	few, many := NewBare(nearMarkets, 10), NewBare(nearMarkets+1, 10)
	rest(few, nearOrders)
	if !few.IsNear() || many.IsNear() {
		t.Errorf("%d books are near: %t; %d: %t", nearMarkets, few.IsNear(), nearMarkets+1, many.IsNear())
	}
	handles := rest(few, 1)
	if few.IsNear() {
		t.Errorf("%d orders are near", few.Resting())
	}
	if few.resting.all.near == nil {
		t.Fatalf("%d orders lie in pages", few.Resting())
	}
	few.Fetch(handles, []uint32{0, 1, 1 << 31})
	handles = append(handles, rest(few, nearRecords)...)
	if few.resting.all.near != nil {
		t.Fatalf("%d orders lie in one piece", few.Resting())
	}
	few.Fetch(append(handles, 0), []uint32{0, nearRecords, uint32(len(handles))})
	far := []BareCancel{{0, handles[0]}, {0, handles[nearRecords]}}
	few.Touch([]BareLevel{{nearMarkets - 1, 1}}, far)
	for i, h := range handles {
		few.Cancel(0, h)
		if few.Resting() != nearOrders+len(handles)-1-i {
			t.Fatalf("%d rest after %d cancels", few.Resting(), i+1)
		}
	}
}

// flatPlace fills an order from the slice, which is sorted by time.
func flatPlace(flat *[]flatOrder, a flatOrder) (fills []BareFill, left Size) {
	left = a.Size
	for left > 0 {
		best := -1
		for i := range *flat {
			o := &(*flat)[i]
			if !o.meets(&a) {
				continue
			}
			if best < 0 || a.Side == Buy && o.Index < (*flat)[best].Index ||
				a.Side == Sell && o.Index > (*flat)[best].Index {
				best = i
			}
		}
		if best < 0 {
			break
		}
		o := &(*flat)[best]
		size := min(left, o.Size)
		left, o.Size = left-size, o.Size-size
		fills = append(fills, BareFill{o.handle, o.Index, size, o.Size})
		if o.Size == 0 {
			*flat = slices.Delete(*flat, best, best+1)
		}
	}
	return fills, left
}

// bareMix drives a Bare: half new orders, 40 % cancels, the rest
// takers. live are the resting orders, where a handle's place in it.
type bareMix struct {
	x     *Bare
	dice  dice
	live  []uint32
	where []uint32
	fills []BareFill
	met   uint64
}

func newBareMix() *bareMix {
	return &bareMix{x: NewBare(1, 100), dice: 42, live: make([]uint32, 0, 1<<17),
		where: make([]uint32, 1<<17), fills: make([]BareFill, 0, 64)}
}

func (m *bareMix) step() {
	r := m.dice.next()
	what := r % 10
	if len(m.live) > 0 && (what < 4 || len(m.live) > mixedLive) {
		h := m.live[int(r>>32)%len(m.live)]
		m.x.Cancel(0, h)
		m.gone(h)
		return
	}
	side, away := Side(r>>8&1), uint32(1+min(r>>16%12, r>>24%25))
	a := Arrival{Index: 50 + away, Side: side, Size: Size(r>>40%96 + 5)}
	if side == Buy {
		a.Index = 50 - away
	}
	if what == 9 {
		a.IOC, a.Index = true, 52-4*uint32(side)
	}
	m.fills = m.fills[:0]
	h := m.x.Place(0, a, &m.fills)
	for i := range m.fills {
		m.met++
		if f := &m.fills[i]; f.Remaining == 0 {
			m.gone(f.Handle)
		}
	}
	if h != 0 {
		m.where[h] = uint32(len(m.live))
		m.live = append(m.live, h)
	}
}

// gone removes a handle from the live ones.
func (m *bareMix) gone(h uint32) {
	last := m.live[len(m.live)-1]
	m.live[m.where[h]], m.where[last] = last, m.where[h]
	m.live = m.live[:len(m.live)-1]
}

func TestBareAllocates(t *testing.T) {
	m := newBareMix()
	for range 200_000 {
		m.step()
	}
	// The number of resting orders has reached its maximum, so no slice grows any more.
	got := least(func() uint64 {
		return mallocs(func() {
			for range 100_000 {
				m.step()
			}
		})
	})
	if got != 0 || m.met == 0 {
		t.Errorf("%d allocations in 100,000 operations, %d fills", got, m.met)
	}
}

// BenchmarkBare is matching alone, driven by the mix of BenchmarkApply.
func BenchmarkBare(b *testing.B) {
	m := newBareMix()
	for range 100_000 {
		m.step()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		m.step()
	}
	b.StopTimer()
	if m.x.Resting() != len(m.live) || m.met == 0 {
		b.Fatalf("%d rest, want %d; %d fills", m.x.Resting(), len(m.live), m.met)
	}
}
