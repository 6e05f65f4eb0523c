package matching

import (
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"clobd/engine"
)

// nearRecords is how many records an engine.Tray holds in one piece.
const nearRecords = 1 << 18

// mixedLive bounds the resting orders of a bareMix: beyond it the mix cancels more.
const mixedLive = 30_000

// TestBareSizes: fetchNear knows these sizes.
func TestBareSizes(t *testing.T) {
	if size := unsafe.Sizeof(bareOrder{}); size != 16 {
		t.Errorf("a bareOrder has %d bytes, want 16", size)
	}
}

// flatOrder is an order of the model of bare: a slice, searched from its start.
type flatOrder struct {
	arrival
	book, handle uint32
}

// meets reports whether two orders of one book trade.
func (o *flatOrder) meets(a *flatOrder) bool {
	if o.book != a.book || o.Side == a.Side {
		return false
	}
	return a.Side == engine.Buy && o.Index <= a.Index || a.Side == engine.Sell && o.Index >= a.Index
}

// TestBare replays random orders and cancels beside a slice of orders.
func TestBare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ticks := rapid.SampledFrom([]int{2, 10, 100, 400, 1000, 10_000}).Draw(t, "ticks")
		x, flat := newBare(2, ticks), []flatOrder(nil)
		var fills []bareFill
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			touchBare(t, x, flat, uint32(ticks))
			if len(flat) > 0 && rapid.IntRange(0, 9).Draw(t, "what") < 4 {
				i := rapid.IntRange(0, len(flat)-1).Draw(t, "which")
				x.Cancel(flat[i].book, flat[i].handle)
				flat = slices.Delete(flat, i, i+1)
				continue
			}
			book := rapid.Uint32Range(0, 1).Draw(t, "book")
			a := arrival{
				Index: rapid.Uint32Range(1, uint32(ticks-1)).Draw(t, "index"),
				Side:  engine.Side(rapid.IntRange(0, 1).Draw(t, "side")),
				IOC:   rapid.Bool().Draw(t, "ioc"),
				Size:  engine.Size(rapid.IntRange(1, 9).Draw(t, "size")),
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
func touchBare(t *rapid.T, x *bare, flat []flatOrder, ticks uint32) {
	handles, ids := []uint32{0, x.queues.Freed}, []uint32{0, 1, 1 << 31}
	var cancels []bareCancel
	for i := range flat {
		handles = append(handles, flat[i].handle)
		ids = append(ids, uint32(2+i))
		cancels = append(cancels, bareCancel{flat[i].book, flat[i].handle})
	}
	fetchHandles(handles, ids)
	fetchHandles(handles, nil)
	x.Fetch(handles, ids)
	x.Touch([]bareLevel{{0, rapid.Uint32Range(0, ticks).Draw(t, "touch")}, {1, 1}}, cancels)
}

// TestBareNear tests IsNear at its bounds, and fetches orders that lie in pages.
func TestBareNear(t *testing.T) {
	rest := func(x *bare, orders int) (handles []uint32) {
		for range orders {
			handles = append(handles, x.Place(0, arrival{Index: 1, Size: 1}, nil))
		}
		return handles
	}
	few, many := newBare(engine.NearMarkets, 10), newBare(engine.NearMarkets+1, 10)
	rest(few, engine.NearOrders)
	if !few.IsNear() || many.IsNear() {
		t.Errorf("%d books are near: %t; %d: %t", engine.NearMarkets, few.IsNear(), engine.NearMarkets+1, many.IsNear())
	}
	handles := rest(few, 1)
	if few.IsNear() {
		t.Errorf("%d orders are near", few.Resting())
	}
	if few.resting.All.Near == nil {
		t.Fatalf("%d orders lie in pages", few.Resting())
	}
	few.Fetch(handles, []uint32{0, 1, 1 << 31})
	handles = append(handles, rest(few, nearRecords)...)
	if few.resting.All.Near != nil {
		t.Fatalf("%d orders lie in one piece", few.Resting())
	}
	few.Fetch(append(handles, 0), []uint32{0, nearRecords, uint32(len(handles))})
	far := []bareCancel{{0, handles[0]}, {0, handles[nearRecords]}}
	few.Touch([]bareLevel{{engine.NearMarkets - 1, 1}}, far)
	for i, h := range handles {
		few.Cancel(0, h)
		if few.Resting() != engine.NearOrders+len(handles)-1-i {
			t.Fatalf("%d rest after %d cancels", few.Resting(), i+1)
		}
	}
}

// TestManyOrders rests more orders in two books than one piece holds, cancels every third, and
// fills the others with a taker, oldest first.
func TestManyOrders(t *testing.T) {
	const orders, levels = nearRecords + 3<<10, 7
	x := newBare(2, 10)
	handles := make([]uint32, orders)
	place := func(i int) {
		handles[i] = x.Place(uint32(i&1), arrival{Index: uint32(1 + i%levels), Side: engine.Sell,
			Size: engine.Size(1 + i%5)}, nil)
	}
	for i := range handles {
		place(i)
	}
	for i := 0; i < orders; i += 3 {
		x.Cancel(uint32(i&1), handles[i])
	}
	left, gone := x.Resting(), (orders+2)/3
	if left != orders-gone {
		t.Fatalf("%d rest of %d, %d were cancelled", left, orders, gone)
	}
	var fills []bareFill
	for book := range uint32(2) {
		x.Place(book, arrival{Index: levels, Side: engine.Buy, IOC: true, Size: 1 << 40}, &fills)
	}
	if len(fills) != left || x.Resting() != 0 {
		t.Fatalf("%d of %d were met, %d rest", len(fills), left, x.Resting())
	}
	at := 0
	for book := range 2 {
		for level := range levels {
			for i := book; i < orders; i += 2 {
				if i%3 == 0 || i%levels != level {
					continue
				}
				want := bareFill{Handle: handles[i], Index: uint32(1 + level), Size: engine.Size(1 + i%5)}
				if fills[at] != want {
					t.Fatalf("fill %d is %+v, want %+v", at, fills[at], want)
				}
				at++
			}
		}
	}
}

// flatPlace fills an order from the slice, which is sorted by time.
func flatPlace(flat *[]flatOrder, a flatOrder) (fills []bareFill, left engine.Size) {
	left = a.Size
	for left > 0 {
		best := -1
		for i := range *flat {
			o := &(*flat)[i]
			if !o.meets(&a) {
				continue
			}
			if best < 0 || a.Side == engine.Buy && o.Index < (*flat)[best].Index ||
				a.Side == engine.Sell && o.Index > (*flat)[best].Index {
				best = i
			}
		}
		if best < 0 {
			break
		}
		o := &(*flat)[best]
		size := min(left, o.Size)
		left, o.Size = left-size, o.Size-size
		fills = append(fills, bareFill{o.handle, o.Index, size, o.Size})
		if o.Size == 0 {
			*flat = slices.Delete(*flat, best, best+1)
		}
	}
	return fills, left
}

// dice is splitmix64: seeded, and the same everywhere.
type dice uint64

func (d *dice) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// bareMix drives a bare: half new orders, 40 % cancels, the rest
// takers. live are the resting orders, where a handle's place in it.
type bareMix struct {
	x     *bare
	dice  dice
	live  []uint32
	where []uint32
	fills []bareFill
	met   uint64
}

func newBareMix() *bareMix {
	return &bareMix{x: newBare(1, 100), dice: 42, live: make([]uint32, 0, 1<<17),
		where: make([]uint32, 1<<17), fills: make([]bareFill, 0, 64)}
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
	side, away := engine.Side(r>>8&1), uint32(1+min(r>>16%12, r>>24%25))
	a := arrival{Index: 50 + away, Side: side, Size: engine.Size(r>>40%96 + 5)}
	if side == engine.Buy {
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

// mallocs counts the allocations of f. testing.AllocsPerRun rounds an average down, so it misses an
// allocation in every other run.
func mallocs(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	time.Sleep(10 * time.Millisecond) // its own goroutines clean up what earlier tests left
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

func TestBareAllocates(t *testing.T) {
	m := newBareMix()
	for range 200_000 {
		m.step()
	}
	// The number of resting orders has reached its maximum, so no slice grows any more.
	// The runtime's own goroutines allocate now and then, but not in each of five counts.
	got := uint64(1)
	for try := 0; try < 5 && got > 0; try++ {
		got = mallocs(func() {
			for range 100_000 {
				m.step()
			}
		})
	}
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
