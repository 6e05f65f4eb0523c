package limits

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"clobd/engine"
	"clobd/scripts/setting"
)

// fail makes claims of a key that are all false, until they are not checked any more.
func (w *Windows) fail(from netip.Addr, key string, cancel bool) (n int) {
	for ; n < 1000; n++ {
		c, wait := w.Claim(from, key, cancel)
		if wait > 0 {
			return n
		}
		w.Failed(&c)
	}
	return n
}

// prove makes one true claim, and reports whether it was checked.
func (w *Windows) prove(from netip.Addr, key string, cancel bool) bool {
	c, wait := w.Claim(from, key, cancel)
	if wait > 0 {
		return false
	}
	w.Proved(&c)
	return true
}

// TestFailuresLockNobodyOut: who fails is not checked any more, with one key or with many. Whoever
// has succeeded from there still is, everybody is from elsewhere, and all are again after a while.
func TestFailuresLockNobodyOut(t *testing.T) {
	clock := newManualClock()
	w := New(clock.now)
	here, there := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	if !w.prove(here, "owner", false) {
		t.Fatal("the first claim is not checked")
	}
	if n := w.fail(here, "guess", false); n != 20 {
		t.Errorf("%d failures of one key were checked, want 20", n)
	}
	n := 20
	for key := range 200 {
		n += w.fail(here, string(rune('a'+key)), false)
	}
	if n != 100 {
		t.Errorf("%d failures of many keys were checked, want 100", n)
	}
	if w.prove(here, "newcomer", false) {
		t.Error("an address that failed too often may try another key")
	}
	if !w.prove(here, "owner", false) {
		t.Error("strangers at the owner's address lock him out")
	}
	if !w.prove(here, "newcomer", true) {
		t.Error("failures that are no cancels keep out a cancel")
	}
	if n := w.fail(there, "owner", false); n != 20 {
		t.Errorf("%d failures of the owner's key elsewhere, want 20", n)
	}
	if !w.prove(here, "owner", false) {
		t.Error("failures elsewhere lock the owner out")
	}
	if n := w.fail(here, "owner", false); n != 20 || w.prove(here, "owner", false) {
		t.Errorf("%d failures of the owner's key at his address, want 20", n)
	}
	clock.t = clock.t.Add(ten + ten/slots)
	if !w.prove(here, "owner", false) || !w.prove(here, "newcomer", false) {
		t.Error("failures are never forgiven")
	}
}

// TestFakeCancelsAreBounded: false cancels are checked up to their own bound, and a proven caller's
// pass beside them.
func TestFakeCancelsAreBounded(t *testing.T) {
	w := New(newManualClock().now)
	from := netip.MustParseAddr("192.0.2.1")
	w.prove(from, "owner", false)
	n := 0
	for key := range 500 {
		n += w.fail(from, string(rune('a'+key)), true)
	}
	if n != 100 {
		t.Errorf("%d false cancels were checked, want 100", n)
	}
	if !w.prove(from, "owner", true) {
		t.Error("false cancels keep out true ones")
	}
}

// TestBadOrdersCount: an account's wrong signatures count for it at all addresses, and those of
// many accounts at their address. They keep out no account that has placed orders from there.
func TestBadOrdersCount(t *testing.T) {
	w := New(newManualClock().now)
	here, there := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	maker := engine.Address{1}
	c, _ := w.Order(here, maker)
	w.Proved(&c)
	fail := func(a engine.Address) (n int) {
		for ; n < 1000; n++ {
			c, wait := w.Order(here, a)
			if wait > 0 {
				return n
			}
			w.FailedOrder(&c)
		}
		return n
	}
	n := fail(engine.Address{2})
	if n != 50 {
		t.Errorf("%d wrong signatures of one account were checked, want 50", n)
	}
	if _, wait := w.Order(there, engine.Address{2}); wait == 0 {
		t.Error("elsewhere the account may go on")
	}
	for i := range byte(20) {
		n += fail(engine.Address{3, i})
	}
	if n != 200 {
		t.Errorf("%d wrong signatures of many accounts were checked, want 200", n)
	}
	if _, wait := w.Order(here, engine.Address{4}); wait == 0 {
		t.Error("a new account at the address may go on")
	}
	if _, wait := w.Order(here, maker); wait > 0 {
		t.Error("a maker is kept out by his neighbours")
	}
}

// TestMemoryIsBounded: many more callers than there is room for, who have used several windows,
// take no more memory than the tables have room for.
func TestMemoryIsBounded(t *testing.T) {
	setting.Full(t, "it fills tables to their ends")
	clock := newManualClock()
	w := New(clock.now)
	before := heap()
	book := AddressScope("GET", "/book", false)
	for i := range uint32(300_000) {
		var b [16]byte
		binary.BigEndian.PutUint32(b[:], 0x20010db8)
		binary.BigEndian.PutUint32(b[4:], i)
		from, wallet := netip.AddrFrom16(b), engine.Address(append(b[:], 0, 0, 0, 0))
		w.Address(from, book)
		w.Account(wallet, Demand{OrderScope, 1})
		c, _ := w.Claim(from, "key", false)
		if i%2 == 0 {
			w.Proved(&c)
		} else {
			w.Failed(&c)
		}
		clock.t = clock.t.Add(ten / 1000)
	}
	callers := 0
	for _, table := range []*throng{&w.addresses, &w.accounts, &w.pairs, &w.strangers} {
		for i := range table {
			s := &table[i]
			callers += len(s.callers)
			if len(s.callers) != s.order.Len() || len(s.callers) > shardCallers {
				t.Fatalf("a shard has %d callers, and %d in order", len(s.callers), s.order.Len())
			}
		}
	}
	grown := heap() - before
	t.Logf("%d callers are kept in %d MB, %d bytes each", callers, grown>>20, grown/int64(callers))
	if grown > 64<<20 {
		t.Errorf("they take %d MB", grown>>20)
	}
	runtime.KeepAlive(w)
}

// TestSlotsAreBounded: callers who use all windows all the time do not take more than the slots
// that there are.
func TestSlotsAreBounded(t *testing.T) {
	setting.Full(t, "it fills tables to their ends")
	clock := newManualClock()
	w := New(clock.now)
	for range 3 * slots {
		for i := range 4000 {
			from := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
			w.Address(from, AddressScope("GET", "/gamma/markets", false))
		}
		clock.t = clock.t.Add(ten / slots)
	}
	for i := range w.addresses {
		s, n := &w.addresses[i], 0
		for _, e := range s.callers {
			for _, c := range e.Value.(*caller).counters {
				n += cap(c.sent)
			}
		}
		if n != s.slots || n > shardSlots {
			t.Errorf("a shard has %d slots, says %d, may have %d", n, s.slots, shardSlots)
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestNothingIsAllocated: a caller who is known costs no memory, as an order or a read.
func TestNothingIsAllocated(t *testing.T) {
	w := New(newManualClock().now)
	from, wallet := netip.MustParseAddr("192.0.2.1"), engine.Address{1}
	book := AddressScope("GET", "/clob/book", false)
	var text [128]byte
	if n := testing.AllocsPerRun(100, func() {
		v := w.Address(from, AddressScope("GET", "/clob/book", false))
		_ = v.AppendRateLimit(text[:0])
		w.Account(wallet, Demand{OrderScope, 1})
		w.Cancel(from, wallet, 1, true)
		c, _ := w.Claim(from, "key", false)
		w.Proved(&c)
		c, _ = w.Order(from, wallet)
		w.Proved(&c)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if book == General {
		t.Error("a book counts in no window of its own")
	}
}

func BenchmarkAddress(b *testing.B) {
	w := New(time.Now)
	from := netip.MustParseAddr("192.0.2.1")
	for b.Loop() {
		w.Address(from, AddressScope("GET", "/book", false))
	}
}

func BenchmarkClaim(b *testing.B) {
	w := New(time.Now)
	from := netip.MustParseAddr("192.0.2.1")
	for b.Loop() {
		c, _ := w.Claim(from, "3f0c7a52-6d3a-4f5e-9d1c-0a1b2c3d4e5f", false)
		w.Proved(&c)
	}
}

// TestTurnedAway: an address that was refused often is told so until it has been quiet for a while.
func TestTurnedAway(t *testing.T) {
	clock := newManualClock()
	w := New(clock.now)
	here, there := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for n := range 300 {
		if w.TurnedAway(here) {
			t.Fatalf("refusal %d comes slowly", n)
		}
	}
	if !w.TurnedAway(here) || w.TurnedAway(there) {
		t.Error("the address that was refused 300 times, and no other, is one that asks too often")
	}
	clock.t = clock.t.Add(ten + ten/slots)
	if w.TurnedAway(here) {
		t.Error("it was quiet for a whole window")
	}
}
