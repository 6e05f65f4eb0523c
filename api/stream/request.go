package stream

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"clobd/api/wire/live"
	"clobd/engine"
)

// wish is a message that a subscriber may send.
type wish struct {
	Type      string   `json:"type"`
	Assets    tokens   `json:"assets_ids"`
	Markets   []string `json:"markets"`
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

// tokens are ids of tokens. Clients send them as JSON strings; some send numbers.
type tokens []string

// UnmarshalJSON reads a list of strings and whole numbers.
func (t *tokens) UnmarshalJSON(text []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return badAssets("something that is no list")
	}
	*t = make(tokens, len(list))
	for i, one := range list {
		if len(one) > 0 && one[0] >= '0' && one[0] <= '9' {
			(*t)[i] = string(one)
		} else if err := json.Unmarshal(one, &(*t)[i]); err != nil || len(one) == 0 || one[0] != '"' {
			return badAssets("a list with " + string(one[:min(len(one), 40)]))
		}
	}
	return nil
}

func badAssets(value string) error {
	return &json.UnmarshalTypeError{Field: "assets_ids", Value: value, Type: reflect.TypeFor[tokens]()}
}

// blame returns the error text for a message that is no wish. members lists the members of a wish.
func blame(err error, members string) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return "malformed JSON: send an object with " + members
	case wrong.Field == "":
		return "send an object with " + members + ", not " + wrong.Value
	}
	return wrong.Field + " has a wrong value: " + wrong.Value
}

// maxTokens is how many tokens a subscriber may name.
const maxTokens = 10_000

// hear does what a subscriber asks for, and reports whether the message was a wish.
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
	case !s.spent.take(1+float64((len(r.Assets)+2*len(r.Markets))/tokensUnit), h.o.Now()):
		s.close(live.Forbidden, "too many messages")
	case word && string(text) == "PING":
		s.enqueue(&bulletin{kind: bare, body: []byte("PONG")})
	case word:
	case err != nil:
		h.fail(s, "bad_request", blame(err, "type and assets_ids"))
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
	if len(r.Assets) == 0 {
		s.name(r)
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

// name adds to a wish the tokens of the markets that it names.
func (s *subscriber) name(r *wish) {
	var unknown []string
	for _, id := range r.Markets {
		c, ok := engine.ParseCondition(id)
		m := s.hub.o.Board.Directory.Condition(c)
		if !ok || m == nil {
			unknown = append(unknown, id)
			continue
		}
		for o := range m.Tokens {
			r.Assets = append(r.Assets, m.Tokens[o].String())
		}
	}
	if len(unknown) > 0 {
		s.hub.fail(s, "unknown_market", "no market has the condition "+some(unknown))
	}
}

// someBytes bounds the list of names in the text of an error, in bytes.
const someBytes = errorLimit - 64

// some lists as many names as fit into someBytes, and counts the others.
func some(names []string) string {
	n, size := 0, 0
	for ; n < len(names) && size+len(names[n]) <= someBytes; n++ {
		size += len(names[n]) + len(", ")
	}
	list, more := strings.Join(names[:n], ", "), len(names)-n
	switch {
	case more == 0:
		return list
	case n == 0:
		return "of " + strconv.Itoa(more) + " that are named"
	}
	return list + " and " + strconv.Itoa(more) + " more"
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

// subscribe adds tokens. The subscriber gets their books, or the changes since the Sequence from
// which he resumes.
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
		h.fail(s, "unknown_asset", "no market lists "+some(unknown))
	}
	h.catchUp(s, r, resumed)
	if r.Resume != nil && len(books) > 0 {
		h.figures.resumes.WithLabelValues("resync").Inc()
		s.enqueue(&bulletin{seq: h.told, body: []byte(`{"event_type":"resync"`)})
	}
	s.show(books)
	s.conclude(books)
}

// conclude queues, after the books, the outcome of each market that is settled.
func (s *subscriber) conclude(books []shown) {
	told := make(map[engine.MarketNo]bool)
	for _, b := range books {
		if m := b.snapshot.Market; s.custom && m.State == engine.Settled && !told[m.No] {
			told[m.No] = true
			end := s.hub.resolved(b.snapshot)
			end.seq = max(end.seq, s.hub.told) // no message goes back to an earlier Sequence
			s.enqueue(end)
		}
	}
}

// knows reports whether memory has all messages of a market from a Sequence on. Memory has none of
// w.since, the Sequence of the first book of this watch. If a former Hub or a former watch may have
// told changes of that Sequence, a subscriber may have only some, and memory lacks the others.
// If not, only the first book has shown that Sequence, and nothing is missing.
func (h *Hub) knows(w *watch, seq engine.Sequence) bool {
	untold := w.since > h.born && w.since > h.gone
	return (seq > w.since || seq == w.since && untold) && seq > h.forgotten && seq <= h.heap.last()
}

// catchUp queues the bulletins of the resumed outcomes, beginning with the Sequence from which the
// subscriber resumes. It repeats those of that Sequence, because only some may have arrived.
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
			w.part(s)
		}
	}
}
