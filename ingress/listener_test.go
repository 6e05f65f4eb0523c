package ingress

import (
	"bufio"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
)

// shortListener fails a few times as a process without free descriptors does.
type shortListener struct {
	net.Listener
	failures []error
}

func (l *shortListener) Accept() (net.Conn, error) {
	if len(l.failures) > 0 {
		err := l.failures[0]
		l.failures = l.failures[1:]
		return nil, err
	}
	return nil, net.ErrClosed
}

func TestListenerOutlivesShortage(t *testing.T) {
	short := func(e syscall.Errno) error {
		return &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", e)}
	}
	l := &shortListener{failures: []error{short(syscall.EMFILE), short(syscall.ENFILE),
		short(syscall.ECONNABORTED)}}
	p := newPatient(l, slog.New(slog.DiscardHandler))
	if _, err := p.Accept(); err != net.ErrClosed || len(l.failures) != 0 {
		t.Fatalf("Accept ended with %v, %d failures left", err, len(l.failures))
	}
	l.failures = []error{short(syscall.EINVAL)}
	if _, err := p.Accept(); err == net.ErrClosed {
		t.Fatal("an error that does not pass was waited out")
	}
}

// endlessListener never has a descriptor.
type endlessListener struct{ net.Listener }

func (endlessListener) Accept() (net.Conn, error) { return nil, syscall.EMFILE }
func (endlessListener) Close() error              { return nil }

func TestListenerClosesInShortage(t *testing.T) {
	p := newPatient(endlessListener{}, slog.New(slog.DiscardHandler))
	ended := make(chan error)
	go func() { _, err := p.Accept(); ended <- err }()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != net.ErrClosed {
		t.Fatalf("Accept ended with %v", err)
	}
}

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
		h.server.turnstile.mutex.Lock()
		open := h.server.turnstile.open
		h.server.turnstile.mutex.Unlock()
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

func TestConnectionsLeaveDescriptors(t *testing.T) {
	if got := connections(1 << 40); got > 1<<30 {
		t.Errorf("more connections than descriptors: %d", got)
	}
	if got := connections(7); got != 7 {
		t.Errorf("asked for 7, got %d", got)
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
