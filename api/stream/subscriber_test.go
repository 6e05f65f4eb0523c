package stream

import (
	"bufio"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"clobd/api/wire/live"
	"clobd/engine/view"
)

// TestSlowConsumer: a subscriber for whom too much waits is closed with 1013, and gets no more.
func TestSlowConsumer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	sockets := make(chan *live.Socket, 1)
	go func() {
		defer close(sockets)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		line, asked := live.NewLine(c), live.Asked{Key: r.Header.Get("Sec-Websocket-Key")}
		if s, err := live.Open(line, line, nil, asked); err == nil {
			sockets <- s
		}
	}()
	c, _, err := websocket.DefaultDialer.Dial("ws://"+ln.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h := New(Options{Board: view.NewBoard(), Now: time.Now})
	s := h.enter(<-sockets)
	large := &bulletin{body: make([]byte, maxBehind/4)}
	for range 5 {
		if s.enqueue(large); s.cut {
			t.Fatalf("cut with %d bytes", s.behind)
		}
	}
	if s.enqueue(large); !s.cut || s.queue != nil {
		t.Errorf("%d messages with %d bytes wait, cut: %v", len(s.queue), s.behind, s.cut)
	}
	s.enqueue(large)
	s.send(time.Now())
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, b, err := c.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseTryAgainLater) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
