package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unique"

	"github.com/fasthttp/websocket"

	"clobd/cmd/cli"
	"clobd/ingress/auth"
	"clobd/scripts/asyncapi"
	"clobd/scripts/setting"
)

// news is a message of the user channel.
type news struct {
	Event    string                `json:"event_type"`
	Type     string                `json:"type"`
	ID       string                `json:"id"`
	Status   string                `json:"status"`
	Matched  string                `json:"size_matched"`
	Trades   []string              `json:"associate_trades"`
	Sequence uint64                `json:"sequence"`
	Seq      uint64                `json:"seq"`
	Part     int                   `json:"part"`
	Parts    int                   `json:"parts"`
	body     unique.Handle[string] // without the tail, which belongs to the connection
}

// ownStream is a stream of what happens to the orders of a trader.
type ownStream struct {
	steady
	trader *actor
	secret bool // sends the secret, and not an HMAC
	heard  []news
}

// begin starts the stream at the trader's first order.
func (l *ownStream) begin(t *testing.T, n *process, group *sync.WaitGroup) {
	l.t, l.url = t, "ws://"+n.listen+"/ws/user"
	group.Go(func() { l.follow(l.hello, l.hear) })
}

// login is the first message of a connection.
func (l *ownStream) login(t *testing.T, resume map[string]any) map[string]any {
	t.Helper()
	trio := &l.trader.Trio
	proof := map[string]any{"apiKey": trio.Key, "passphrase": trio.Passphrase}
	if l.secret {
		proof["secret"] = trio.Secret
	} else {
		r := auth.Request{Timestamp: strconv.FormatInt(time.Now().Unix(), 10), Method: http.MethodGet,
			Path: "/ws/user"}
		if err := trio.Sign(&r); err != nil {
			t.Error(err)
		}
		proof["timestamp"], proof["signature"] = r.Timestamp, r.Signature
	}
	wish := map[string]any{"type": "USER", "auth": proof, "markets": []string{}, "heartbeat": true}
	if resume != nil {
		wish["resume"] = resume
	}
	if text, err := json.Marshal(wish); err != nil || asyncapi.CheckSent("/ws/user", text) != nil {
		t.Errorf("%s %v: %v", text, err, asyncapi.CheckSent("/ws/user", text))
	}
	return wish
}

// hello logs in, and resumes after the last message that was heard.
func (l *ownStream) hello() any {
	after := map[string]any{"seq": 0}
	if n := len(l.heard); n > 0 {
		after = map[string]any{"seq": l.heard[n-1].Seq, "part": l.heard[n-1].Part}
	}
	return l.login(l.t, after)
}

// hear checks a message and remembers it.
func (l *ownStream) hear(text []byte, first uint64) (int, error) {
	var m news
	err := errors.Join(json.Unmarshal(text, &m), asyncapi.Check("/ws/user", text))
	if err != nil || m.Sequence != first {
		return 0, fmt.Errorf("%s: %w", text, err)
	}
	body, _, _ := bytes.Cut(text, []byte(`,"stream_id"`))
	switch m.body = unique.Make(string(body)); m.Event {
	case "heartbeat":
	case "order", "trade":
		l.heard = append(l.heard, m)
	default:
		return 0, fmt.Errorf("%s", text)
	}
	return 1, nil
}

// all returns all messages heard so far.
func (l *ownStream) all() []news {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.Clone(l.heard)
}

// check looks whether all that was heard fits together: each part once, in its place, an order
// placed before it changes, a trade told before the order that it filled.
func (l *ownStream) check(t *testing.T, heard []news) (
	orders map[string]news, trades map[string]int) {
	t.Helper()
	orders, trades = make(map[string]news), make(map[string]int)
	for i, m := range heard {
		next := m.Part == 1
		if i > 0 && heard[i-1].Seq == m.Seq {
			next = m.Part == heard[i-1].Part+1 && m.Parts == heard[i-1].Parts
		} else if i > 0 {
			next = next && m.Seq > heard[i-1].Seq && heard[i-1].Part == heard[i-1].Parts
		}
		if !next {
			t.Fatalf("message %d follows %s\n%s", i, heard[max(i-1, 0)].body.Value(), m.body.Value())
		}
		before, placed := orders[m.ID]
		switch {
		case m.Event == "trade" && m.Status == "MATCHED":
			trades[m.ID]++
		case m.Event == "trade":
			if trades[m.ID] != 1 || m.Status != "CONFIRMED" {
				t.Fatalf("%s", m.body.Value())
			}
			trades[m.ID]++
		case placed != (m.Type != "PLACEMENT") || placed && before.Status != "LIVE":
			t.Fatalf("%s\n%s", before.body.Value(), m.body.Value())
		case m.Type == "UPDATE" && trades[m.Trades[0]] == 0:
			t.Fatalf("an update before its trade: %s", m.body.Value())
		}
		if m.Event == "order" {
			orders[m.ID] = m
		}
	}
	for id, n := range trades {
		if n != 2 {
			t.Errorf("trade %s: %d messages", id, n)
		}
	}
	return orders, trades
}

// TestStreams: a node is killed again and again while owners of orders, and readers of books,
// listen and resume. In the end each owner has heard each message once and in order. The messages
// agree with the records, and with what a new listener hears from the first Sequence. Each reader
// has the right books. CLOBD_SIZE is the number of kills; from 50 on there are 50 listeners of each
// kind.
func TestStreams(t *testing.T) {
	setting.Full(t, "package api has the streams without a node of their own")
	t.Parallel()
	kills, each := setting.Size(t, 3, 2), 3
	if kills >= 50 {
		each = 50
	}
	w := newWorldOf(t, 4, 1+min(2, kills/3))
	var group sync.WaitGroup
	defer group.Wait()
	books := w.bookStreams(t, each, &group)
	own := make([]*ownStream, 0, 2*each)
	for i := range max(each, 2*len(w.traders)) {
		own = append(own, &ownStream{trader: w.traders[i%len(w.traders)],
			secret: i/len(w.traders)%2 == 0})
		own[i].begin(t, w.node, &group)
	}
	defer func() {
		for _, s := range steadies(books, own) {
			s.stop()
		}
	}()
	settle(steadies(books, own)...) // until all streams have begun
	w.kills(t, kills)
	settle(steadies(books, own)...)
	w.judgeBooks(t, books, kills)
	for i, x := range w.traders {
		again := &ownStream{trader: x}
		again.begin(t, w.node, &group)
		settle(&again.steady)
		again.stop()
		orders, trades := again.check(t, again.all())
		x.recorded(t, orders)
		if len(trades) == 0 {
			t.Error("no trades: the load is no load")
		}
		for n := i; n < len(own); n += len(w.traders) {
			own[n].same(t, again.all())
		}
		t.Logf("trader %d: %d messages, %d orders, %d trades", i, len(again.all()), len(orders),
			len(trades))
	}
	t.Logf("figures: own_streams=%d", len(own))
}

// recorded compares the last message about each order of a trader with the order's record.
func (x *actor) recorded(t *testing.T, orders map[string]news) {
	t.Helper()
	for _, o := range x.sent {
		m, known := orders[o.id.Hex()]
		r, exists, err := x.lookup(o)
		if err != nil || exists != known {
			t.Fatalf("order %s: told %v, on record %v, %v", o.id.Hex(), known, exists, err)
		}
		if known && m.Matched != r.Matched {
			t.Errorf("order %s: told %s matched, on record %s", o.id.Hex(), m.Matched, r.Matched)
		}
	}
}

// same compares the stream's messages with those that another stream of the same owner heard.
func (l *ownStream) same(t *testing.T, want []news) {
	t.Helper()
	heard := l.all()
	for k := range min(len(heard), len(want)) {
		if heard[k].body != want[k].body || heard[k].Seq != want[k].Seq {
			t.Fatalf("message %d: heard %s\nagain %s", k, heard[k].body.Value(), want[k].body.Value())
		}
	}
	if len(heard) != len(want) {
		t.Fatalf("%d messages heard, %d told again", len(heard), len(want))
	}
}

// say opens the user channel, sends a text and returns the first message that comes back, or how
// the socket was closed.
func say(t *testing.T, url string, text any) (c *websocket.Conn, answer string) {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(url, nil) //nolint:bodyclose // 101
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.WriteJSON(text); err != nil {
		t.Fatal(err)
	}
	return c, next(c)
}

// next returns the next message, or how the socket was closed.
func next(c *websocket.Conn) string {
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, b, err := c.ReadMessage()
	if err != nil {
		return err.Error()
	}
	if err := asyncapi.Check("/ws/user", b); err != nil {
		return err.Error()
	}
	return string(b)
}

// TestUserLogin: the door lets in who proves a key, whichever way, and nobody else. A key that is
// revoked ends the sockets that it has opened.
func TestUserLogin(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 2, 1)
	x, url := w.traders[0], "ws://"+w.node.listen+"/ws/user"
	status, body, err := x.exchange(http.MethodPost, "/auth/readonly-api-key", nil)
	var readOnly struct {
		Key string `json:"apiKey"`
	}
	if e := json.Unmarshal(body, &readOnly); e != nil || err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v %v", status, body, err, e)
	}
	plain := &ownStream{trader: x, secret: true}
	signed := &ownStream{trader: x}
	other := &ownStream{trader: w.traders[1], secret: true}
	with := func(wish map[string]any, name string, value any) map[string]any {
		wish["auth"].(map[string]any)[name] = value
		return wish
	}
	who := x.Signer.Address.Hex()
	const in, out = `"event_type":"heartbeat"`, `"code":"unauthorized"`
	for name, c := range map[string]struct {
		wish map[string]any
		want string
	}{
		"secret":          {plain.login(t, nil), in},
		"HMAC":            {signed.login(t, nil), in},
		"own address":     {with(signed.login(t, nil), "address", who), in},
		"other address":   {with(signed.login(t, nil), "address", w.traders[1].Signer.Address.Hex()), out},
		"other secret":    {with(plain.login(t, nil), "secret", w.traders[1].Trio.Secret), out},
		"no secret":       {with(plain.login(t, nil), "secret", "?"), out},
		"other key":       {with(plain.login(t, nil), "apiKey", w.traders[1].Trio.Key), out},
		"passphrase":      {with(plain.login(t, nil), "passphrase", "x"), out},
		"old HMAC":        {with(signed.login(t, nil), "timestamp", "1700000000"), "out of the window"},
		"read-only":       {readerLogin(readOnly.Key, who), in},
		"read-only other": {readerLogin(readOnly.Key, w.traders[1].Signer.Address.Hex()), out},
		"nothing":         {map[string]any{"type": "user"}, out},
	} {
		s, answer := say(t, url, c.wish)
		if !strings.Contains(answer, c.want) {
			t.Errorf("%s: %s", name, answer)
		} else if c.want != in && !strings.Contains(next(s), "1008") {
			t.Errorf("%s: the socket stays open", name)
		}
	}
	s, answer := say(t, url, plain.login(t, map[string]any{"seq": 1 << 40}))
	for ; !strings.Contains(answer, "unknown_seq"); answer = next(s) {
		if !strings.Contains(answer, in) {
			t.Fatal(answer)
		}
	}
	if _, text := get(t, w.node.admin, "/metrics"); !strings.Contains(text,
		`clobd_stream_resumes_total{source="unknown"} 1`) || strings.Contains(text, `source="journal"`) {
		t.Error("a resume that failed is not counted as one")
	}
	stays, _ := say(t, url, other.login(t, nil))
	if status, body, err = x.exchange(http.MethodDelete, "/auth/api-key", nil); status != http.StatusOK {
		t.Fatalf("%d %s %v", status, body, err)
	}
	for answer = next(s); strings.Contains(answer, in); answer = next(s) {
	}
	if !strings.Contains(answer, "1008") || !strings.Contains(answer, "revoked") {
		t.Errorf("a revoked key: %s", answer)
	}
	if answer = next(stays); !strings.Contains(answer, in) {
		t.Errorf("the other key: %s", answer)
	}
	if _, answer = say(t, url, signed.login(t, nil)); !strings.Contains(answer, out) {
		t.Errorf("a revoked key: %s", answer)
	}
}

func readerLogin(key, address string) map[string]any {
	return map[string]any{"type": "user", "heartbeat": true,
		"auth": map[string]any{"apiKey": key, "address": address}}
}

// TestTailOfUser: a tail prints what happens to the orders of a key, and goes on where it was when
// the node comes back. A wrong key ends it.
func TestTailOfUser(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 2, 1)
	n, trio := w.node, w.traders[0].Trio
	key := filepath.Join(t.TempDir(), "key.json")
	write := func(secret string) {
		text := fmt.Sprintf(`{"apiKey":%q,"secret":%q,"passphrase":%q}`, trio.Key, secret, trio.Passphrase)
		if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(trio.Secret)
	out := &heard{}
	args := []string{"tail", "--url", "http://" + n.listen, "--user", key, "--from", "1"}
	for _, o := range w.tokens { // one token of a market stands for the market
		args = append(args, "--market", o.token)
	}
	c := exec.Command(n.binary, args...)
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	all := []string{`"type":"PLACEMENT"`, `"event_type":"trade"`, `"type":"UPDATE"`}
	w.loadUntil(t, func() {}, func(*round) bool { return out.missing(all) == "" })
	n.kill(t)
	n.start(t)
	sent := w.load(t, func() {})
	for _, i := range sent {
		if i.trader == w.traders[0] && i.answered {
			out.await(t, `"id":"`+i.id.Hex()) // also what came while the tail was away
			break
		}
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out.take())
	}
	n.expect(t, cli.Failed, []string{"tail", "--url", "http://" + n.listen, "--user", key, "--market",
		"0x" + strings.Repeat("0", 64)}, "error: the node does not know a market", "hint: --market names")
	n.expect(t, cli.Failed, []string{"tail", "--url", "http://" + n.listen, "--user", key, "--market",
		"77"}, "error: find the market of token 77", "404")
	write(w.traders[1].Trio.Secret)
	n.expect(t, cli.Failed, []string{"tail", "--url", "http://" + n.listen, "--user", key},
		"error: the node does not take the key", "hint: --user")
	n.expect(t, cli.Failed, []string{"tail", "--url", "http://" + n.listen}, "error: nothing to print")
}
