package ingress

import (
	"bufio"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
)

// serveTCP opens the door of h on a socket, and returns how to dial it.
func serveTCP(t *testing.T, h *house) func() net.Conn {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.server.Serve(ln) }() // ends with the house
	return func() net.Conn {
		c, err := net.Dial("tcp4", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(4 * patience))
		return c
	}
}

// ask sends a request over c, unless it is to be turned away unread, and reads the answer.
func ask(t *testing.T, c net.Conn, request string) string {
	t.Helper()
	if _, err := c.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	var r fasthttp.Response
	if err := r.Read(bufio.NewReader(c)); err != nil {
		t.Fatal(err)
	}
	return render(&r)
}

// awaitOpen waits until so many connections are left.
func awaitOpen(t *testing.T, h *house, want int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		open := h.server.turnstile.Open()
		if open == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are open, want %d", open, want)
		}
	}
}

func TestTurnstile(t *testing.T) {
	const fine = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, c := range []struct {
		all, each int
		want      string
	}{
		{64, 2, "429\nRetry-After: 1\n" +
			`{"error":"too many connections from this address","code":"rate_limited"}` + "\n"},
		{2, 64, "503\nRetry-After: 1\n" +
			`{"error":"too many connections, nothing was entered, send again","code":"busy"}` + "\n"},
	} {
		h := newHouse(t, func(o *Options) { o.Concurrency, o.ConnsPerAddress = c.all, c.each })
		dial := serveTCP(t, h)
		first, second := dial(), dial()
		for _, good := range []net.Conn{first, second} {
			if got := ask(t, good, fine); got[:4] != "200\n" {
				t.Fatalf("let in: %s", got)
			}
		}
		if got := ask(t, dial(), ""); got != c.want {
			t.Errorf("one too many: %s", got)
		}
		_ = first.Close()
		awaitOpen(t, h, 1)
		if got := ask(t, dial(), fine); got[:4] != "200\n" {
			t.Errorf("after one has left: %s", got)
		}
	}
}

// TestServeAfterClose: a Server that is closed serves nothing any more, and whoever asks it to is
// not kept waiting.
func TestServeAfterClose(t *testing.T) {
	h := newHouse(t, nil)
	s := h.server
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	ln := fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it serves on")
	}
	if _, err := ln.Accept(); err == nil {
		t.Error("the listener is open")
	}
}
