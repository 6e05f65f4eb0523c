package engine

import "testing"

// TestTray hands out more records than one piece holds: each keeps its number and its content
// through all moves, and a fresh one is empty.
func TestTray(t *testing.T) {
	var all tray[link]
	const most = nearRecords + 2*slabPage
	var early *link
	for i := uint32(1); i <= most; i++ {
		if h := all.next(); h != i {
			t.Fatalf("record %d was handed out as %d", i, h)
		}
		k := all.at(i)
		if *k != (link{}) {
			t.Fatalf("record %d is not empty: %+v", i, *k)
		}
		*k = link{next: i, prev: ^i}
		if near := all.all.near != nil; near != (i >= slabPage && i < nearRecords) {
			t.Fatalf("with %d records: in one piece is %t", i, near)
		}
		if i == slabPage {
			early = all.at(1)
		}
	}
	for i := uint32(1); i <= most; i++ {
		if k := all.at(i); *k != (link{next: i, prev: ^i}) {
			t.Fatalf("record %d holds %+v", i, *k)
		}
	}
	if early != all.at(1) {
		t.Fatal("a record of the one piece moved")
	}
}

// TestManyOrders rests more orders in two books than one piece holds, cancels every third, and
// fills the others with a taker, oldest first.
func TestManyOrders(t *testing.T) {
	const orders, levels = nearRecords + 3*slabPage, 7
	x := NewBare(2, 10)
	handles := make([]uint32, orders)
	place := func(i int) {
		handles[i] = x.Place(uint32(i&1), Arrival{Index: uint32(1 + i%levels), Side: Sell,
			Size: Size(1 + i%5)}, nil)
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
	var fills []BareFill
	for book := range uint32(2) {
		x.Place(book, Arrival{Index: levels, Side: Buy, IOC: true, Size: 1 << 40}, &fills)
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
				want := BareFill{Handle: handles[i], Index: uint32(1 + level), Size: Size(1 + i%5)}
				if fills[at] != want {
					t.Fatalf("fill %d is %+v, want %+v", at, fills[at], want)
				}
				at++
			}
		}
	}
}
