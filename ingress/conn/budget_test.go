package conn

import (
	"net/netip"
	"testing"
)

// TestBudget: neither one address nor all together get more than their bytes, a refused Take takes
// nothing, and nothing is kept of an address that has given all back.
func TestBudget(t *testing.T) {
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	near := netip.MustParseAddr("2001:db8::2") // of the same caller as two
	b := NewBudget(100, 60)
	for i, c := range []struct {
		from    netip.Addr
		n       int
		ok      bool
		crowded bool
	}{
		{one, 60, true, false}, {one, 1, false, false}, {two, 41, false, true}, {two, 30, true, false},
		{near, 31, false, false}, {near, 11, false, true}, {near, 10, true, false}, {two, 1, false, true},
	} {
		if ok, crowded := b.Take(c.from, c.n); ok != c.ok || crowded != c.crowded {
			t.Errorf("%d: %d bytes for %v: %v, %v", i, c.n, c.from, ok, crowded)
		}
	}
	b.Give(one, 60)
	b.Give(two, 40)
	if b.Used() != 0 || len(b.callers) != 0 {
		t.Errorf("%d bytes of %d addresses are left", b.Used(), len(b.callers))
	}
}
