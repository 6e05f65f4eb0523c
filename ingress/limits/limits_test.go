package limits

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"clobd/engine"
)

// manualClock is a clock that tests move.
type manualClock struct{ t time.Time }

func (c *manualClock) now() time.Time { return c.t }

func newManualClock() *manualClock { return &manualClock{time.Unix(1_800_000_000, 0)} }

// The rows of addressTable.
const (
	allTraffic = iota
	placing
	canceling
	beating
	catalogAll
	catalogEvents
	catalogMarkets
	catalogListing // events and markets together
	catalogTags
	catalogSearch
	healthCheck
	readBook
	readBooks
	readPrice
	readPrices
	readMidpoint
	readMidpoints
	readSpreads
	readLastTrades
	readHistory
	readHistories
	readTrades
	deriveKeys
)

func TestBothWindowsInOneDecision(t *testing.T) {
	clock := newManualClock()
	w := New(clock.now)
	wallet := engine.Address{1}
	// Ten bursts of 2,400 fill the sustained window; each waits until the burst window is empty.
	admitted := 0
	for range 10 {
		for w.Account(wallet, Demand{OrderScope, 1}) == 0 {
			admitted++
		}
		clock.t = clock.t.Add(20 * time.Second)
	}
	if admitted != 24000 {
		t.Fatalf("admitted %d, want 24000", admitted)
	}
	wait := w.Account(wallet, Demand{OrderScope, 1})
	if wait < 5*time.Minute || wait > 20*time.Minute {
		t.Fatalf("wait %v", wait)
	}
	// A refusal counts in no window: the burst window must still be empty.
	s := &w.accounts
	for i := range s {
		for _, e := range s[i].callers {
			if c := e.Value.(*caller); c.counters[OrderScope[0]].sum != 0 {
				t.Fatalf("a refused order was counted: %+v", c.counters)
			}
		}
	}
	if w.Account(wallet, Demand{CancelScope, 1}) != 0 {
		t.Fatal("orders block cancels")
	}
	if w.Account(engine.Address{2}, Demand{OrderScope, 1}) != 0 {
		t.Fatal("one wallet blocks another")
	}
	clock.t = clock.t.Add(wait)
	if d := w.Account(wallet, Demand{OrderScope, 1}); d != 0 {
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
	for w.Account(wallet, fifteen) == 0 {
		n++
	}
	if n != 159 { // of 2,400 less 15
		t.Fatalf("%d lists of 15", n)
	}
	clock.t = clock.t.Add(w.Account(wallet, Demand{OrderScope, 1}))
	if d := w.Account(wallet, fifteen); d <= 0 {
		t.Fatal("room for one order is room for fifteen")
	} else if clock.t = clock.t.Add(d); w.Account(wallet, fifteen) != 0 {
		t.Fatalf("not after the promised %v", d)
	}
	if w.Account(wallet, Demand{CancelScope, 1000}) != 0 {
		t.Fatal("orders block a list of cancels")
	}
}

func TestWindowSlides(t *testing.T) {
	clock := newManualClock()
	w := New(clock.now)
	from := netip.MustParseAddr("192.0.2.1")
	scope := []int{healthCheck}
	fill := func() (n int) {
		for w.Address(from, scope) == 0 {
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
		d := w.Address(from, scope)
		if d == 0 {
			continue
		}
		clock.t = clock.t.Add(d)
		if again := w.Address(from, scope); again != 0 {
			t.Fatalf("waited %v, then told %v", d, again)
		}
	}
}

func TestCallersAreBounded(t *testing.T) {
	w := New(newManualClock().now)
	for i := range 3 * shards * shardCallers {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		w.Address(a, []int{allTraffic})
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
		want         []int
	}{
		{"GET", "/", false, []int{allTraffic, healthCheck}},
		{"GET", "/clob/ok", false, []int{allTraffic, healthCheck}},
		{"GET", "/clob", false, []int{allTraffic, healthCheck}},
		{"GET", "/clobber", false, []int{allTraffic}},
		{"POST", "/order", false, []int{placing}},
		{"POST", "/clob/orders", false, []int{placing}},
		{"GET", "/order", false, []int{allTraffic}},
		{"GET", "/data/order/x", false, []int{allTraffic}},
		{"DELETE", "/clob/orders", false, []int{canceling}},
		{"DELETE", "/cancel-all", false, []int{canceling}},
		{"DELETE", "/cancel-market-orders", false, []int{canceling}},
		{"POST", "/heartbeats", false, []int{beating}},
		{"POST", "/clob/v1/heartbeats", false, []int{beating}},
		{"POST", "/v1/other", false, []int{allTraffic}},
		{"GET", "/v1/heartbeats", false, []int{allTraffic}},
		{"POST", "/auth/api-key", false, []int{allTraffic, deriveKeys}},
		{"GET", "/auth/api-keys", false, []int{allTraffic}},
		{"DELETE", "/auth/api-key", false, []int{allTraffic}},
		{"GET", "/clob/auth/derive-api-key", false, []int{allTraffic, deriveKeys}},
		{"DELETE", "/order", false, []int{canceling}},
		{"GET", "/book", false, []int{allTraffic, readBook}},
		{"POST", "/books", false, []int{allTraffic, readBooks}},
		{"GET", "/price", false, []int{allTraffic, readPrice}},
		{"POST", "/prices", false, []int{allTraffic, readPrices}},
		{"GET", "/prices", false, []int{allTraffic, readPrices}},
		{"HEAD", "/prices", false, []int{allTraffic, readPrices}},
		{"POST", "/midpoints", false, []int{allTraffic, readMidpoints}},
		{"GET", "/clob/midpoints", false, []int{allTraffic, readMidpoints}},
		{"POST", "/spreads", false, []int{allTraffic, readSpreads}},
		{"GET", "/last-trades-prices", false, []int{allTraffic, readLastTrades}},
		{"POST", "/last-trades-prices", false, []int{allTraffic, readLastTrades}},
		{"GET", "/midpoint", false, []int{allTraffic, readMidpoint}},
		{"GET", "/prices-history", false, []int{allTraffic, readHistory}},
		{"POST", "/batch-prices-history", false, []int{allTraffic, readHistories}},
		{"GET", "/data-api/trades", false, []int{allTraffic, readTrades}},
		{"GET", "/data-api/v1/market-positions", false, []int{allTraffic, readTrades}},
		{"HEAD", "/v1/market-positions", false, []int{allTraffic, readTrades}},
		{"GET", "/v1/leaderboard", false, []int{allTraffic}},
		{"GET", "/markets", true, []int{allTraffic}},
		{"GET", "/clob/markets", false, []int{allTraffic}},
		{"GET", "/gamma/markets", true,
			[]int{allTraffic, catalogAll, catalogMarkets, catalogListing}},
		{"GET", "/markets/keyset", true,
			[]int{allTraffic, catalogAll, catalogMarkets, catalogListing}},
		{"GET", "/gamma/markets/7", false,
			[]int{allTraffic, catalogAll, catalogMarkets, catalogListing}},
		{"GET", "/events", false, []int{allTraffic, catalogAll, catalogEvents, catalogListing}},
		{"GET", "/series", false, []int{allTraffic, catalogAll}},
		{"GET", "/tags", false, []int{allTraffic, catalogAll, catalogTags}},
		{"GET", "/public-search", false, []int{allTraffic, catalogAll, catalogSearch}},
	} {
		if got := AddressScope(c.method, c.path, c.cursor); !slices.Equal(got, c.want) {
			t.Errorf("%s %s: %v, want %v", c.method, c.path, got, c.want)
		}
	}
}

// TestReadsBlockNoCancel: an address whose other windows are full may still cancel and beat, and
// orders and cancels have windows of their own with an end.
func TestReadsBlockNoCancel(t *testing.T) {
	w := New(newManualClock().now)
	from := netip.MustParseAddr("192.0.2.1")
	fill := func(method, path string) (n int) {
		for n < 20_000 && w.Address(from, AddressScope(method, path, false)) == 0 {
			n++
		}
		return n
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/spread", 5000}, {"POST", "/split", 0}, {"POST", "/order", 12_000},
		{"POST", "/orders", 0}, {"DELETE", "/order", 12_000}, {"DELETE", "/cancel-all", 0},
		{"POST", "/v1/heartbeats", 5000}, {"POST", "/heartbeats", 0},
	} {
		if n := fill(c.method, c.path); n != c.want {
			t.Errorf("%s %s: %d were let in, want %d", c.method, c.path, n, c.want)
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
