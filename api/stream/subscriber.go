package stream

import (
	"strconv"
	"time"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/engine"
	"clobd/engine/view"
)

// subscriber is one socket. The Hub's mutex guards it.
type subscriber struct {
	hub      *Hub
	socket   *live.Socket
	id       string
	sequence uint64 // of its last message

	tokens    int // that it gets
	custom    bool
	heartbeat bool

	queue   []parcel
	behind  int  // bytes of the queue
	blocked bool // a part of what was sent waits for room
	due     bool // is in the Hub's list
	cut     bool // closed, because too much waits
}

// parcel is what waits for a subscriber: a bulletin, books as an array, or a bare text.
type parcel struct {
	one   *bulletin
	books []shown
	bare  string
}

// shown is a book that is rendered when it is sent: Snapshots share what a copy would not.
type shown struct {
	snapshot *view.Snapshot
	outcome  engine.Outcome
}

// arrayBooks is how many books come in one array at most.
const arrayBooks = 500

// gets reports whether a subscriber of these outcomes gets a bulletin.
func (s *subscriber) gets(b *bulletin, outcomes uint8) bool {
	return (b.outcome == both || outcomes>>b.outcome&1 == 1) && (!b.asked || s.custom)
}

func (s *subscriber) enqueue(b *bulletin) { s.put(parcel{one: b}, len(b.body)) }

// put appends a message, or closes the socket of a subscriber for whom too much waits already.
func (s *subscriber) put(m parcel, size int) {
	if s.cut {
		return
	}
	if s.behind > maxBehind {
		s.cut, s.queue = true, nil
		s.socket.Close(live.TryLater, "slow consumer")
		return
	}
	s.queue = append(s.queue, m)
	s.behind += size
	if !s.due {
		s.due = true
		s.hub.due = append(s.hub.due, s)
	}
}

// burst is how many bytes of messages go out in one write.
const burst = 64 << 10

// send sends what there is room for.
func (s *subscriber) send(now time.Time) {
	if s.cut || !s.blocked && len(s.queue) == 0 {
		return
	}
	for {
		if s.blocked {
			all, err := s.socket.Flush()
			if s.cut = err != nil; !all {
				return
			}
			s.blocked = false
		}
		if len(s.queue) == 0 {
			s.queue, s.behind = nil, 0
			return
		}
		b, n := s.hub.scratch[:0], 0
		for ; n < len(s.queue) && len(b) < burst; n++ {
			b = s.render(b, &s.queue[n], now)
		}
		s.hub.scratch = b[:0]
		clear(s.queue[:n])
		s.queue = s.queue[n:]
		all, err := s.socket.Send(b)
		if s.cut = err != nil; s.cut {
			return
		}
		s.blocked = !all
	}
}

// render appends a message as a frame.
func (s *subscriber) render(b []byte, m *parcel, now time.Time) []byte {
	switch {
	case m.bare != "":
		return live.AppendFrame(b, []byte(m.bare))
	case m.one != nil:
		s.behind -= len(m.one.body)
		var room [160]byte
		return live.AppendFrame(b, m.one.body, s.appendTail(room[:0], m.one.seq, now))
	}
	text := []byte("[")
	for _, p := range m.books {
		book := s.hub.book(p.snapshot, p.outcome)
		text = append(wire.AppendComma(text), book.body...)
		text = s.appendTail(text, book.seq, now)
	}
	return live.AppendFrame(b, append(text, ']'))
}

// Serve reads what a subscriber asks for, until his socket ends. The socket must be new.
func (h *Hub) Serve(socket *live.Socket) {
	s := h.enter(socket)
	defer h.leave(s)
	for {
		text, err := socket.Read(patience)
		if err != nil {
			return
		}
		h.hear(s, text)
		h.rouse()
	}
}

func (h *Hub) enter(socket *live.Socket) *subscriber {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.streams++
	id := strconv.FormatInt(h.o.Now().UnixNano(), 36) + "-" + strconv.FormatUint(h.streams, 36)
	s := &subscriber{hub: h, socket: socket, id: id}
	h.subscribers[s] = struct{}{}
	return s
}

func (h *Hub) leave(s *subscriber) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.subscribers, s)
	for _, w := range h.watches {
		h.part(w, s)
	}
}

// part takes a subscriber out of a market.
func (h *Hub) part(w *watch, s *subscriber) {
	if _, in := w.subscribers[s]; !in {
		return
	}
	if delete(w.subscribers, s); len(w.subscribers) == 0 {
		w.left = h.o.Now()
	}
}

// watchOf returns the watch of the market of a token, and which of its outcomes the token is; nil
// if no market lists it. A new watch that nobody joins is forgotten.
func (h *Hub) watchOf(id string) (*watch, engine.Outcome) {
	token, ok := engine.ParseToken(id)
	if !ok {
		return nil, 0
	}
	snapshot, o, known := h.o.Board.Book(token)
	if !known {
		return nil, 0
	}
	w := h.watches[snapshot.Market.No]
	if w == nil {
		w = &watch{market: snapshot.Market, told: snapshot, newest: snapshot, since: snapshot.Sequence,
			subscribers: make(map[*subscriber]uint8), left: h.o.Now()}
		h.watches[snapshot.Market.No] = w
	}
	return w, o
}
