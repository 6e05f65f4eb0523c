package conn

import (
	"net/netip"
	"sync"
)

// Budget bounds the bytes that callers make the node hold at once: all of them together, and each
// address. Any goroutine may use it.
type Budget struct {
	all, each int

	mutex   sync.Mutex
	used    int
	callers map[[20]byte]int // bytes of each address that has any
}

// NewBudget makes a Budget of this many bytes in all, and of each address.
func NewBudget(all, each int) *Budget {
	return &Budget{all: all, each: each, callers: make(map[[20]byte]int)}
}

// Take takes n bytes for an address, or none: then it returns false, and crowded reports whether
// the others have used up what there is for all.
func (b *Budget) Take(a netip.Addr, n int) (ok, crowded bool) {
	key := AddressKey(a)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch {
	case b.callers[key]+n > b.each:
		return false, false
	case b.used+n > b.all:
		return false, true
	}
	b.used += n
	b.callers[key] += n
	return true, false
}

// Give gives back n of the bytes that an address took.
func (b *Budget) Give(a netip.Addr, n int) {
	if n == 0 {
		return
	}
	key := AddressKey(a)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.used -= n
	if b.callers[key] -= n; b.callers[key] == 0 {
		delete(b.callers, key)
	}
	if b.used < 0 || b.callers[key] < 0 {
		panic("BUG: more bytes given back than taken")
	}
}

// Used returns how many bytes are taken.
func (b *Budget) Used() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.used
}
