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

	"github.com/fasthttp/websocket"

	"clobd/cmd/cli"
	"clobd/ingress/auth"
	"clobd/scripts/asyncapi"
)

// news is a message of the user channel.
type news struct {
	Event    string   `json:"event_type"`
	Type     string   `json:"type"`
	ID       string   `json:"id"`
	Status   string   `json:"status"`
	Matched  string   `json:"size_matched"`
	Trades   []string `json:"associate_trades"`
	Sequence uint64   `json:"sequence"`
	Seq      uint64   `json:"seq"`
	Part     int      `json:"part"`
	Parts    int      `json:"parts"`
	body     string   // without the tail of the connection
}

// ownStream follows what happens to the orders of a trader, over as many connections as it takes.
type ownStream struct {
	t      *testing.T
	trader *actor
	url    string
	secret bool // sends the secret, and not an HMAC

	mutex sync.Mutex
	heard []news
	open  *websocket.Conn
	over  bool
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

// follow keeps a connection until the listener is stopped.
func (l *ownStream) follow() {
	for {
		l.mutex.Lock()
		over, after := l.over, map[string]any{"seq": 0}
		if n := len(l.heard); n > 0 {
			after = map[string]any{"seq": l.heard[n-1].Seq, "part": l.heard[n-1].Part}
		}
		l.mutex.Unlock()
		if over {
			return
		}
		if c, _, err := websocket.DefaultDialer.Dial(l.url, nil); err == nil { //nolint:bodyclose // 101
			if err := c.WriteJSON(l.login(l.t, after)); err == nil {
				l.listen(c)
			}
			c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// listen reads a connection to its end.
func (l *ownStream) listen(c *websocket.Conn) {
	l.mutex.Lock()
	if l.open = c; l.over {
		c.Close()
	}
	l.mutex.Unlock()
	for sequence := uint64(1); ; sequence++ {
		_, text, err := c.ReadMessage()
		if err != nil {
			return
		}
		var m news
		err = errors.Join(json.Unmarshal(text, &m), asyncapi.Check("/ws/user", text))
		if err != nil || m.Sequence != sequence {
			l.t.Errorf("message %d: %s %v", sequence, text, err)
			return
		}
		body, _, _ := bytes.Cut(text, []byte(`,"stream_id"`))
		switch m.body = string(body); m.Event {
		case "heartbeat":
		case "order", "trade":
			l.mutex.Lock()
			l.heard = append(l.heard, m)
			l.mutex.Unlock()
		default:
			l.t.Errorf("%s", text)
		}
	}
}

// stop ends the listener.
func (l *ownStream) stop() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.over = true; l.open != nil {
		l.open.Close()
	}
}

// settled waits until nothing new comes, and returns all that was heard.
func (l *ownStream) settled() []news {
	for last, since := -1, time.Now(); ; time.Sleep(20 * time.Millisecond) {
		l.mutex.Lock()
		n, heard := len(l.heard), slices.Clone(l.heard)
		l.mutex.Unlock()
		if n != last {
			last, since = n, time.Now()
		} else if time.Since(since) > time.Second {
			return heard
		}
	}
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
			t.Fatalf("message %d follows %s\n%s", i, heard[max(i-1, 0)].body, m.body)
		}
		before, placed := orders[m.ID]
		switch {
		case m.Event == "trade" && m.Status == "MATCHED":
			trades[m.ID]++
		case m.Event == "trade":
			if trades[m.ID] != 1 || m.Status != "CONFIRMED" {
				t.Fatalf("%s", m.body)
			}
			trades[m.ID]++
		case placed != (m.Type != "PLACEMENT") || placed && before.Status != "LIVE":
			t.Fatalf("%s\n%s", before.body, m.body)
		case m.Type == "UPDATE" && trades[m.Trades[0]] == 0:
			t.Fatalf("an update before its trade: %s", m.body)
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

// TestUserStreams kills a node while the owners of orders listen and resume. In the end each has
// heard the whole story once, in order, as the records and a listener who begins at the first
// Sequence have it.
func TestUserStreams(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 4, 1)
	const each = 3 // listeners of a trader
	all := make([]*ownStream, each*len(w.traders))
	var group sync.WaitGroup
	defer group.Wait()
	for i := range all {
		x := w.traders[i/each]
		all[i] = &ownStream{t: t, trader: x, url: "ws://" + w.node.listen + "/ws/user", secret: i%2 == 0}
		group.Go(all[i].follow)
		defer all[i].stop()
	}
	w.kills(t, 3)
	for i, l := range all {
		x, heard := l.trader, l.settled()
		orders, trades := l.check(t, heard)
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
		if len(trades) == 0 {
			t.Error("no trades: the load is no load")
		}
		again := &ownStream{t: t, trader: x, url: l.url}
		group.Go(again.follow)
		said := again.settled()
		again.stop()
		if len(said) != len(heard) {
			t.Fatalf("%d messages heard, %d told again", len(heard), len(said))
		}
		for k := range said {
			if said[k].body != heard[k].body {
				t.Fatalf("heard %s\nagain %s", heard[k].body, said[k].body)
			}
		}
		t.Logf("listener %d: %d messages, %d orders, %d trades", i, len(heard), len(orders), len(trades))
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
	plain := &ownStream{t: t, trader: x, secret: true}
	signed := &ownStream{t: t, trader: x}
	other := &ownStream{t: t, trader: w.traders[1], secret: true}
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
	c := exec.Command(n.binary, "tail", "--url", "http://"+n.listen, "--user", key, "--from", "1")
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.load(t, func() {})
	out.await(t, `"type":"PLACEMENT"`, `"event_type":"trade"`, `"type":"UPDATE"`)
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
	write(w.traders[1].Trio.Secret)
	n.expect(t, cli.Failed, []string{"tail", "--url", "http://" + n.listen, "--user", key},
		"error: the node does not take the key", "hint: --user")
	n.expect(t, cli.Failed, []string{"tail", "--url", "http://" + n.listen}, "error: nothing to print")
}
