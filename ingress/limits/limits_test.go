package limits

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"clobd/engine"
	"clobd/ingress/conn"
)

// manualClock is a clock that tests move.
type manualClock struct{ t time.Time }

func (c *manualClock) now() time.Time { return c.t }

func newManualClock() *manualClock { return &manualClock{time.Unix(1_800_000_000, 0)} }

func TestBothWindowsInOneDecision(t *testing.T) {
	clock := newManualClock()
	w := New(clock.now)
	wallet := engine.Address{1}
	// Ten bursts of 2,400 fill the sustained window; each waits until the burst window is empty.
	admitted := 0
	for range 10 {
		for w.Account(wallet, Demand{OrderScope, 1}).Wait == 0 {
			admitted++
		}
		clock.t = clock.t.Add(20 * time.Second)
	}
	if admitted != 24000 {
		t.Fatalf("admitted %d, want 24000", admitted)
	}
	wait := w.Account(wallet, Demand{OrderScope, 1}).Wait
	if wait < 5*time.Minute || wait > 20*time.Minute {
		t.Fatalf("wait %v", wait)
	}
	// A refusal counts in no window: the burst window must still be empty.
	s := &w.accounts
	for i := range s {
		for _, e := range s[i].callers {
			if c := e.Value.(*caller); c.counters[0].row != OrderScope.rows[0] || c.counters[0].sum != 0 {
				t.Fatalf("a refused order was counted: %+v", c.counters)
			}
		}
	}
	if w.Account(wallet, Demand{CancelScope, 1}).Wait != 0 {
		t.Fatal("orders block cancels")
	}
	if w.Account(engine.Address{2}, Demand{OrderScope, 1}).Wait != 0 {
		t.Fatal("one wallet blocks another")
	}
	clock.t = clock.t.Add(wait)
	if d := w.Account(wallet, Demand{OrderScope, 1}).Wait; d != 0 {
		t.Fatalf("still %v after the promised wait", d)
	}
}

// TestListsCountTheirEntries: a list is let in whole or not at all, and told how long to wait for
// all of it.
func TestListsCountTheirEntries(t *testing.T) {
	clock := newManualClock()
	w := New(clock.now)
	wallet := engine.Address{1}
	fifteen := Demand{OrderScope, 15}
	n := 0
	for range 15 { // each leaves the window by itself
		w.Account(wallet, Demand{OrderScope, 1})
		clock.t = clock.t.Add(200 * time.Millisecond)
	}
	for w.Account(wallet, fifteen).Wait == 0 {
		n++
	}
	if n != 159 { // of 2,400 less 15
		t.Fatalf("%d lists of 15", n)
	}
	clock.t = clock.t.Add(w.Account(wallet, Demand{OrderScope, 1}).Wait)
	if d := w.Account(wallet, fifteen).Wait; d <= 0 {
		t.Fatal("room for one order is room for fifteen")
	} else if clock.t = clock.t.Add(d); w.Account(wallet, fifteen).Wait != 0 {
		t.Fatalf("not after the promised %v", d)
	}
	if w.Account(wallet, Demand{CancelScope, 1000}).Wait != 0 {
		t.Fatal("orders block a list of cancels")
	}
}

func TestWindowSlides(t *testing.T) {
	clock := newManualClock()
	w := New(clock.now)
	from := netip.MustParseAddr("192.0.2.1")
	scope := AddressScope("GET", "/ok", false)
	fill := func() (n int) {
		for w.Address(from, scope).Wait == 0 {
			n++
		}
		return n
	}
	if n := fill(); n != 50 {
		t.Fatalf("first window: %d", n)
	}
	clock.t = clock.t.Add(ten)
	if n := fill(); n != 0 {
		t.Fatalf("%d more within a window and the part that it began in", n)
	}
	clock.t = clock.t.Add(ten / slots)
	if n := fill(); n != 50 {
		t.Fatalf("%d after the window has passed", n)
	}
	for range 100 { // whatever the moment, the promised wait is enough
		d := w.Address(from, scope).Wait
		if d == 0 {
			continue
		}
		clock.t = clock.t.Add(d)
		if again := w.Address(from, scope).Wait; again != 0 {
			t.Fatalf("waited %v, then told %v", d, again)
		}
	}
}

func TestCallersAreBounded(t *testing.T) {
	w := New(newManualClock().now)
	for i := range 3 * shards * shardCallers {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		w.Address(a, General)
	}
	for i := range w.addresses {
		s := &w.addresses[i]
		if n := len(s.callers); n != s.order.Len() || n > shardCallers {
			t.Fatalf("shard %d keeps %d callers, list %d", i, n, s.order.Len())
		}
	}
}

func TestAddressScope(t *testing.T) {
	for _, c := range []struct {
		method, path string
		cursor       bool
		want         string
	}{
		{"GET", "/", false, "general health"},
		{"GET", "/clob/ok", false, "general health"},
		{"GET", "/clob", false, "general health"},
		{"GET", "/clobber", false, "general"},
		{"POST", "/order", false, "general"},
		{"POST", "/clob/orders", false, "general"},
		{"GET", "/order", false, "general"},
		{"GET", "/data/order/x", false, "general data-order"},
		{"DELETE", "/clob/orders", false, "cancel"},
		{"DELETE", "/cancel-all", false, "cancel"},
		{"DELETE", "/cancel-market-orders", false, "cancel"},
		{"POST", "/heartbeats", false, "general"},
		{"POST", "/clob/v1/heartbeats", false, "general"},
		{"POST", "/v1/other", false, "general"},
		{"GET", "/v1/heartbeats", false, "general"},
		{"POST", "/auth/api-key", false, "general derive"},
		{"GET", "/auth/api-keys", false, "general api-keys"},
		{"DELETE", "/auth/api-key", false, "general"},
		{"GET", "/clob/auth/derive-api-key", false, "general derive"},
		{"DELETE", "/order", false, "cancel"},
		{"GET", "/book", false, "general book"},
		{"POST", "/books", false, "general books"},
		{"GET", "/price", false, "general price"},
		{"POST", "/prices", false, "general prices"},
		{"GET", "/prices", false, "general prices"},
		{"HEAD", "/prices", false, "general prices"},
		{"POST", "/midpoints", false, "general midpoints"},
		{"GET", "/clob/midpoints", false, "general midpoints"},
		{"POST", "/spreads", false, "general spreads"},
		{"GET", "/last-trades-prices", false, "general last-trades-prices"},
		{"POST", "/last-trades-prices", false, "general last-trades-prices"},
		{"GET", "/midpoint", false, "general midpoint"},
		{"GET", "/prices-history", false, "general prices-history"},
		{"POST", "/batch-prices-history", false, "general batch-prices-history"},
		{"GET", "/data-api/trades", false, "general trades"},
		{"GET", "/data-api/v1/market-positions", false, "general market-positions"},
		{"HEAD", "/v1/market-positions", false, "general market-positions"},
		{"GET", "/v1/leaderboard", false, "general leaderboard"},
		{"GET", "/markets", true, "general clob-markets-list"},
		{"GET", "/clob/markets", false, "general clob-markets-list"},
		{"GET", "/clob/markets/0x1", false, "general clob-market"},
		{"GET", "/gamma/markets", true, "general catalog markets listing"},
		{"GET", "/markets/keyset", true, "general catalog markets listing"},
		{"GET", "/gamma/markets/7", false, "general catalog markets listing"},
		{"GET", "/events", false, "general catalog events listing"},
		{"GET", "/series", false, "general catalog series"},
		{"GET", "/tags", false, "general catalog tags"},
		{"GET", "/public-search", false, "general catalog public-search"},
	} {
		if got := names(AddressScope(c.method, c.path, c.cursor)); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.method, c.path, got, c.want)
		}
	}
}

// names are the windows of a scope.
func names(s *Scope) string {
	if s.Cancels {
		return "cancel"
	}
	var list []string
	for _, row := range s.rows {
		list = append(list, addressTable[row].name)
	}
	return strings.Join(list, " ")
}

// TestGeneralCountsAll: whatever an address sends but its cancels counts in the general window. Of
// cancels those of proven callers count in windows of their own, which have an end.
func TestGeneralCountsAll(t *testing.T) {
	w := New(newManualClock().now)
	from := netip.MustParseAddr("192.0.2.1")
	all := []*Scope{AddressScope("POST", "/order", false), AddressScope("POST", "/heartbeats", false),
		AddressScope("GET", "/spread", false), AddressScope("DELETE", "/auth/api-key", false), General}
	n := 0
	for w.Address(from, all[n%len(all)]).Wait == 0 {
		n++
	}
	if n != 5000 {
		t.Errorf("%d of all kinds were let in, want 5000", n)
	}
	n = 0
	for ; n < 20_000; n++ {
		if w.Cancel(from, engine.Address{byte(n), byte(n >> 8)}, 1, false).Wait > 0 {
			break
		}
	}
	if n != 12_000 {
		t.Errorf("%d cancels of many accounts were let in, want 12000", n)
	}
}

// TestEmergencyExit: where an account, or all at its address, have used up their cancels, those of
// everything and of a market are still taken, and counted.
func TestEmergencyExit(t *testing.T) {
	w := New(newManualClock().now)
	from := netip.MustParseAddr("192.0.2.1")
	wallet := engine.Address{1}
	sweep := func(a engine.Address) (n int) {
		for n < 10_000 && w.Cancel(from, a, 1, true).Wait == 0 {
			n++
		}
		return n
	}
	if w.Cancel(from, wallet, 2400, false).Wait != 0 || w.Cancel(from, wallet, 1, false).Wait == 0 {
		t.Fatal("2,400 cancels are not what an account may send")
	}
	if n := sweep(wallet); n != 50 {
		t.Errorf("%d sweeps after the last cancel, want 50", n)
	}
	for i := range byte(4) {
		w.Cancel(from, engine.Address{2, i}, 2400, false)
	}
	if v := w.Cancel(from, engine.Address{3}, 1, false); v.Wait == 0 || v.Name != "cancels" {
		t.Fatalf("the cancels of the address have no end: %+v", v)
	}
	if n := sweep(engine.Address{3}); n != 50 {
		t.Errorf("%d sweeps of an account whose neighbours cancel, want 50", n)
	}
	// What the address refuses counts for no account, and the other way round.
	if v := w.Account(engine.Address{3}, Demand{CancelScope, 2400}); v.Wait != 0 {
		t.Errorf("refused cancels count for the account: %+v", v)
	}
	if v := w.Cancel(from, wallet, 1, false); v.Wait == 0 {
		t.Fatal("let in")
	}
	q := question{&w.addresses, conn.AddressKey(from), w.policy.Load().address, []uint8{cancels}, 1,
		w.time()}
	c := q.shard(w.seed).caller(q.key)
	for i := range c.counters {
		if c.counters[i].row == cancels && c.counters[i].sum != 12_000 {
			t.Errorf("the address counts %d cancels, want 12000", c.counters[i].sum)
		}
	}
}

func BenchmarkAdmitAccount(b *testing.B) {
	w := New(time.Now)
	n := 0
	for b.Loop() {
		n++
		w.Account(engine.Address{byte(n), byte(n >> 8), byte(n >> 16)}, Demand{OrderScope, 1})
	}
}
