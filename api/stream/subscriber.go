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

	queue  []parcel
	behind int       // bytes of the queue
	rest   int       // bytes that the socket has taken and not sent
	since  time.Time // when rest last became less, or there was none
	due    bool      // is in the Hub's list
	cut    bool      // closed

	spent bucket

	user *userPart // of the user channel; nil: a subscriber of markets, or not logged in yet
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
		s.close(live.TryLater, "slow consumer")
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

// waits reports whether something is left to be sent when the socket has room.
func (s *subscriber) waits() bool { return !s.cut && (s.rest > 0 || len(s.queue) > 0) }

// close ends the socket and tells why.
func (s *subscriber) close(code int, why string) {
	if s.cut {
		return
	}
	s.hub.figures.closes.WithLabelValues(why).Inc()
	s.socket.Close(code, why)
	s.drop()
}

// drop forgets what waits for a closed socket.
func (s *subscriber) drop() {
	s.hub.rests -= s.rest
	s.cut, s.queue, s.behind, s.rest = true, nil, 0, 0
}

// flush sends what the socket has taken, and reports whether all of it is on its way.
func (s *subscriber) flush(now time.Time) bool {
	if s.rest == 0 {
		return true
	}
	if _, err := s.socket.Flush(); err != nil {
		s.drop()
		return false
	}
	if s.measure(now); s.rest > 0 && now.Sub(s.since) > mostStuck {
		s.close(live.TryLater, "slow consumer")
	}
	return s.rest == 0 && !s.cut
}

// measure notes what the socket has not sent.
func (s *subscriber) measure(now time.Time) {
	rest := s.socket.Rest()
	if rest == 0 || rest < s.rest || s.rest == 0 {
		s.since = now
	}
	s.hub.rests += rest - s.rest
	s.rest = rest
}

// send sends what there is room for.
func (s *subscriber) send(now time.Time) {
	for !s.cut && s.flush(now) && len(s.queue) > 0 && s.hub.rests < maxRests {
		b, n := s.hub.scratch[:0], 0
		for ; n < len(s.queue) && len(b) < burst; n++ {
			b = s.render(b, &s.queue[n], now)
		}
		s.hub.scratch = b[:0]
		clear(s.queue[:n])
		if s.queue = s.queue[n:]; len(s.queue) == 0 {
			s.queue, s.behind = nil, 0
		}
		s.hub.figures.messages.Add(float64(n))
		s.hub.figures.bytes.Add(float64(len(b)))
		if _, err := s.socket.Send(b); err != nil {
			s.drop()
			return
		}
		s.measure(now)
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
func (h *Hub) Serve(socket *live.Socket) { h.serve(socket, h.hear) }

// ServeUser is Serve for the user channel: login checks whose orders the subscriber may see.
func (h *Hub) ServeUser(socket *live.Socket, login wire.Login) {
	h.serve(socket, func(s *subscriber, text []byte) bool { return h.owners.hear(s, text, login) })
}

func (h *Hub) serve(socket *live.Socket, hear func(*subscriber, []byte) bool) {
	s := h.enter(socket)
	defer h.leave(s)
	socket.Until(time.Now().Add(firstWish))
	for {
		text, err := socket.Read(patience)
		if err != nil {
			return
		}
		if hear(s, text) {
			socket.Until(time.Time{})
		}
		h.rouse()
	}
}

// bucket bounds what a subscriber may ask for. A message costs one unit, and one more for each
// tokensUnit tokens that it names.
type bucket struct {
	spent float64
	at    time.Time
}

const (
	tokensUnit = 100
	mostUnits  = 400 // at once
	unitsBack  = 20  // a second
)

// take spends units, and reports whether there were as many.
func (b *bucket) take(units float64, now time.Time) bool {
	b.spent = max(b.spent-now.Sub(b.at).Seconds()*unitsBack, 0) + units
	b.at = now
	return b.spent <= mostUnits
}

func (h *Hub) enter(socket *live.Socket) *subscriber {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.streams++
	id := strconv.FormatInt(h.o.Now().UnixNano(), 36) + "-" + strconv.FormatUint(h.streams, 36)
	s := &subscriber{hub: h, socket: socket, id: id}
	h.subscribers[s] = struct{}{}
	h.figures.sockets.Inc()
	return s
}

func (h *Hub) leave(s *subscriber) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.subscribers, s)
	s.drop()
	if s.user != nil {
		delete(h.owners.readers, s)
		h.figures.readers.Dec()
	}
	h.figures.sockets.Dec()
	h.figures.tokens.Sub(float64(s.tokens))
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
