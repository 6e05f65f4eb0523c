package stream

import (
	"errors"
	"strconv"
	"time"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/engine"
	"clobd/engine/view"
)

// subscriber is one socket. The Hub's mutex guards it.
type subscriber struct {
	// The fields that every message needs stand first, close together: between two messages a
	// subscriber's fields leave the CPU's caches.
	socket    *live.Socket
	hub       *Hub
	queue     *sheaf   // nil: empty
	later     *backlog // follows the queue; nil: the subscriber does not lag, or does not conflate
	behind    int      // length of the bodies in queue and later, in bytes
	rest      int      // bytes that the socket has accepted and not sent
	sequence  uint64   // number of the last message
	id        string
	due       bool // is in outbox.due
	cut       bool // closed, or about to be
	leaves    bool // the socket will be closed once rest is sent
	custom    bool
	heartbeat bool
	conflates bool

	number uint64    // counts the subscribers of the Hub
	tokens int       // number of tokens that he gets
	since  time.Time // when rest last shrank or was 0
	spent  bucket
	user   *userPart // nil: not logged in to the user channel
}

// shown is a book that is rendered only when it is sent: Snapshots share memory, and texts do not.
type shown struct {
	snapshot *view.Snapshot
	outcome  engine.Outcome
}

// arrayBooks is how many books come in one array at most.
const arrayBooks = 500

// gets reports whether the subscriber gets a bulletin if he watches the given outcomes.
func (s *subscriber) gets(b *bulletin, outcomes uint8) bool {
	return (b.outcome == both || outcomes>>b.outcome&1 == 1) && (!b.asked || s.custom)
}

// enqueue queues a message, or closes the socket if too much waits for the subscriber already.
func (s *subscriber) enqueue(b *bulletin) {
	if s.cut {
		return
	}
	if s.behind > maxBehind {
		s.close(live.TryLater, slow)
		return
	}
	s.behind += len(b.body)
	if s.later != nil && b.kind != bare {
		s.later.kept = append(s.later.kept, b)
		return
	}
	s.queue = s.queue.join(sheafOf(b))
	s.await()
}

// await puts the subscriber into outbox.due, because something waits for him.
func (s *subscriber) await() {
	if !s.due {
		s.due = true
		s.hub.out.due = append(s.hub.out.due, s)
	}
}

// enqueueAll queues the bulletins of a shared sheaf. The subscriber must have no backlog.
func (s *subscriber) enqueueAll(l *sheaf) {
	switch {
	case s.cut || len(l.bulletins) == 0:
		return
	case s.behind+l.bytes <= maxBehind:
		s.queue = s.queue.join(l)
		s.behind += l.bytes
		s.await()
	default:
		for _, b := range l.bulletins {
			s.enqueue(b)
		}
	}
}

// show queues books: many in one message, but not more bytes than a socket can keep. If the
// subscriber has a backlog, each book is a message of its own, which release sorts by Sequence.
func (s *subscriber) show(books []shown) {
	units := 0
	for i := range books {
		units += unitsOf(books[i].snapshot) / 2
	}
	s.hub.effort.add(units, s.hub.o.Now())
	if s.later != nil {
		for i := range books {
			s.enqueue(&bulletin{seq: books[i].snapshot.Sequence, books: books[i : i+1]})
		}
		return
	}
	for len(books) > 0 {
		n, size := 0, 0
		for ; n < len(books) && n < arrayBooks && size < maxArray; n++ {
			size += books[n].bytes()
		}
		s.enqueue(&bulletin{books: books[:n:n]})
		books = books[n:]
	}
}

// bytes estimates the length of a book.
func (p *shown) bytes() int {
	levels := p.snapshot.Depth(p.outcome, engine.Buy) + p.snapshot.Depth(p.outcome, engine.Sell)
	return bookBytes + levelBytes*levels
}

// Upper bounds, in bytes, of a book without its levels, and of one level.
const (
	bookBytes  = 1024
	levelBytes = 48
)

// burst is how many bytes of messages go out in one write.
const burst = 64 << 10

// waits reports whether something is left to be sent when the socket has room.
func (s *subscriber) waits() bool {
	return s.leaves || !s.cut && (s.rest > 0 || s.queue != nil || s.later != nil)
}

// close tells the client why, and closes the socket. If the socket has unsent bytes, the close
// frame follows them, and the subscriber stays in outbox.due until all are sent.
func (s *subscriber) close(code int, why string) {
	if s.cut {
		return
	}
	s.hub.figures.closes.WithLabelValues(why).Inc()
	s.socket.Tell(code, why)
	s.cut, s.queue, s.later, s.behind, s.leaves = true, nil, nil, 0, true
	if s.measure(s.hub.o.Now()); s.rest == 0 {
		s.depart()
		return
	}
	s.await()
}

// slow is the close reason of subscribers who read too slowly.
const slow = "slow consumer"

// takeLeave sends what is left for a socket that will be closed. When nothing is left, or the
// client takes no more, takeLeave closes the socket.
func (s *subscriber) takeLeave(now time.Time) {
	_, err := s.socket.Flush()
	if s.measure(now); err != nil || s.rest > 0 && now.Sub(s.since) > mostStuck {
		s.end()
	} else if s.rest == 0 {
		s.depart()
	}
}

// depart closes the connection, after some time for the client to read what the kernel still holds.
func (s *subscriber) depart() {
	s.socket.Leave(mostStuck)
	s.drop()
}

// end closes the connection at once, whether or not the client has read everything.
func (s *subscriber) end() {
	s.socket.End()
	s.drop()
}

// lose drops a subscriber after a failed send, and counts the socket if he has read too slowly.
func (s *subscriber) lose(err error) {
	if errors.Is(err, live.Unread) {
		s.hub.figures.closes.WithLabelValues(slow).Inc()
	}
	s.drop()
}

// drop marks the subscriber as cut, and forgets everything that waits for him.
func (s *subscriber) drop() {
	s.hub.out.rests -= s.rest
	s.cut, s.queue, s.later, s.behind, s.rest, s.leaves = true, nil, nil, 0, 0, false
}

// flush sends the bytes that the socket has accepted and not sent. It reports whether none is left.
func (s *subscriber) flush(now time.Time) bool {
	if s.rest == 0 {
		return true
	}
	if _, err := s.socket.Flush(); err != nil {
		s.drop()
		return false
	}
	if s.measure(now); s.rest > 0 && now.Sub(s.since) > mostStuck {
		s.close(live.TryLater, slow)
		s.end()
	}
	return s.rest == 0 && !s.cut
}

// measure notes how many bytes the socket has accepted and not sent.
func (s *subscriber) measure(now time.Time) {
	rest := s.socket.Rest()
	if rest == 0 || rest < s.rest || s.rest == 0 {
		s.since = now
	}
	s.hub.out.rests += rest - s.rest
	s.rest = rest
}

// offer sends what the socket has room for. It may add the last frames to the batch, which the
// caller then flushes.
func (s *subscriber) offer(now time.Time) {
	if s.leaves {
		s.takeLeave(now)
		return
	}
	h, ms := s.hub, now.UnixMilli()
	for !s.cut && s.flush(now) && h.out.rests < maxRests {
		b := s.next(ms)
		if len(b) == 0 {
			break
		}
		h.bytes += len(b)
		if s.queue == nil && s.later == nil && h.out.add(s, b) {
			return
		}
		all, err := s.socket.Send(b)
		if err != nil {
			s.lose(err)
			return
		}
		if !all {
			s.measure(now)
		}
	}
}

// settle begins a backlog for a subscriber who conflates, if something is left to be sent.
func (s *subscriber) settle() {
	if s.conflates && s.later == nil && !s.leaves && s.waits() {
		s.later = &backlog{}
	}
}

// next returns the frames to be sent next, or nothing if no message waits. The frames are valid
// until the next call for any subscriber.
func (s *subscriber) next(ms int64) []byte {
	h, q := s.hub, s.queue
	if q == nil && s.later != nil {
		return s.release(ms)
	} else if q == nil {
		return nil
	}
	if b := h.out.forms.fill(s, ms); b != nil {
		h.sent += len(q.bulletins)
		s.behind -= q.bytes
		s.queue = nil
		return b
	}
	b, n := h.out.scratch[:0], 0
	for ; n < len(q.bulletins) && len(b) < burst; n++ {
		b = s.render(b, q.bulletins[n], ms)
		s.behind -= len(q.bulletins[n].body)
	}
	h.sent += n
	s.queue = q.cut(n)
	h.out.scratch = b[:0]
	return b
}

// render appends a message as a frame.
func (s *subscriber) render(b []byte, m *bulletin, ms int64) []byte {
	switch {
	case m.kind == bare:
		return live.AppendFrame(b, m.body)
	case m.books != nil:
		text := s.appendMessage([]byte("["), m, ms)
		return live.AppendFrame(b, append(text, ']'))
	}
	var room [128]byte
	return live.AppendFrame(b, m.body, s.appendTail(room[:0]), m.end(ms))
}

// appendMessage appends a message to an array. Books and a collapse may become several elements.
func (s *subscriber) appendMessage(b []byte, m *bulletin, ms int64) []byte {
	switch {
	case m.books != nil:
		for _, p := range m.books {
			b = s.appendMessage(b, s.hub.book(p.snapshot, p.outcome), ms)
		}
		return b
	case m.collapse != nil:
		return s.appendCollapse(b, m.collapse, ms)
	}
	b = append(wire.AppendComma(b), m.body...)
	return append(s.appendTail(b), m.end(ms)...)
}

// Serve reads what a subscriber asks for, until his socket ends. The socket must be new.
func (h *Hub) Serve(socket *live.Socket) { h.serve(socket, h.hear) }

// ServeUser is Serve for the user channel: login checks whose orders the subscriber may see.
func (h *Hub) ServeUser(socket *live.Socket, login wire.Login) {
	h.serve(socket, func(s *subscriber, text []byte) bool { return h.owners.hear(s, text, login) })
}

func (h *Hub) serve(socket *live.Socket, hear func(*subscriber, []byte) bool) {
	var s *subscriber
	live.Apart(func() {
		s = h.enter(socket)
		socket.Until(time.Now().Add(firstWish))
	})
	defer h.leave(s)
	late := 0
	s.count(socket.Each(patience, func(text []byte) {
		if h.owners.gone(s) { // the socket is closed, and the client only reads what is left
			if late++; late > mostLate {
				socket.End()
			}
			return
		}
		begun := false
		if !h.survives("what a subscriber asked", func() { begun = hear(s, text) }) {
			s.fail()
			return
		}
		if begun {
			socket.Until(time.Time{})
		}
		h.rouse()
	}))
}

// mostLate is how many texts a subscriber may still send after the Hub has closed his socket.
const mostLate = 100

// count adds a socket to the metrics if Each has closed it.
func (s *subscriber) count(err error) {
	s.hub.mutex.Lock()
	defer s.hub.mutex.Unlock()
	var why live.Ended
	if errors.As(err, &why) && !s.cut {
		s.hub.figures.closes.WithLabelValues(string(why)).Inc()
	}
}

// fail closes the socket of a subscriber whose request has caused a panic.
func (s *subscriber) fail() {
	s.hub.mutex.Lock()
	defer s.hub.mutex.Unlock()
	s.close(live.Broken, failed)
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

// take spends units, and reports whether the bucket held that many.
func (b *bucket) take(units float64, now time.Time) bool {
	b.spent = max(b.spent-now.Sub(b.at).Seconds()*unitsBack, 0) + units
	b.at = now
	return b.spent <= mostUnits
}

func (h *Hub) enter(socket *live.Socket) *subscriber {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.streams++
	id := strconv.FormatInt(h.o.Now().UnixMilli(), 36) + "-" + strconv.FormatUint(h.streams, 36)
	s := &subscriber{hub: h, socket: socket, id: id, number: h.streams}
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
		w.part(s)
	}
}

// part removes a subscriber from a market.
func (w *watch) part(s *subscriber) {
	if _, in := w.subscribers[s]; !in {
		return
	}
	w.all = nil
	if delete(w.subscribers, s); len(w.subscribers) == 0 {
		w.left = s.hub.o.Now()
	}
	if s.later != nil {
		delete(s.later.changes, w)
	}
}

// watchOf returns the watch of a token's market, and the outcome of the token. It returns nil if no
// market lists the token. If nobody subscribes to a new watch, keepUp forgets it.
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
	// A subscriber who gets a book must already have got everything that belongs to earlier Sequences.
	for end := time.Now().Add(mostAhead); w == nil && snapshot.Sequence > h.told &&
		time.Now().Before(end); time.Sleep(settle) {
		h.observe()
		snapshot, _, _ = h.o.Board.Book(token)
	}
	if w == nil {
		w = &watch{market: snapshot.Market, told: snapshot, newest: snapshot, since: snapshot.Sequence,
			subscribers: make(map[*subscriber]uint8), left: h.o.Now()}
		h.watches[snapshot.Market.No] = w
	}
	return w, o
}
