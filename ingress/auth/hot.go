package auth

import (
	"encoding/binary"
	"maps"
	"sync"
	"sync/atomic"

	"clobd/engine"
	"clobd/ingress/auth/curve"
)

// When a signer gets a curve.Key, which costs as much as some 23 orders of a newcomer.
const (
	// hotLimit is how many signers are hot at most: 256 keys of 148 KiB are 37 MiB.
	hotLimit = 256
	// hotAfter is how many orders make a signer hot while there is room.
	hotAfter = 32
	// hotInstead is the same when another signer must give way: building keys then costs at most a
	// fifth of the checks before.
	hotInstead = 128
	// hotCounts is the size of the table of counts, 32 KiB.
	hotCounts = 1 << 12
)

// hotSigners holds the keys of the signers that a node sees often, and traces of newcomers.
//
//	guess ──► all (a map never changed, swapped whole) ──► Key of a hot signer
//	      ──► newcomers ──► Trace of an earlier order
//	      ──► nobody known ──► recovery that leaves a Trace
//	counted ──► counts ──► often enough, nobody building ──► NewKey, swap all
//
// Any number of goroutines may use one. None waits: one key is built at a time, and meanwhile all
// others go on without. A newcomer whose trace is being changed counts as unknown.
type hotSigners struct {
	checker *curve.Checker
	limit   int
	all     atomic.Pointer[map[engine.Address]*hotSigner]

	newcomers [newcomerSlots]newcomer // by the address; the latest takes the slot

	// counts hold 16 bits of orders below 48 bits of the address. A signer that finds another's
	// count decrements it, and takes the slot over at zero. Two goroutines may lose a count.
	counts [hotCounts]atomic.Uint64

	building sync.Mutex // taken with TryLock only; guards ring, hand and the writing of all
	ring     []*hotSigner
	hand     int
}

type hotSigner struct {
	address engine.Address
	key     *curve.Key
	used    atomic.Bool // since the hand passed
}

func newHotSigners(limit int, checker *curve.Checker) *hotSigners {
	h := &hotSigners{checker: checker, limit: limit}
	h.all.Store(&map[engine.Address]*hotSigner{})
	return h
}

func (h *hotSigners) find(a *engine.Address) *hotSigner { return (*h.all.Load())[*a] }

// use notes that the key was of use.
func (s *hotSigner) use() {
	if !s.used.Load() { // usually it is set: then no core writes the shared cache line
		s.used.Store(true)
	}
}

// counted counts an order that the given key signed, and makes the signer hot if that was often
// enough.
func (h *hotSigners) counted(a engine.Address, key []byte) {
	id := binary.LittleEndian.Uint64(a[:])
	slot := &h.counts[id%hotCounts]
	old := slot.Load()
	count, need := old&0xffff, uint64(hotAfter)
	switch {
	case old>>16 == id>>16:
		count = min(count+1, 0xffff)
	case count > 0:
		slot.Store(old - 1)
		return
	default:
		count = 1
	}
	if len(*h.all.Load()) >= h.limit {
		need = hotInstead
	}
	if count >= need && h.building.TryLock() {
		count = 0
		h.build(a, key)
		h.building.Unlock()
	}
	slot.Store(id>>16<<16 | count)
}

func (h *hotSigners) build(a engine.Address, key []byte) {
	old := *h.all.Load()
	if old[a] != nil {
		return // another goroutine was first
	}
	who := &hotSigner{address: a, key: curve.NewKey(key)}
	all := maps.Clone(old)
	if len(h.ring) < h.limit {
		h.ring = append(h.ring, who)
	} else {
		delete(all, h.evict(who))
	}
	all[a] = who
	h.all.Store(&all)
}

// evict puts who in the place of a signer of the ring, and returns the address of that signer: the
// first from the hand on that was not used since the hand passed. After two rounds it takes any.
func (h *hotSigners) evict(who *hotSigner) engine.Address {
	for range 2 * len(h.ring) {
		if !h.ring[h.hand].used.Swap(false) {
			break
		}
		h.hand = (h.hand + 1) % len(h.ring)
	}
	out := h.ring[h.hand].address
	h.ring[h.hand] = who
	h.hand = (h.hand + 1) % len(h.ring)
	return out
}
