package limits

import (
	"net/netip"
	"sync"
	"time"

	"clobd/ingress/conn"
)

// Rests are pauses before answers to those who have failed too often. The more requests of an
// address rest, the longer each does: an address with many connections costs little more than one
// with few. Any number of goroutines may use Rests.
type Rests struct {
	shortest time.Duration
	stopped  chan struct{}
	stop     sync.Once

	mutex sync.Mutex
	of    map[[20]byte]int // requests that rest now, by address
}

const (
	restsTogether = 16 // requests of an address rest no longer than one
	longestRest   = 16 // times the shortest
)

// NewRests makes Rests with a shortest pause.
func NewRests(shortest time.Duration) *Rests {
	return &Rests{shortest: shortest, stopped: make(chan struct{}), of: make(map[[20]byte]int)}
}

// Rest pauses a request of an address, until Stop at most, or until gone is closed.
func (r *Rests) Rest(from netip.Addr, gone <-chan struct{}) {
	key := conn.AddressKey(from)
	pause := time.NewTimer(r.shortest * time.Duration(min(1+r.add(key, 1)/restsTogether, longestRest)))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-r.stopped:
	case <-gone:
	}
	r.add(key, -1)
}

// add returns how many requests of an address rest besides the one that begins or ends.
func (r *Rests) add(key [20]byte, n int) (others int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	others = r.of[key]
	if r.of[key] = others + n; r.of[key] == 0 {
		delete(r.of, key)
	}
	return others
}

// Stop ends all pauses.
func (r *Rests) Stop() { r.stop.Do(func() { close(r.stopped) }) }
