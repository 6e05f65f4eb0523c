package conn

import (
	"net/netip"
	"sync"
	"sync/atomic"
)

// Budget bounds the bytes that callers make the node hold at once: all of them together, and each
// address. An IPv6 network of 48 bits has as much as a few addresses. Any goroutine may use it.
type Budget struct {
	all, each int

	mutex   sync.Mutex
	used    int
	callers map[[20]byte]int // bytes of each address and network that has any
}

// NewBudget makes a Budget of this many bytes in all, and of each address.
func NewBudget(all, each int) *Budget {
	return &Budget{all: all, each: each, callers: make(map[[20]byte]int)}
}

// Take takes n bytes for an address, or none: then it returns false, and crowded reports whether
// the others have used up what there is for all. A part of that is kept for those who are known.
func (b *Budget) Take(a netip.Addr, n int, known bool) (ok, crowded bool) {
	all := b.all
	if !known {
		all -= all / strangersLeave
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch {
	case b.callers[AddressKey(a)]+n > b.each, b.callers[networkKey(a)]+n > networkAddresses*b.each:
		return false, false
	case b.used+n > all:
		return false, true
	}
	b.count(a, n)
	return true, false
}

// count adds n to the bytes of an address. The mutex is held.
func (b *Budget) count(a netip.Addr, n int) {
	b.used += n
	for _, key := range [...][20]byte{AddressKey(a), networkKey(a)} {
		if b.callers[key] += n; b.callers[key] == 0 {
			delete(b.callers, key)
		}
	}
}

// Give gives back n of the bytes that an address took.
func (b *Budget) Give(a netip.Addr, n int) {
	if n == 0 {
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.count(a, -n); b.used < 0 || b.callers[AddressKey(a)] < 0 {
		panic("BUG: more bytes given back than taken")
	}
}

// Used returns how many bytes are taken.
func (b *Budget) Used() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.used
}

// Held is what one caller has taken of a Budget. One goroutine at a time may call Add, any Release.
type Held struct {
	Budget *Budget
	of     netip.Addr
	bytes  atomic.Int64
}

// Add notes that the caller has taken n more bytes. All calls name the same address.
func (h *Held) Add(of netip.Addr, n int) {
	h.of = of
	h.bytes.Add(int64(n))
}

// Release gives all of it back.
func (h *Held) Release() {
	if n := h.bytes.Swap(0); n > 0 {
		h.Budget.Give(h.of, int(n))
	}
}
