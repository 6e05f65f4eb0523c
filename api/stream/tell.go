package stream

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/engine"
	"clobd/engine/view"
)

// bulletin is a message without its tail. All subscribers who get the message share the bulletin.
type bulletin struct {
	market  engine.MarketNo
	seq     engine.Sequence
	kind    nature
	outcome int8 // of the token whose subscribers get it; both: subscribers of either token
	asked   bool // only for subscribers who asked for custom features
	body    []byte

	ending   []byte // the last members of each tail that is made in the millisecond endingMS
	endingMS int64

	books    []shown   // in place of a body
	collapse *collapse // in place of a body: changes that wait in a backlog
}

// nature distinguishes bulletins that are sent in different ways.
type nature uint8

const (
	plain nature = iota
	levels
	bests
	bare // not JSON, and without a tail
)

// bulletinBytes estimates the memory that a bulletin takes beside its body, in bytes.
const bulletinBytes = 256

// end returns the last members of a tail: the time of sending, in milliseconds, and the Sequence.
func (b *bulletin) end(ms int64) []byte {
	if b.endingMS != ms {
		e := append(b.ending[:0], `,"server_ts_ms":`...)
		e = append(strconv.AppendInt(e, ms, 10), `,"seq":`...)
		b.ending = append(strconv.AppendUint(e, uint64(b.seq), 10), '}')
		b.endingMS = ms
	}
	return b.ending
}

// both is the outcome of a bulletin for subscribers of either token.
const both = -1

// turn does a round, and reports whether messages are left over. After a panic the Hub begins anew.
func (h *Hub) turn(most int) bool {
	left := true
	if !h.survives("a round of the streams", func() { left = h.round(most) }) {
		h.beginAnew()
	}
	return left
}

// tend sends what no frame causes: heartbeats, pings, and messages that were left over.
func (h *Hub) tend() {
	pause := time.NewTimer(beatPause)
	defer pause.Stop()
	for {
		select {
		case <-h.ended:
			h.closeAll()
			return
		case <-h.wake:
		case <-pause.C:
		}
		if !h.survives("the heartbeats", h.keepUp) {
			h.beginAnew()
		}
		if h.turn(everybody) {
			pause.Reset(retryPause)
		} else {
			// Whoever wakes tend in between does not put the next heartbeats off.
			pause.Reset(max(beatPause-h.o.Now().Sub(h.beat), retryPause))
		}
	}
}

// everybody is the argument of turn that serves all subscribers who are due.
const everybody = math.MaxInt

// round renders all changes that were read, and sends as many subscribers as most says what their
// sockets take. It reports whether messages are left over.
func (h *Hub) round(most int) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.observe()
	h.out.serve(h.o.Now(), most)
	h.figures.messages.Add(float64(h.sent))
	h.figures.bytes.Add(float64(h.bytes))
	h.sent, h.bytes = 0, 0
	return len(h.out.due) > 0 || len(h.listed) > 0
}

// observe renders all changes that were read, and puts them into the queues of subscribers.
func (h *Hub) observe() {
	l := h.heap.take()
	if h.cut = h.cut || len(l.markets) > 0 && !h.await(l.read); h.cut {
		return // told must not pass a change that nobody was told
	}
	for no, deals := range l.markets {
		if w := h.watches[no]; w != nil {
			w.deals = append(w.deals, deals...)
			h.look(w, l.read)
		}
	}
	h.tellUntil(l.read)
	h.told = l.read
	for _, no := range l.opened {
		if m := h.o.Board.Directory.Market(no); m != nil {
			h.listed = append(h.listed, listed{m, h.o.Now()})
		}
	}
}

// await waits until the Board shows a Sequence: usually a few microseconds, as a frame is visible
// soon after it is durable. It returns false when the Hub stops before.
func (h *Hub) await(seq engine.Sequence) bool {
	for n := 0; h.o.Board.Shown() < seq; n++ {
		if n < glances { // the runtime's timers may take 1 ms on an idle machine
			yield()
			continue
		}
		select {
		case <-h.o.Stopping:
			return h.o.Board.Shown() >= seq
		case <-h.ended:
			return false
		case <-time.After(settle):
		}
	}
	return true
}

// look takes the newest Snapshot of a market that has changed. The Board may be ahead of the frames
// that were read: if the Snapshot that look took last is, look takes none.
func (h *Hub) look(w *watch, read engine.Sequence) {
	if w.newest.Sequence > read {
		return // the frame that made it will be read, and lead here again
	}
	if s, _, _ := h.o.Board.Book(w.market.Tokens[0]); s.Sequence > w.newest.Sequence {
		w.newest = s
		h.waiting = append(h.waiting, waiting{w, s})
	}
}

// tellUntil tells the Snapshots up to a Sequence, the oldest first, so that a subscriber who has a
// message also has all messages of earlier Sequences.
func (h *Hub) tellUntil(read engine.Sequence) {
	slices.SortFunc(h.waiting, func(a, b waiting) int {
		return cmp.Compare(a.snapshot.Sequence, b.snapshot.Sequence)
	})
	n := 0
	for ; n < len(h.waiting) && h.waiting[n].snapshot.Sequence <= read; n++ {
		w := h.waiting[n].watch
		if h.watches[w.market.No] != w {
			continue // the market has no subscribers any more
		}
		if !h.survives("a market's changes", func() { h.tell(w, h.waiting[n].snapshot) }) {
			h.abandon(w)
		}
	}
	h.waiting = slices.Delete(h.waiting, 0, n)
}

// announce announces new markets once the catalog describes them, usually soon after they open.
func (h *Hub) announce(now time.Time) {
	told, later := 0, h.listed[:0]
	for _, l := range h.listed {
		var body []byte
		if told < announces {
			body = h.o.Announce(l.market)
		}
		switch {
		case body != nil:
			told++
			b := &bulletin{seq: h.told, outcome: both, asked: true,
				body: appendMillis(body, now.UnixMilli())}
			for s := range h.subscribers {
				if s.custom && s.user == nil {
					s.enqueue(b)
				}
			}
		case now.Sub(l.since) < patient:
			later = append(later, l)
		}
	}
	clear(h.listed[len(later):])
	h.listed = later
}

// keepUp announces new markets, sends heartbeats and pings when they are due, and forgets markets
// that nobody names. Only tend calls it: what goes to all subscribers is never urgent.
func (h *Hub) keepUp() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	now := h.o.Now()
	h.announce(now)
	if now.Sub(h.beat) < beatPause {
		return
	}
	h.beat = now
	beat := &bulletin{seq: h.told, body: appendMillis([]byte(`{"event_type":"heartbeat"`), now.UnixMilli())}
	alone := sheafOf(beat)
	for s := range h.subscribers {
		if s.heartbeat && s.user == nil && s.later == nil {
			s.enqueueAll(alone)
		}
	}
	h.owners.beat(beat.body)
	h.pingSome(now)
	for no, w := range h.watches {
		if !w.left.IsZero() && now.Sub(w.left) > linger {
			h.gone = max(h.gone, w.told.Sequence)
			delete(h.watches, no)
		}
	}
}

// pingSome pings the subscribers whose turn it is in this second. To ping all at once would delay
// their messages by a write for each subscriber.
func (h *Hub) pingSome(now time.Time) {
	passed := min(max(now.Unix()-h.beats, 0), pingBeats)
	h.beats = now.Unix()
	n := 0
	for s := range h.subscribers {
		if (h.beats+pingBeats-int64(s.number%pingBeats))%pingBeats >= passed {
			continue
		}
		_ = s.socket.Ping() // Each notices if the client is gone
		if n++; n%turns == 0 {
			yield()
		}
	}
}

// tell queues the messages that lead from the Snapshot of a market that was told last to s.
func (h *Hub) tell(w *watch, s *view.Snapshot) {
	was := w.told
	w.told = s
	h.figures.lag.Observe(h.o.Now().Sub(time.UnixMilli(int64(s.Time))).Seconds())
	some := h.issue[:0]
	for len(w.deals) > 0 && w.deals[0].sequence <= s.Sequence {
		if d := &w.deals[0]; d.sequence > w.since {
			some = append(some, h.trade(s, d, 0), h.trade(s, d, 1))
		}
		w.deals = w.deals[1:]
	}
	if was.Market.Tick != s.Market.Tick {
		some = append(some, retick(was, s, 0), retick(was, s, 1))
	}
	if reruled(was, s) {
		some = append(some, h.book(s, 0), h.book(s, 1))
	} else if b, changed := h.change(w, was, s); changed {
		some = append(some, b)
	}
	for o := range engine.Outcome(2) {
		if b := best(was, s, o); b != nil {
			some = append(some, b)
		}
	}
	if was.Market.State != engine.Settled && s.Market.State == engine.Settled {
		some = append(some, h.resolved(s))
	}
	h.publish(stride{w, was, s}, some)
	clear(some)
	h.issue = some[:0]
}

// allOutcomes is the number of subsets of the two outcomes.
const allOutcomes = 4

// sheafOf returns a sheaf of the bulletins that the subscriber gets if he watches the outcomes.
func (s *subscriber) sheafOf(some []*bulletin, outcomes uint8) *sheaf {
	wanted := make([]*bulletin, 0, len(some))
	for _, b := range some {
		if s.gets(b, outcomes) {
			wanted = append(wanted, b)
		}
	}
	return sheafOf(wanted...)
}

// stride is a change of a market, from one Snapshot to a newer one.
type stride struct {
	watch    *watch
	from, to *view.Snapshot
}

// publish queues the bulletins of a stride for all subscribers who get them, and keeps the
// bulletins for subscribers who resume later.
func (h *Hub) publish(c stride, some []*bulletin) {
	if len(some) == 0 {
		return
	}
	var sheaves [2 * allOutcomes]*sheaf // by set of outcomes, without and with custom features
	for _, l := range c.watch.listeners() {
		if l.lags() {
			l.hold(c, some, l.outcomes)
			continue
		}
		i := 2 * int(l.outcomes)
		if l.custom {
			i++
		}
		if sheaves[i] == nil {
			sheaves[i] = l.sheafOf(some, l.outcomes)
		}
		l.enqueueAll(sheaves[i])
	}
	for _, b := range some {
		h.recent = append(h.recent, b)
		h.kept += len(b.body) + bulletinBytes
	}
	drop := 0
	for ; h.kept > maxRecent; drop++ {
		h.kept -= len(h.recent[drop].body) + bulletinBytes
		h.forgotten = max(h.forgotten, h.recent[drop].seq)
	}
	clear(h.recent[:drop])
	h.recent = h.recent[drop:] // append copies the slice now and then; moving it each time costs more
}

// begin begins a bulletin about a token, or about both.
func begin(kind string, s *view.Snapshot, outcome int8) *bulletin {
	b := append(make([]byte, 0, 640), `{"event_type":"`...)
	b = append(append(b, kind...), `","market":"`...)
	b = append(engine.AppendHex(b, s.Market.Condition[:]), '"')
	if outcome != both {
		b = wire.AppendTokenField(b, "asset_id", s.Market.Tokens[outcome])
	}
	return &bulletin{market: s.Market.No, seq: s.Sequence, outcome: outcome, body: b}
}

// appendMillis appends a timestamp in milliseconds, as text.
func appendMillis(b []byte, ms int64) []byte {
	return wire.AppendDecimalField(b, "timestamp", ms, 0)
}

// book returns a bulletin with the whole book of a token, as GET /book returns it.
func (h *Hub) book(s *view.Snapshot, o engine.Outcome) *bulletin {
	text := h.o.Book(s, o)
	b := append(make([]byte, 0, len(text)+32), `{"event_type":"book",`...)
	return &bulletin{market: s.Market.No, seq: s.Sequence, outcome: int8(o),
		body: append(b, text[1:len(text)-1]...)}
}

// change returns a bulletin of the changes in both tokens' books, and whether there are any.
func (h *Hub) change(w *watch, was, s *view.Snapshot) (b *bulletin, changed bool) {
	b = begin("price_change", s, both)
	b.kind = levels
	b.body = append(wire.AppendKey(b.body, "price_changes"), '[')
	none := len(b.body)
	for o := range engine.Outcome(2) {
		s.Changes(was, o, func(side engine.Side, p engine.Price, size engine.Size) {
			c := append(wire.AppendComma(b.body), '{')
			c = wire.AppendTokenField(c, "asset_id", s.Market.Tokens[o])
			c = wire.AppendDecimalField(c, "price", int64(p), 4)
			c = wire.AppendDecimalField(c, "size", int64(size), 6)
			c = wire.AppendField(c, "side", wire.SideText(side))
			c = wire.AppendField(c, "hash", w.hashOf(h, s, o))
			b.body = append(appendBest(c, s, o), '}')
		})
	}
	changed = len(b.body) > none
	b.body = appendMillis(append(b.body, ']'), int64(s.Time))
	return b, changed
}

// hashOf returns the hash of a book, which is computed once for each Snapshot. Subscribers who
// conflate come from different Snapshots to the same.
func (w *watch) hashOf(h *Hub, s *view.Snapshot, o engine.Outcome) string {
	if w.hashed != s {
		w.hashed, w.hashes = s, [2]string{}
	}
	if w.hashes[o] == "" {
		text := h.o.Hash(s, o)
		w.hashes[o] = string(text[:])
	}
	return w.hashes[o]
}

// appendBest appends the best prices of a token. A side without orders has none.
func appendBest(b []byte, s *view.Snapshot, o engine.Outcome) []byte {
	bid, ask := s.Best(o)
	if bid != 0 {
		b = wire.AppendDecimalField(b, "best_bid", int64(bid), 4)
	}
	if ask != 0 {
		b = wire.AppendDecimalField(b, "best_ask", int64(ask), 4)
	}
	return b
}

// trade returns a bulletin of a trade in terms of a token: to buy an outcome is to sell the other.
func (h *Hub) trade(s *view.Snapshot, d *deal, o engine.Outcome) *bulletin {
	side, price := d.side, d.price
	if d.outcome != o {
		side, price = side.Other(), engine.PriceOne-price
	}
	b := begin("last_trade_price", s, int8(o))
	hash := engine.TxHash(h.o.JournalID, d.sequence, d.index)
	b.body = wire.AppendDecimalField(b.body, "price", int64(price), 4)
	b.body = wire.AppendField(b.body, "side", wire.SideText(side))
	b.body = wire.AppendDecimalField(b.body, "size", int64(d.size), 6)
	b.body = wire.AppendDecimalField(b.body, "fee_rate_bps", int64(s.Market.Fee.Rate), 0)
	b.body = appendMillis(b.body, int64(d.time))
	b.body = wire.AppendHexField(b.body, "transaction_hash", hash[:])
	return b
}

// reruled reports whether rules have changed that a book shows and a change of levels does not.
func reruled(was, s *view.Snapshot) bool {
	a, b := was.Market, s.Market
	return a.Tick != b.Tick || a.MinSize != b.MinSize || a.NegRisk != b.NegRisk
}

// retick returns a bulletin that says how the tick of a market has changed.
func retick(was, s *view.Snapshot, o engine.Outcome) *bulletin {
	b := begin("tick_size_change", s, int8(o))
	b.body = wire.AppendDecimalField(b.body, "old_tick_size", int64(was.Market.Tick), 4)
	b.body = wire.AppendDecimalField(b.body, "new_tick_size", int64(s.Market.Tick), 4)
	b.body = appendMillis(b.body, int64(s.Time))
	return b
}

// best returns a bulletin with a token's best prices, or nil if they did not change.
func best(was, s *view.Snapshot, o engine.Outcome) *bulletin {
	bid, ask := s.Best(o)
	if oldBid, oldAsk := was.Best(o); oldBid == bid && oldAsk == ask {
		return nil
	}
	b := begin("best_bid_ask", s, int8(o))
	b.kind, b.asked = bests, true
	b.body = appendBest(b.body, s, o)
	if bid != 0 && ask != 0 {
		b.body = wire.AppendDecimalField(b.body, "spread", int64(ask)-int64(bid), 4)
	}
	b.body = appendMillis(b.body, int64(s.Time))
	return b
}

// resolved returns a bulletin that names the winning token, or none if each pays a part of 1.00.
func (h *Hub) resolved(s *view.Snapshot) *bulletin {
	b := begin("market_resolved", s, both)
	b.asked = true
	m := s.Market
	b.body = wire.AppendField(b.body, "id",
		cmp.Or(h.o.ID(m.Condition), strconv.FormatUint(uint64(m.No), 10)))
	b.body = append(wire.AppendKey(b.body, "assets_ids"), '[')
	for o := range m.Tokens {
		b.body = append(m.Tokens[o].AppendDecimal(append(wire.AppendComma(b.body), '"')), '"')
	}
	b.body = append(b.body, ']')
	if m.Payout == engine.PriceOne || m.Payout == 0 {
		winner := engine.Outcome(0)
		if m.Payout == 0 {
			winner = 1
		}
		b.body = wire.AppendTokenField(b.body, "winning_asset_id", m.Tokens[winner])
		b.body = wire.AppendField(b.body, "winning_outcome", h.o.Label(m.Condition, winner))
	}
	b.body = appendMillis(b.body, int64(s.Time))
	return b
}

// The JSON that precedes the id of the connection, and the number of the message, in a tail.
const (
	nameKey     = `,"stream_id":"`
	sequenceKey = `","sequence":`
)

// appendTail appends the members of a message that differ between subscribers: the stream's id and
// the next sequence number. The bulletin holds the bytes that all subscribers share.
func (s *subscriber) appendTail(b []byte) []byte {
	s.sequence++
	b = append(append(append(b, nameKey...), s.id...), sequenceKey...)
	return strconv.AppendUint(b, s.sequence, 10)
}

// farewell is how long a node that stops waits until subscribers have read why.
const farewell = time.Second

// closeAll tells all subscribers that the node stops, and closes the sockets of those who do not
// close them in time.
func (h *Hub) closeAll() {
	each := func(do func(*subscriber)) (some bool) {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		for s := range h.subscribers {
			do(s)
		}
		return len(h.subscribers) > 0
	}
	some := each(func(s *subscriber) { s.close(live.Leaving, "the node stops") })
	for end := time.Now().Add(farewell); some && time.Now().Before(end); time.Sleep(retryPause) {
		h.turn(everybody)
		some = each(func(*subscriber) {})
	}
	each((*subscriber).end)
}
