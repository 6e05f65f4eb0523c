package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"clobd/scripts/asyncapi"
	"clobd/scripts/mirror"
)

// steady is a stream that connects again whenever its connection ends.
type steady struct {
	t   *testing.T
	url string

	mutex sync.Mutex // guards what follows, and the fields that hear changes
	beats int        // heartbeats since the last other message, or since the connection is open
	open  *websocket.Conn
	over  bool
}

// follow keeps a connection open until stop is called. On each new connection it sends what hello
// returns. It calls hear with each text message and the number that its first message should have.
// hear returns the number of messages, and an error for a message that must not come.
func (s *steady) follow(hello func() any, hear func(text []byte, first uint64) (int, error)) {
	for pause := 10 * time.Millisecond; ; time.Sleep(pause) {
		s.mutex.Lock()
		over, wish := s.over, hello()
		s.mutex.Unlock()
		if over {
			return
		}
		if c, _, err := websocket.DefaultDialer.Dial(s.url, nil); err == nil { //nolint:bodyclose // 101
			if err := c.WriteJSON(wish); err == nil {
				s.listen(c, hear)
			}
			c.Close()
		}
	}
}

// listen reads a connection until it ends.
func (s *steady) listen(c *websocket.Conn, hear func(text []byte, first uint64) (int, error)) {
	s.mutex.Lock()
	if s.open, s.beats = c, 0; s.over {
		c.Close()
	}
	s.mutex.Unlock()
	for sequence := uint64(1); ; {
		_, text, err := c.ReadMessage()
		if err != nil {
			return
		}
		s.mutex.Lock()
		n, err := hear(text, sequence)
		if s.beats++; !strings.Contains(string(text), `"event_type":"heartbeat"`) {
			s.beats = 0
		}
		s.mutex.Unlock()
		if sequence += uint64(n); err != nil {
			s.t.Errorf("message %d: %v", sequence, err)
			return
		}
	}
}

// stop ends the stream.
func (s *steady) stop() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.over = true; s.open != nil {
		s.open.Close()
	}
}

// settle waits until each of the streams has received two heartbeats, with nothing between them, on
// one connection: the node, which sends one each second, had nothing else to tell.
func settle(all ...*steady) {
	end := time.Now().Add(patience)
	for _, s := range all {
		for quiet := false; !quiet; time.Sleep(20 * time.Millisecond) {
			s.mutex.Lock()
			quiet = s.beats >= 2
			s.mutex.Unlock()
			if time.Now().After(end) {
				s.t.Errorf("a stream from %s does not become quiet", s.url)
				return
			}
		}
	}
}

// bookStream is a stream that keeps the books of some tokens.
type bookStream struct {
	steady
	tokens []string
	books  mirror.Books
	seq    uint64 // the highest Sequence so far
	stale  bool   // a resync came, and not yet all fresh books
	hashes int
	kinds  map[string]int
}

// newBookStream starts a stream of a node's books.
func newBookStream(t *testing.T, n *process, tokens []string, group *sync.WaitGroup) *bookStream {
	b := &bookStream{steady: steady{t: t, url: "ws://" + n.listen + "/ws/market"}, tokens: tokens,
		books: mirror.Books{}, kinds: map[string]int{}}
	group.Go(func() { b.follow(b.hello, b.hear) })
	return b
}

// hello subscribes: from the highest Sequence, or from fresh books if some of those are missing.
func (b *bookStream) hello() any {
	wish := map[string]any{"type": "market", "assets_ids": b.tokens, "heartbeat": true}
	if b.seq > 0 && !b.stale {
		wish["resume"] = map[string]any{"seq": b.seq}
	}
	text, err := json.Marshal(wish)
	if err = errors.Join(err, asyncapi.CheckSent("/ws/market", text)); err != nil {
		b.t.Error(err)
	}
	return wish
}

// hear checks messages and applies them to the books.
func (b *bookStream) hear(text []byte, first uint64) (int, error) {
	all, err := mirror.Parse(text)
	if err = errors.Join(err, asyncapi.Check("/ws/market", text)); err != nil {
		return 0, err
	}
	for i := range all {
		m := &all[i]
		if m.Sequence != first+uint64(i) || m.Type == "error" {
			return 0, fmt.Errorf("%s", text)
		}
		if m.Seq < b.seq && first > 1 && m.Type != "book" && m.Type != "resync" {
			return 0, fmt.Errorf("after Sequence %d: %s", b.seq, text)
		}
		b.seq, b.stale = max(b.seq, m.Seq), m.Type == "resync" || m.Type == "book" && b.stale
		b.kinds[m.Type]++
		n, err := b.books.Apply(m)
		if b.hashes += n; err != nil {
			return 0, fmt.Errorf("%w\nafter %s", err, text)
		}
	}
	return len(all), nil
}

// check compares the books with those of a node, except their times: a Command that leaves a book
// as it was changes the time in the node's book, and streams do not tell that.
func (b *bookStream) check(t *testing.T, n *process) {
	t.Helper()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, token := range b.tokens {
		answer, err := n.public.Get("http://" + n.listen + "/book?token_id=" + token)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		var now mirror.Book
		if err == nil {
			err = json.Unmarshal(text, &now)
		}
		kept := b.books[token]
		if err != nil || kept == nil {
			t.Fatalf("%d %s %v, kept %v", answer.StatusCode, text, err, kept)
		}
		if want := string(now.AppendText(nil, now.Hash)); answer.StatusCode != http.StatusOK ||
			want != string(text) {
			t.Fatalf("%d %s\nread as %s", answer.StatusCode, text, want)
		}
		now.Timestamp = kept.Timestamp
		if want := now.AppendText(nil, ""); mirror.Hash(want) != kept.Hash {
			t.Errorf("token %s: kept %s\nasked %s", token, kept.AppendText(nil, ""), want)
		}
	}
}

// bookStreams starts many streams: in turns of all tokens, of both tokens of a market, and of one
// token.
func (w *world) bookStreams(t *testing.T, many int, group *sync.WaitGroup) (all []*bookStream) {
	for i := range many {
		var tokens []string
		for k, o := range w.tokens {
			if i%3 == 0 || i%3 == 1 && k/2 == i/3%(len(w.tokens)/2) || i%3 == 2 && k == i/3%len(w.tokens) {
				tokens = append(tokens, o.token)
			}
		}
		all = append(all, newBookStream(t, w.node, tokens, group))
	}
	return all
}

// judgeBooks checks the books of streams after kills of the node.
func (w *world) judgeBooks(t *testing.T, all []*bookStream, kills int) {
	t.Helper()
	hashes, resyncs := 0, 0
	for _, b := range all {
		b.check(t, w.node)
		hashes, resyncs = hashes+b.hashes, resyncs+b.kinds["resync"]
		if b.kinds["resync"] < kills/2 || b.kinds["price_change"] < kills ||
			b.kinds["last_trade_price"] == 0 {
			t.Errorf("%s: %v in %d kills", strings.Join(b.tokens, ", "), b.kinds, kills)
		}
	}
	t.Logf("figures: book_streams=%d hashes=%d resyncs=%d", len(all), hashes, resyncs)
}

// steadies returns the streams of both kinds.
func steadies(books []*bookStream, own []*ownStream) (all []*steady) {
	for _, b := range books {
		all = append(all, &b.steady)
	}
	for _, l := range own {
		all = append(all, &l.steady)
	}
	return slices.Clip(all)
}

// TestWithoutIOUring: --io-uring off keeps the node from using io_uring.
func TestWithoutIOUring(t *testing.T) {
	p := newProcess(t, buildNode(t), t.TempDir())
	p.start(t)
	_, text := get(t, p.admin, "/metrics")
	p.stop(t)
	if !strings.Contains(text, "\nclobd_stream_io_uring 1\n") {
		t.Skip("SKIPPED: the kernel has no io_uring for this process")
	}
	p.flags = []string{"--io-uring", "off"}
	p.start(t)
	p.measures(t, "clobd_stream_io_uring 0")
	p.stop(t)
}
