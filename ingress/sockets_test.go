package ingress

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/ingress/cors"
)

const upgrade = " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

// echo sends back what it hears.
func echo(s *live.Socket) {
	for {
		text, err := s.Read(time.Minute)
		if err != nil {
			return
		}
		_, _ = s.Send(live.AppendFrame(nil, text))
	}
}

// masked is a text as a client sends it, with a mask of zeros.
func masked(text string) string {
	return "\x81" + string([]byte{0x80 | byte(len(text)), 0, 0, 0, 0}) + text
}

// socketAt asks for a socket over c, with more headers and bytes, and returns the answer's status
// line and what follows the answer.
func socketAt(t *testing.T, c net.Conn, path, more string) (status string, rest *bufio.Reader) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(4 * patience))
	go func() { _, _ = io.WriteString(c, "GET "+path+upgrade+more) }()
	rest = bufio.NewReader(c)
	status, err := rest.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(status, " 101 ") {
		return status, rest
	}
	for {
		line, err := rest.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		} else if line == "\r\n" {
			return status, rest
		}
	}
}

// hears reads one short text.
func hears(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	b := make([]byte, 2+len(want))
	if _, err := io.ReadFull(r, b); err != nil || string(b[2:]) != want {
		t.Errorf("%q, %v, want %q", b, err, want)
	}
}

// TestSockets: a request becomes a socket, what came right behind the request is heard first, and
// the connection is none of the door's any more: its place is free, and it outlives the deadlines.
func TestSockets(t *testing.T) {
	h := newHouse(t, func(o *Options) {
		o.Market = echo
		o.User = func(s *live.Socket, _ wire.Login) { echo(s) }
	})
	h.server.turnstile.Timeouts.Request = 50 * time.Millisecond
	h.server.turnstile.Timeouts.Idle = 50 * time.Millisecond
	for _, path := range []string{"/ws", "/ws/market", "/clob/ws", "/clob/ws/market", "/ws/market/",
		"/ws/user", "/clob/ws/user"} {
		d := h.dial(t)
		status, r := socketAt(t, d, path, "\r\n"+masked("early"))
		if !strings.Contains(status, " 101 ") {
			t.Fatalf("%s: %s", path, status)
		}
		hears(t, r, "early")
		time.Sleep(150 * time.Millisecond)
		fmt.Fprint(d, masked("a"), masked("later"))
		hears(t, r, "a")
		hears(t, r, "later")
		door := h.server.turnstile
		if door.Open() != 0 || door.Sockets() != 1 {
			t.Errorf("%s: %d connections and %d sockets", path, door.Open(), door.Sockets())
		}
		_ = d.Close()
		awaitSockets(h, 0)
	}
}

// awaitSockets waits until there are n.
func awaitSockets(h *house, n int) {
	h.t.Helper()
	end := time.Now().Add(patience)
	for h.server.turnstile.Sockets() != n {
		if time.Sleep(time.Millisecond); time.Now().After(end) {
			h.t.Fatalf("%d sockets, not %d", h.server.turnstile.Sockets(), n)
		}
	}
}

// TestSocketRefusals: a handshake that is wrong, a page that may not read answers, an address with
// its share of sockets, and a node that stops get an answer in the clear, and no place.
func TestSocketRefusals(t *testing.T) {
	h := newHouse(t, func(o *Options) {
		o.Market, o.SocketsPerAddress, o.Sockets = echo, 2, 3
		o.Origins, _ = cors.Parse("https://desk.example")
	})
	refused := func(more, want string) {
		t.Helper()
		d := h.dial(t)
		defer d.Close()
		if status, _ := socketAt(t, d, "/ws", more+"\r\n"); !strings.Contains(status, " "+want) {
			t.Errorf("%q: %s, want %s", more, status, want)
		}
	}
	refused("Sec-WebSocket-Key: x\r\n", "101") // the first one counts
	awaitSockets(h, 0)
	refused("Origin: https://other.example\r\n", "403")
	refused("Origin: null\r\n", "403")
	refused("Origin: ftp://x\r\n", "403")
	refused("Origin: http://x:81\r\n", "403")
	refused("Origin: http://X\r\n", "101") // a page of the host itself
	awaitSockets(h, 0)
	refused("Origin: https://desk.example\r\n", "101")
	awaitSockets(h, 0)
	one, two := h.dial(t), h.dial(t)
	for _, d := range []net.Conn{one, two} {
		if status, _ := socketAt(t, d, "/ws", "\r\n"); !strings.Contains(status, " 101 ") {
			t.Fatal(status)
		}
	}
	refused("", "429")
	_ = one.Close()
	awaitSockets(h, 1)
	refused("", "101")
	_ = two.Close()
	awaitSockets(h, 0)
	h.server.draining.Store(true)
	refused("", "503")
	h.server.draining.Store(false)
}

// TestPanicOfSocket: a panic of what serves a socket ends the socket, and nothing else.
func TestPanicOfSocket(t *testing.T) {
	h := newHouse(t, func(o *Options) {
		o.Market = func(s *live.Socket) {
			if text, err := s.Read(time.Minute); err == nil && string(text) == "panic" {
				panic("as asked")
			}
		}
	})
	d := h.dial(t)
	status, r := socketAt(t, d, "/ws", "\r\n"+masked("panic"))
	if !strings.Contains(status, " 101 ") {
		t.Fatal(status)
	}
	if b, err := r.ReadByte(); err == nil {
		t.Errorf("a byte %x", b)
	}
	awaitSockets(h, 0)
	if got := h.send("GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(got, "200") {
		t.Errorf("afterwards: %s", got)
	}
	if n := counted(t, h.server.metrics.panics); n != 1 {
		t.Errorf("%v panics are counted", n)
	}
}

// TestSocketOverTLS: a socket over TLS is one in the clear, and a client that does not read keeps
// nobody who writes to it.
func TestSocketOverTLS(t *testing.T) {
	written := make(chan error, 1)
	flood := func(s *live.Socket) {
		if text, err := s.Read(time.Minute); err != nil || string(text) != "flood" {
			written <- fmt.Errorf("%q, %w", text, err)
			return
		}
		_, _ = s.Send(live.AppendFrame(nil, []byte("ok")))
		frame, err := live.AppendFrame(nil, make([]byte, 64<<10)), error(nil)
		for i := 0; i < 1000 && err == nil; i++ {
			_, err = s.Send(frame)
		}
		written <- err
	}
	_, addr, trust := secureHouse(t, time.Hour, func(o *Options) { o.Market = flood })
	c, err := tls.Dial("tcp", addr, trust)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	status, r := socketAt(t, c, "/ws", "\r\n"+masked("flood"))
	if !strings.Contains(status, " 101 ") {
		t.Fatal(status)
	}
	hears(t, r, "ok")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case err := <-written:
		if err == nil {
			t.Error("64 MB were taken for a client that reads nothing")
		}
	case <-ctx.Done():
		t.Error("a write waits for the client")
	}
}
