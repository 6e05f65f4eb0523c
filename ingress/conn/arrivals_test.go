package conn

import (
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"
)

// TestArrivals: an address that comes too often within a period is let in again in the next one,
// and others meanwhile. However many addresses come, the counts have a bound.
func TestArrivals(t *testing.T) {
	house := NewTurnstile(Options{Most: 64, MostPerAddress: 16})
	house.Limit(Arrivals{Strangers: 500, Known: 700})
	now := time.Unix(1_700_000_000, 0)
	caller := func(i uint32, at time.Time) *Conn {
		c := &Conn{Direct: true, turnstile: house, began: at}
		binary.BigEndian.PutUint32(c.from[:], i)
		c.network = c.from
		c.network[18] = 1
		return c
	}
	for i := range 500 {
		c := caller(1, now)
		if refused, _ := house.enter(c); refused != nil {
			t.Fatalf("connection %d: %+v", i, refused)
		}
		house.leave(c)
	}
	if refused, give := house.enter(caller(1, now)); refused == nil || give != nil {
		t.Error("one too many was let in, or somebody gives way for it")
	}
	if refused, _ := house.enter(caller(2, now)); refused != nil {
		t.Errorf("somebody else: %+v", refused)
	}
	known := caller(1, now)
	house.known.add(known.from, known.network)
	for i := range 699 - 501 + 1 {
		c := caller(1, now)
		if refused, _ := house.enter(c); refused != nil {
			t.Fatalf("connection %d of a known address: %+v", i, refused)
		}
		house.leave(c)
	}
	if refused, _ := house.enter(caller(1, now)); refused == nil {
		t.Error("one too many of a known address was let in")
	}
	if refused, _ := house.enter(caller(1, now.Add(periodSeconds*time.Second))); refused != nil {
		t.Errorf("a period later: %+v", refused)
	}
	for i := range uint32(2 * arrivalsMost) {
		if n := house.told.count(caller(i, now).from, now); n != 1 {
			t.Fatalf("address %d was told %d times", i, n)
		}
	}
	if len(house.told.of) > arrivalsMost {
		t.Errorf("%d addresses are counted", len(house.told.of))
	}
}

// TestShares: where all places are taken, an address with more than its share gains none at the
// cost of others, and one with fewer does.
func TestShares(t *testing.T) {
	house := NewTurnstile(Options{Most: 400, MostPerAddress: 400})
	now := time.Unix(1_700_000_000, 0)
	enter := func(name byte) (refused, gives bool) {
		c := &Conn{Direct: true, turnstile: house, began: now}
		c.from[0], c.network[0], c.network[18] = name, name, 1
		r, give := house.enter(c)
		return r != nil, give != nil
	}
	for i := range 300 {
		if refused, _ := enter(byte(i % 2)); refused {
			t.Fatalf("connection %d was refused", i)
		}
	}
	for name, want := range map[byte]bool{0: false, 1: false, 2: true} {
		if refused, gives := enter(name); !refused || gives != want {
			t.Errorf("address %d: refused %v, others give way %v", name, refused, gives)
		}
	}
}

// TestPauseGivesWay: connections whose requests rest give way to an address with far fewer, and
// their rests end.
func TestPauseGivesWay(t *testing.T) {
	house := NewTurnstile(Options{Most: 64, MostPerAddress: 64})
	now := time.Now()
	resting := make(chan struct{}, 48)
	var ended sync.WaitGroup
	for range cap(resting) {
		near, far := net.Pipe()
		t.Cleanup(func() { _ = far.Close() })
		c := &Conn{Conn: near, Direct: true, turnstile: house, timeouts: &house.Timeouts, began: now}
		c.from[0], c.network[0], c.network[18] = 1, 1, 1
		if refused, _ := house.enter(c); refused != nil {
			t.Fatalf("%+v", refused)
		}
		ended.Go(func() {
			c.Pause(func(gone <-chan struct{}) {
				resting <- struct{}{}
				<-gone
			})
			c.Pause(func(<-chan struct{}) { t.Error("a closed connection rests") })
		})
	}
	for range cap(resting) {
		<-resting
	}
	for house.Open() > 0 {
		c := &Conn{Direct: true, turnstile: house, timeouts: &house.Timeouts, began: now}
		c.from[0] = 2
		if house.evict(c, func(*Conn) bool { return true }) == 0 && house.Open() > 16 {
			continue // the last of them are about to rest
		} else if house.Open() <= 16 { // no longer far more than others have
			for o := range house.conns {
				_ = o.Close()
			}
		}
	}
	ended.Wait()
}
