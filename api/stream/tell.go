package stream

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/engine"
	"clobd/engine/view"
)

// bulletin is a message without its tail, to be shared by all who get it.
type bulletin struct {
	market  engine.MarketNo
	seq     engine.Sequence
	outcome int8 // of the token whose subscribers get it; both: of either token
	asked   bool // only for those who asked for custom features
	body    []byte
}

// both is the outcome of a bulletin for subscribers of either token.
const both = -1

// tellAll tells what follow has read, as it comes.
func (h *Hub) tellAll() {
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
		if h.round() {
			pause.Reset(retryPause)
		} else {
			pause.Reset(beatPause)
		}
	}
}

// round renders all changes that were read, and sends each subscriber as much as its socket takes.
// It reports whether messages are left over.
func (h *Hub) round() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	l := h.heap.take()
	read := l.read
	if len(l.markets) > 0 {
		h.await(read)
	}
	for no, deals := range l.markets {
		if w := h.watches[no]; w != nil {
			w.deals = append(w.deals, deals...)
			h.look(w, read)
		}
	}
	h.tellUntil(read)
	h.told = read
	now := h.o.Now()
	h.announce(l.opened, now)
	h.keepUp(now, read)
	blocked := h.due[:0]
	for i, s := range h.due {
		if s.send(now); s.waits() {
			blocked = append(blocked, s)
		} else {
			s.due = false
		}
		if i%turns == turns-1 {
			yield()
		}
	}
	clear(h.due[len(blocked):])
	h.due = blocked
	return len(blocked) > 0 || len(h.listed) > 0
}

// await waits until the Board shows a Sequence: a few microseconds, as a frame is visible soon
// after it is durable. When the node stops, a frame may never be.
func (h *Hub) await(seq engine.Sequence) {
	for h.o.Board.Shown() < seq {
		select {
		case <-h.ended:
			return
		case <-time.After(settle):
		}
	}
}

// look takes the newest Snapshot of a market that has changed, unless one that was taken before is
// still to be told: the Board may be ahead of what was read.
func (h *Hub) look(w *watch, read engine.Sequence) {
	if w.newest.Sequence > read {
		return // the frame that made it will be read, and lead here again
	}
	if s, _, _ := h.o.Board.Book(w.market.Tokens[0]); s.Sequence > w.newest.Sequence {
		w.newest = s
		h.waiting = append(h.waiting, waiting{w, s})
	}
}

// tellUntil tells the Snapshots up to a Sequence, the oldest first: so whoever has a message has
// all that belong to earlier Sequences.
func (h *Hub) tellUntil(read engine.Sequence) {
	slices.SortFunc(h.waiting, func(a, b waiting) int {
		return cmp.Compare(a.snapshot.Sequence, b.snapshot.Sequence)
	})
	n := 0
	for ; n < len(h.waiting) && h.waiting[n].snapshot.Sequence <= read; n++ {
		h.tell(h.waiting[n].watch, h.waiting[n].snapshot)
	}
	h.waiting = slices.Delete(h.waiting, 0, n)
}

// announce tells of new markets, once the catalog describes them: it does soon after their listing.
func (h *Hub) announce(opened []engine.MarketNo, now time.Time) {
	for _, no := range opened {
		if m := h.o.Board.Directory.Market(no); m != nil {
			h.listed = append(h.listed, listed{m, now})
		}
	}
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

// keepUp sends heartbeats and pings when they are due, and forgets markets that nobody names.
func (h *Hub) keepUp(now time.Time, read engine.Sequence) {
	if now.Sub(h.beat) >= beatPause {
		h.beat = now
		beat := &bulletin{seq: read, body: appendMillis([]byte(`{"event_type":"heartbeat"`), now.UnixMilli())}
		for s := range h.subscribers {
			if s.heartbeat && s.user == nil {
				s.enqueue(beat)
			}
		}
		h.owners.beat(beat.body)
		for no, w := range h.watches {
			if !w.left.IsZero() && now.Sub(w.left) > linger {
				delete(h.watches, no)
			}
		}
	}
	if now.Sub(h.ping) >= pingPause {
		h.ping = now
		for s := range h.subscribers {
			_ = s.socket.Ping() // whoever is gone is missed by Read
		}
	}
}

// tell tells what leads from the Snapshot of a market that was told last to s.
func (h *Hub) tell(w *watch, s *view.Snapshot) {
	was := w.told
	w.told = s
	h.figures.lag.Observe(h.o.Now().Sub(time.UnixMilli(int64(s.Time))).Seconds())
	for len(w.deals) > 0 && w.deals[0].sequence <= s.Sequence {
		if d := &w.deals[0]; d.sequence > w.since {
			h.publish(w, h.trade(s, d, 0), h.trade(s, d, 1))
		}
		w.deals = w.deals[1:]
	}
	switch {
	case was.Market.Tick != s.Market.Tick:
		for o := range engine.Outcome(2) {
			h.publish(w, retick(was, s, o))
		}
		for o := range engine.Outcome(2) {
			h.publish(w, h.book(s, o))
		}
	default:
		if b := h.change(was, s); b != nil {
			h.publish(w, b)
		}
	}
	for o := range engine.Outcome(2) {
		if b := best(was, s, o); b != nil {
			h.publish(w, b)
		}
	}
	if was.Market.State != engine.Settled && s.Market.State == engine.Settled {
		h.publish(w, h.resolved(s))
	}
}

// publish puts bulletins into the queues of those who get them, and keeps them for later.
func (h *Hub) publish(w *watch, bulletins ...*bulletin) {
	for _, b := range bulletins {
		for s, outcomes := range w.subscribers {
			if s.gets(b, outcomes) {
				s.enqueue(b)
			}
		}
		h.recent = append(h.recent, b)
		h.kept += len(b.body)
	}
	drop := 0
	for ; h.kept > maxRecent; drop++ {
		h.kept -= len(h.recent[drop].body)
		h.forgotten = max(h.forgotten, h.recent[drop].seq)
	}
	h.recent = slices.Delete(h.recent, 0, drop)
}

// begin begins a bulletin about a token, or about both.
func begin(kind string, s *view.Snapshot, outcome int8) *bulletin {
	b := append(make([]byte, 0, 512), `{"event_type":"`...)
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

// book is the whole book of a token, as GET /book has it.
func (h *Hub) book(s *view.Snapshot, o engine.Outcome) *bulletin {
	text := h.o.Book(s, o)
	b := append(make([]byte, 0, len(text)+32), `{"event_type":"book",`...)
	return &bulletin{market: s.Market.No, seq: s.Sequence, outcome: int8(o),
		body: append(b, text[1:len(text)-1]...)}
}

// change is what changed in both tokens' books, nil if nothing did.
func (h *Hub) change(was, s *view.Snapshot) *bulletin {
	b := begin("price_change", s, both)
	b.body = append(wire.AppendKey(b.body, "price_changes"), '[')
	none := len(b.body)
	for o := range engine.Outcome(2) {
		var hash []byte
		s.Changes(was, o, func(side engine.Side, p engine.Price, size engine.Size) {
			if hash == nil {
				hash = hashOf(h.o.Book(s, o))
			}
			c := append(wire.AppendComma(b.body), '{')
			c = wire.AppendTokenField(c, "asset_id", s.Market.Tokens[o])
			c = wire.AppendDecimalField(c, "price", int64(p), 4)
			c = wire.AppendDecimalField(c, "size", int64(size), 6)
			c = wire.AppendField(c, "side", wire.SideText(side))
			c = wire.AppendField(c, "hash", string(hash))
			b.body = append(appendBest(c, s, o), '}')
		})
	}
	if len(b.body) == none {
		return nil
	}
	b.body = appendMillis(append(b.body, ']'), int64(s.Time))
	return b
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

// hashOf returns the hash in the text of a book.
func hashOf(text []byte) []byte {
	const member, digits = `"hash":"`, 40
	for i := 0; i+len(member)+digits <= len(text); i++ {
		if string(text[i:i+len(member)]) == member {
			return text[i+len(member) : i+len(member)+digits]
		}
	}
	panic("BUG: a book without a hash")
}

// trade is a trade in terms of one of the tokens: who buys one outcome sells the other.
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

// retick tells that the tick of a market has changed.
func retick(was, s *view.Snapshot, o engine.Outcome) *bulletin {
	b := begin("tick_size_change", s, int8(o))
	b.body = wire.AppendDecimalField(b.body, "old_tick_size", int64(was.Market.Tick), 4)
	b.body = wire.AppendDecimalField(b.body, "new_tick_size", int64(s.Market.Tick), 4)
	b.body = appendMillis(b.body, int64(s.Time))
	return b
}

// best tells a token's best prices, nil if they did not change.
func best(was, s *view.Snapshot, o engine.Outcome) *bulletin {
	bid, ask := s.Best(o)
	if oldBid, oldAsk := was.Best(o); oldBid == bid && oldAsk == ask {
		return nil
	}
	b := begin("best_bid_ask", s, int8(o))
	b.asked = true
	b.body = appendBest(b.body, s, o)
	if bid != 0 && ask != 0 {
		b.body = wire.AppendDecimalField(b.body, "spread", int64(ask)-int64(bid), 4)
	}
	b.body = appendMillis(b.body, int64(s.Time))
	return b
}

// resolved tells which token of a market won, none if it pays a part of 1.00 for both.
func (h *Hub) resolved(s *view.Snapshot) *bulletin {
	b := begin("market_resolved", s, both)
	b.asked = true
	m := s.Market
	b.body = wire.AppendField(b.body, "id", strconv.FormatUint(uint64(m.No), 10))
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

// appendTail ends a message of a subscriber.
func (s *subscriber) appendTail(b []byte, seq engine.Sequence, now time.Time) []byte {
	s.sequence++
	b = append(append(append(b, `,"stream_id":"`...), s.id...), '"')
	b = strconv.AppendUint(wire.AppendKey(b, "sequence"), s.sequence, 10)
	b = strconv.AppendInt(wire.AppendKey(b, "server_ts_ms"), now.UnixMilli(), 10)
	b = strconv.AppendUint(wire.AppendKey(b, "seq"), uint64(seq), 10)
	return append(b, '}')
}

// closeAll tells all subscribers that the node stops.
func (h *Hub) closeAll() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for s := range h.subscribers {
		s.close(live.Leaving, "the node stops")
	}
}
