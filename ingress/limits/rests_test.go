package limits

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestRests: the more requests of an address rest, the longer the next one does, up to a bound.
// Other addresses rest as before, and nobody after a stop.
func TestRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRests(time.Second)
		crowd, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		rested := func(from netip.Addr) time.Duration {
			began := time.Now()
			r.Rest(from, nil)
			return time.Since(began)
		}
		if got := rested(crowd); got != time.Second {
			t.Errorf("alone: %v", got)
		}
		long := make([]time.Duration, 1000)
		for i := range long {
			go func() { long[i] = rested(crowd) }()
			synctest.Wait()
		}
		if got := rested(other); got != time.Second {
			t.Errorf("another address: %v", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if long[15] != time.Second || long[16] != 2*time.Second || long[999] != longestRest*time.Second {
			t.Errorf("%v, %v, %v", long[15], long[16], long[999])
		}
		if len(r.of) != 0 {
			t.Errorf("%d addresses still rest", len(r.of))
		}
		gone := make(chan struct{})
		close(gone)
		began := time.Now()
		if r.Rest(crowd, gone); !time.Now().Equal(began) {
			t.Error("rested although the client had gone")
		}
		go func() {
			time.Sleep(time.Millisecond)
			r.Stop()
			r.Stop()
		}()
		if got := rested(crowd); got != time.Millisecond {
			t.Errorf("at a stop: %v", got)
		}
	})
}
