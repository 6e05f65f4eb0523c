package stream

import (
	"clobd/api/wire/live"
	"clobd/engine"
)

// failed is the close reason after a bug of the node.
const failed = "the node met a bug"

// survives calls do, and reports whether do did not panic. It logs and counts a panic.
func (h *Hub) survives(where string, do func()) (whole bool) {
	defer func() {
		if cause := recover(); cause != nil {
			h.o.Panicked(where, cause)
		}
	}()
	do()
	return true
}

// abandon closes the sockets of all subscribers of a market whose change could not be told because
// of a panic, and forgets the market. A client that names the market again gets a fresh book.
func (h *Hub) abandon(w *watch) {
	for s := range w.subscribers {
		s.close(live.Broken, failed)
	}
	h.gone = max(h.gone, h.told, h.heap.last())
	delete(h.watches, w.market.No)
}

// beginAnew closes all sockets after a panic that may have left the Hub inconsistent, and forgets
// everything about markets. Clients that come back get fresh books.
func (h *Hub) beginAnew() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for s := range h.subscribers {
		h.survives("the end of a socket", func() {
			if s.close(live.Broken, failed); s.leaves {
				s.socket.End() // the Hub forgets what is left
			}
		})
		s.drop()
	}
	h.watches = make(map[engine.MarketNo]*watch)
	h.recent, h.kept, h.forgotten = nil, 0, max(h.forgotten, h.heap.restart(), h.o.Board.Shown())
	h.gone = max(h.gone, h.forgotten)
	h.out.forms.forget()
	h.waiting, h.listed, h.issue, h.out.due, h.out.rests = nil, nil, nil, nil, 0
}

// restart empties a heap, and returns the Sequence up to which it has read frames.
func (p *heap) restart() engine.Sequence {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.markets = make(map[engine.MarketNo][]deal)
	p.opened = nil
	return p.read
}
