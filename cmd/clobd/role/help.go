package role

import (
	"net"
	"sync"
	"time"
)

// helpPause is the pause after each answer to a member that heals: 2 MiB are read for one, and who
// needs no help may ask for ever.
const helpPause = 20 * time.Millisecond

// help is given to each member over one connection at a time.
type help struct {
	mu sync.Mutex
	to map[uint64]*helped
}

// helped is a member that heals, or says so.
type helped struct {
	turn sync.Mutex // held while it is answered
	conn net.Conn   // the newest; guarded by mu of help
}

// begin ends the connection that a member had before, if there is one, and waits until nobody
// answers there any more. The caller calls end when he is done with this one.
func (h *help) begin(id uint64, conn net.Conn) (end func()) {
	h.mu.Lock()
	m := h.to[id]
	if m == nil {
		if m = new(helped); h.to == nil {
			h.to = map[uint64]*helped{}
		}
		h.to[id] = m
	}
	before := m.conn
	m.conn = conn
	h.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
	m.turn.Lock()
	return m.turn.Unlock
}
