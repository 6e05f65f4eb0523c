package conn

import (
	"net/netip"
	"sync"
	"testing"
)

// TestBudget: neither one address nor all together get more than their bytes, a refused Take takes
// nothing, and nothing is kept of an address that has given all back.
func TestBudget(t *testing.T) {
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	near := netip.MustParseAddr("2001:db8::2") // of the same caller as two
	b := NewBudget(100, 60)
	if ok, crowded := b.Take(one, 60, false); !ok || crowded {
		t.Error("a stranger gets nothing")
	}
	if ok, crowded := b.Take(two, 16, false); ok || !crowded {
		t.Error("strangers get what is kept for those who are known")
	}
	b.Give(one, 60)
	for i, c := range []struct {
		from    netip.Addr
		n       int
		known   bool
		ok      bool
		crowded bool
	}{
		{one, 60, true, true, false}, {one, 1, true, false, false}, {two, 41, true, false, true},
		{two, 30, true, true, false}, {near, 31, true, false, false}, {near, 11, true, false, true},
		{near, 10, true, true, false}, {two, 1, true, false, true},
	} {
		if ok, crowded := b.Take(c.from, c.n, c.known); ok != c.ok || crowded != c.crowded {
			t.Errorf("%d: %d bytes for %v: %v, %v", i, c.n, c.from, ok, crowded)
		}
	}
	b.Give(one, 60)
	b.Give(two, 40)
	if b.Used() != 0 || len(b.callers) != 0 {
		t.Errorf("%d bytes of %d addresses are left", b.Used(), len(b.callers))
	}
}

// TestHeld: however many release what a caller holds, as the end of an answer and the close of its
// connection may at a stop, the Budget gets the bytes back once.
func TestHeld(t *testing.T) {
	of := netip.MustParseAddr("192.0.2.1")
	b := NewBudget(100, 100)
	h := Held{Budget: b}
	for range 1000 {
		if ok, _ := b.Take(of, 50, true); !ok {
			t.Fatalf("%d bytes are taken", b.Used())
		}
		h.Add(of, 20)
		h.Add(of, 30)
		var group sync.WaitGroup
		for range 4 {
			group.Go(h.Release) // a second gift would be a BUG and panic
		}
		group.Wait()
		if b.Used() != 0 {
			t.Fatalf("%d bytes are left", b.Used())
		}
	}
}
