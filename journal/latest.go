package journal

import "sync"

// latestFrames holds the last durable frames in memory and wakes the Tails. The committer pushes,
// Tails look: each holds the lock for a few instructions only, so no Tail can hold the committer
// back.
type latestFrames struct {
	mu      sync.Mutex
	first   sync.Cond // durable moved, or something closed: wakes the Tails that hurry
	more    sync.Cond // the same for the others
	durable uint64    // number of the last durable frame
	closed  bool
	limit   int // bytes
	ring    frames
}

func (h *latestFrames) init(limit int) {
	h.first.L, h.more.L = &h.mu, &h.mu
	h.limit = limit
}

// push shows frame no, the next one, to all Tails.
func (h *latestFrames) push(no uint64, b []byte) {
	h.mu.Lock()
	h.durable = no
	h.ring.push(b)
	for h.ring.bytes > h.limit {
		h.ring.drop()
	}
	h.mu.Unlock()
	h.wake()
}

// wake wakes all Tails. On a busy machine the one that is woken first runs first.
func (h *latestFrames) wake() {
	h.first.Broadcast()
	h.more.Broadcast()
}

func (h *latestFrames) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.wake()
}

func (h *latestFrames) last() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.durable
}

// look returns frame no, or nil if memory does not have it any more. Callers hold mu.
func (h *latestFrames) look(no uint64) []byte {
	back := h.durable - no // 0: the newest
	if back >= uint64(h.ring.count) {
		return nil
	}
	return h.ring.at(h.ring.count - 1 - int(back))
}

// frames is a queue of byte slices in a buffer that grows by doubling.
type frames struct {
	slots [][]byte // a power of two
	first int
	count int
	bytes int
}

func (q *frames) at(i int) []byte { return q.slots[(q.first+i)&(len(q.slots)-1)] }

// push appends b.
func (q *frames) push(b []byte) {
	if q.count == len(q.slots) {
		grown := make([][]byte, max(64, 2*len(q.slots)))
		for i := range q.count {
			grown[i] = q.at(i)
		}
		q.slots, q.first = grown, 0
	}
	q.slots[(q.first+q.count)&(len(q.slots)-1)] = b
	q.count++
	q.bytes += len(b)
}

func (q *frames) drop() {
	q.bytes -= len(q.slots[q.first])
	q.slots[q.first] = nil
	q.first = (q.first + 1) & (len(q.slots) - 1)
	q.count--
}
