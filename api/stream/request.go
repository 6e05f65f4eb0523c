package stream

import (
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"clobd/api/wire/live"
	"clobd/engine"
)

// wish is what a subscriber may send.
type wish struct {
	Type      string   `json:"type"`
	Assets    []string `json:"assets_ids"`
	Operation string   `json:"operation"`
	Custom    *bool    `json:"custom_feature_enabled"`
	Dump      *bool    `json:"initial_dump"`
	Heartbeat *bool    `json:"heartbeat"`
	Conflate  *bool    `json:"conflate"`
	Resume    *struct {
		Seq  uint64 `json:"seq"`
		Part int    `json:"part"`
	} `json:"resume"`
}

// maxTokens is how many tokens a subscriber may name.
const maxTokens = 10_000

// hear does what a subscriber asks for, and reports whether that was a subscription.
func (h *Hub) hear(s *subscriber, text []byte) bool {
	var r wish
	word := string(text) == "PING" || string(text) == "PONG"
	err := error(nil)
	if !word {
		err = json.Unmarshal(text, &r)
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	switch {
	case !s.spent.take(1+float64(len(r.Assets)/tokensUnit), h.o.Now()):
		s.close(live.Forbidden, "too many messages")
	case word && string(text) == "PING":
		s.enqueue(&bulletin{kind: bare, body: []byte("PONG")})
	case word:
	case err != nil:
		h.fail(s, "bad_request", "malformed JSON: send an object with type and assets_ids")
	default:
		h.grant(s, &r)
		return true
	}
	return false
}

// grant does what a wish asks for.
func (h *Hub) grant(s *subscriber, r *wish) {
	if r.Type != "" && !strings.EqualFold(r.Type, "market") {
		h.fail(s, "bad_request", "unknown type "+strconv.Quote(r.Type)+": this channel is market")
		return
	}
	for _, set := range []struct {
		to   *bool
		from *bool
	}{{&s.custom, r.Custom}, {&s.heartbeat, r.Heartbeat}, {&s.conflates, r.Conflate}} {
		if set.from != nil {
			*set.to = *set.from
		}
	}
	switch {
	case strings.EqualFold(r.Operation, "unsubscribe"):
		h.unsubscribe(s, r.Assets)
	case r.Operation == "" || strings.EqualFold(r.Operation, "subscribe"):
		h.subscribe(s, r)
	default:
		h.fail(s, "bad_request", "unknown operation "+strconv.Quote(r.Operation)+
			": send subscribe or unsubscribe")
	}
}

// fail tells a subscriber what was wrong with his request.
func (h *Hub) fail(s *subscriber, code, text string) {
	b := append([]byte(`{"event_type":"error","code":"`), code...)
	b = append(b, `","message":`...)
	quoted, _ := json.Marshal(text[:min(len(text), errorLimit)])
	seq := h.told
	if s.user != nil {
		seq = h.owners.lastOf(s.user)
	}
	s.enqueue(&bulletin{seq: seq, body: append(b, quoted...)})
}

// last returns the Sequence up to which frames were read.
func (p *heap) last() engine.Sequence {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.read
}

// subscribe adds tokens, with their books or with what changed since the Sequence that the
// subscriber saw last.
func (h *Hub) subscribe(s *subscriber, r *wish) {
	var unknown []string
	var books []shown
	resumed := make(map[engine.MarketNo]uint8)
	added := 0
	for _, id := range r.Assets {
		w, o := h.watchOf(id)
		if w == nil {
			unknown = append(unknown, id)
			continue
		} else if w.subscribers[s]>>o&1 == 1 {
			continue
		} else if s.tokens == maxTokens {
			h.fail(s, "too_many", "a connection may name "+strconv.Itoa(maxTokens)+" tokens")
			break
		}
		added++
		s.tokens++
		h.figures.tokens.Inc()
		w.left = time.Time{}
		w.wants(s, w.subscribers[s]|1<<o)
		if s.later != nil {
			s.later.settle(w)
		}
		if r.Resume != nil && s.later == nil && h.knows(w, engine.Sequence(r.Resume.Seq)) {
			resumed[w.market.No] |= 1 << o
		} else if r.Resume != nil || r.Dump == nil || *r.Dump {
			books = append(books, shown{w.told, o})
		}
	}
	if added == 0 && len(r.Assets) > 0 && len(unknown) == 0 && r.Operation != "" {
		s.enqueue(&bulletin{kind: bare, body: []byte("NO NEW ASSETS")})
	}
	if len(unknown) > 0 {
		h.fail(s, "unknown_asset", "no market lists "+strings.Join(unknown, ", "))
	}
	h.catchUp(s, r, resumed)
	if r.Resume != nil && len(books) > 0 {
		h.figures.resumes.WithLabelValues("resync").Inc()
		s.enqueue(&bulletin{seq: h.told, body: []byte(`{"event_type":"resync"`)})
	}
	s.show(books)
}

// knows reports whether all messages of a market from a Sequence on are in memory: those of
// w.since itself are not.
func (h *Hub) knows(w *watch, seq engine.Sequence) bool {
	return seq > w.since && seq > h.forgotten && seq <= h.heap.last()
}

// catchUp sends the bulletins from a Sequence on about some outcomes of some markets: those of the
// Sequence itself once more, as only a part of them may have arrived.
func (h *Hub) catchUp(s *subscriber, r *wish, resumed map[engine.MarketNo]uint8) {
	if len(resumed) == 0 {
		return
	}
	h.figures.resumes.WithLabelValues("memory").Inc()
	for _, b := range h.recent {
		if b.seq >= engine.Sequence(r.Resume.Seq) && s.gets(b, resumed[b.market]) &&
			resumed[b.market] != 0 {
			s.enqueue(b)
		}
	}
}

func (h *Hub) unsubscribe(s *subscriber, tokens []string) {
	for _, id := range tokens {
		w, o := h.watchOf(id)
		if w == nil || w.subscribers[s]>>o&1 == 0 {
			continue
		}
		s.tokens--
		h.figures.tokens.Dec()
		if w.wants(s, w.subscribers[s]&^(1<<o)); w.subscribers[s] == 0 {
			h.part(w, s)
		}
	}
}
