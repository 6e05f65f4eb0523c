package engine

import "testing"

// TestTray hands out more records than one piece holds: each keeps its number and its content
// through all moves, and a fresh one is empty.
func TestTray(t *testing.T) {
	var all Tray[link]
	const most = nearRecords + 2*slabPage
	var early *link
	for i := uint32(1); i <= most; i++ {
		if h := all.Next(); h != i {
			t.Fatalf("record %d was handed out as %d", i, h)
		}
		k := all.At(i)
		if *k != (link{}) {
			t.Fatalf("record %d is not empty: %+v", i, *k)
		}
		*k = link{Next: i, Prev: ^i}
		if near := all.All.Near != nil; near != (i >= slabPage && i < nearRecords) {
			t.Fatalf("with %d records: in one piece is %t", i, near)
		}
		if i == slabPage {
			early = all.At(1)
		}
	}
	for i := uint32(1); i <= most; i++ {
		if k := all.At(i); *k != (link{Next: i, Prev: ^i}) {
			t.Fatalf("record %d holds %+v", i, *k)
		}
	}
	if early != all.At(1) {
		t.Fatal("a record of the one piece moved")
	}
}
