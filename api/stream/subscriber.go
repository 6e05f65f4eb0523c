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
	// The fields that every message needs stand first: between two messages none is in a cache.
	socket    *live.Socket
	hub       *Hub
	queue     *sheaf   // nil: empty
	later     *backlog // what comes behind the queue of one who lags and conflates
	behind    int      // bytes of both
	rest      int      // bytes that the socket has taken and not sent
	sequence  uint64   // of its last message
	id        string
	due       bool // is in the Hub's list
	cut       bool // closed, or about to be
	leaves    bool // the socket will be closed, once the client has read the rest
	custom    bool
	heartbeat bool
	conflates bool

	number uint64    // among all subscribers so far
	tokens int       // that it gets
	since  time.Time // when rest last became less, or there was none
	spent  bucket
	user   *userPart // of the user channel; nil: a subscriber of markets, or not logged in yet
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

// enqueue appends a message, or closes the socket of a subscriber for whom too much waits already.
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

// await notes that something waits for the subscriber.
func (s *subscriber) await() {
	if !s.due {
		s.due = true
		s.hub.out.due = append(s.hub.out.due, s)
	}
}

// enqueueAll is enqueue for a sheaf that others share, of a subscriber who does not lag.
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

// show puts books into the queue, many in one text, but no more than the socket can keep. One who
// lags gets each in its place among the changes that wait.
func (s *subscriber) show(books []shown) {
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

// bytes is how long a book is, about.
func (p *shown) bytes() int {
	levels := p.snapshot.Depth(p.outcome, engine.Buy) + p.snapshot.Depth(p.outcome, engine.Sell)
	return bookBytes + levelBytes*levels
}

// What a book takes beside its levels, and a level, in bytes, at most.
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

// close ends the socket and tells why. Half a frame may be on its way: the client is told behind
// its other half, if he reads so far.
func (s *subscriber) close(code int, why string) {
	if s.cut {
		return
	}
	s.hub.figures.closes.WithLabelValues(why).Inc()
	s.socket.Tell(code, why)
	s.cut, s.queue, s.later, s.behind, s.leaves = true, nil, nil, 0, true
	if s.measure(s.hub.o.Now()); s.rest == 0 {
		s.end()
		return
	}
	s.await()
}

// slow is the reason with which the sockets of those are closed who read too slowly.
const slow = "slow consumer"

// takeLeave sends the rest to a subscriber whose socket closes, and closes the socket after it.
func (s *subscriber) takeLeave(now time.Time) {
	_, err := s.socket.Flush()
	if s.measure(now); err != nil || s.rest == 0 || now.Sub(s.since) > mostStuck {
		s.end()
	}
}

// end closes the socket, whatever was read.
func (s *subscriber) end() {
	s.socket.End()
	s.drop()
}

// lose forgets a subscriber to whom nothing can be sent. It counts if too much was.
func (s *subscriber) lose(err error) {
	if errors.Is(err, live.Unread) {
		s.hub.figures.closes.WithLabelValues(slow).Inc()
	}
	s.drop()
}

// drop forgets what waits for a closed socket.
func (s *subscriber) drop() {
	s.hub.out.rests -= s.rest
	s.cut, s.queue, s.later, s.behind, s.rest, s.leaves = true, nil, nil, 0, 0, false
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
		s.close(live.TryLater, slow)
		s.end()
	}
	return s.rest == 0 && !s.cut
}

// measure notes what the socket has not sent.
func (s *subscriber) measure(now time.Time) {
	rest := s.socket.Rest()
	if rest == 0 || rest < s.rest || s.rest == 0 {
		s.since = now
	}
	s.hub.out.rests += rest - s.rest
	s.rest = rest
}

// offer sends what there is room for, or puts it into the batch, which the Hub sends soon after.
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

// settle begins a backlog for one who conflates, if not all has left that was to be sent.
func (s *subscriber) settle() {
	if s.conflates && s.later == nil && s.waits() {
		s.later = &backlog{}
	}
}

// next returns the frames of what is to be sent next, nothing if nothing waits. They are valid
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

// appendMessage appends a message as an element of an array, or as many as it stands for.
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
	s.count(socket.Each(patience, func(text []byte) {
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

// count counts a socket that Read has closed.
func (s *subscriber) count(err error) {
	s.hub.mutex.Lock()
	defer s.hub.mutex.Unlock()
	var why live.Ended
	if errors.As(err, &why) && !s.cut {
		s.hub.figures.closes.WithLabelValues(string(why)).Inc()
	}
}

// fail closes the socket of a subscriber whose request has met a bug.
func (s *subscriber) fail() {
	s.hub.mutex.Lock()
	defer s.hub.mutex.Unlock()
	s.close(live.Broken, failed)
	s.end()
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
	id := strconv.FormatInt(h.o.Now().UnixMilli(), 36) + "-" + strconv.FormatUint(h.streams, 36)
	s := &subscriber{hub: h, socket: socket, id: id, number: h.streams}
	h.subscribers[s] = struct{}{}
	h.crowd.Store(int64(len(h.subscribers)))
	h.figures.sockets.Inc()
	return s
}

func (h *Hub) leave(s *subscriber) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.subscribers, s)
	h.crowd.Store(int64(len(h.subscribers)))
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

// part takes a subscriber out of a market.
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
	// Whoever gets a book must have got all that belongs to earlier Sequences.
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
