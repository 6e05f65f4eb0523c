package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"

	"clobd/scripts/asyncapi"
	"clobd/scripts/openapi"
)

// TestSockets: messages on a socket pass unchanged, and the report names those of either side that
// are not as documented.
func TestSockets(t *testing.T) {
	const tail = `"stream_id":"a-1","sequence":1,"server_ts_ms":1,"seq":1}`
	said := []string{"PONG", `{"event_type":"heartbeat","timestamp":"1",` + tail,
		`{"event_type":"heartbeat","timestamp":1,` + tail, `{"event_type":"heartbeat","timestamp":"1"}`}
	sent := []string{"PING", `{"type":"market","assets_ids":[]}`, `{"type":"market","assets":[]}`}
	upgrade := websocket.Upgrader{}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := upgrade.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		for _, want := range sent {
			if _, got, err := c.ReadMessage(); string(got) != want || err != nil {
				t.Errorf("the node hears %s %v", got, err)
			}
		}
		for _, text := range said {
			if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
				t.Error(err)
			}
		}
	}))
	defer node.Close()
	d, err := openapi.Load()
	if err != nil {
		t.Fatal(err)
	}
	p, err := asyncapi.Load()
	if err != nil {
		t.Fatal(err)
	}
	target, _ := url.Parse(node.URL)
	w := newWitness(d, p, target)
	w.seen = 1 // a report without any answer would be an error, too
	front := httptest.NewServer(w.proxy)
	defer front.Close()
	address := "ws" + strings.TrimPrefix(front.URL, "http") + "/ws/market"
	c, _, err := websocket.DefaultDialer.Dial(address, nil) //nolint:bodyclose // 101
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, text := range sent {
		if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range said {
		if _, got, err := c.ReadMessage(); string(got) != want || err != nil {
			t.Errorf("the client hears %s %v", got, err)
		}
	}
	var out strings.Builder
	if err := w.report(&out); err == nil || !strings.Contains(err.Error(), "3 answers or messages") {
		t.Error(err)
	}
	for _, want := range []string{"1 answers and 7 messages", "want string", "missing properties",
		"additional properties 'assets'"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
}

// TestEar: an ear hears text messages of all lengths, however the bytes are split, masked or not,
// and nothing else.
func TestEar(t *testing.T) {
	long, huge := strings.Repeat("x", 300), strings.Repeat("y", 70_000)
	stream := []byte{0x81, 2, 'h', 'i', 0x89, 1, 'p', 0x01, 1, 'a', 0x8a, 0, 0x80, 1, 'b',
		0x81, 0x82, 1, 2, 3, 4, 'o' ^ 1, 'k' ^ 2, 0x81, 126, 300 >> 8, 300 & 0xff}
	stream = append(append(stream, long...), 0x81, 127, 0, 0, 0, 0, 0, 70_000>>16, 70_000>>8&0xff,
		70_000&0xff)
	stream = append(stream, huge...)
	want := []string{"hi", "ab", "ok", long, huge}
	for _, step := range []int{1, 7, 4096, len(stream)} {
		var got []string
		e := ear{text: func(text []byte) { got = append(got, string(text)) }}
		for piece := range slices.Chunk(stream, step) {
			e.hear(piece)
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: %d texts", step, len(got))
		}
	}
}
