package ingress

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/ingress/auth"
	"clobd/ingress/conn"
)

// TestTimeouts: what clients are told.
func TestTimeouts(t *testing.T) {
	want := conn.Timeouts{Request: 5 * time.Second, Idle: time.Minute, Answer: 8 * time.Second,
		Refusal: 100 * time.Millisecond}
	s, err := New(Options{
		Keyring: auth.NewKeyring([32]byte{}), Verifier: auth.NewVerifier(nil), Chains: []uint64{1},
	})
	if err != nil || s.turnstile.Timeouts != want {
		t.Errorf("%+v, want %+v: %v", s.turnstile.Timeouts, want, err)
	}
}

// countedTCP is a socket that counts how often it is given a deadline for writing.
type countedTCP struct {
	*net.TCPConn
	set int
}

func (c *countedTCP) SetWriteDeadline(t time.Time) error {
	c.set++
	return c.TCPConn.SetWriteDeadline(t)
}

// TestRoomNeedsNoDeadline: an answer for which there is room is written without one.
func TestRoomNeedsNoDeadline(t *testing.T) {
	near, far := tcpPair(t)
	socket := &countedTCP{TCPConn: near.(*net.TCPConn)}
	c := connOver(t, socket, newPool(1))
	for range 10 {
		if n, err := c.Write([]byte("answer")); n != 6 || err != nil {
			t.Fatal(n, err)
		}
	}
	got := make([]byte, 60)
	if _, err := io.ReadFull(far, got); err != nil || socket.set != 0 {
		t.Errorf("%d deadlines for 10 answers: %v", socket.set, err)
	}
}

// strictHouse is a house whose door waits for clients as long as a node's does, in a bubble.
func strictHouse(t *testing.T) *house {
	h := newHouse(t, nil)
	h.server.turnstile.Timeouts = conn.Timeouts{Request: conn.RequestTimeout, Idle: conn.IdleTimeout,
		Answer: conn.AnswerTimeout, Refusal: conn.RefusalTimeout}
	return h
}

// oneListener has one connection to accept.
type oneListener struct {
	conns chan net.Conn
	once  sync.Once
}

func (l *oneListener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l *oneListener) Close() error {
	l.once.Do(func() { close(l.conns) })
	return nil
}

func (l *oneListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// connect is dial in memory, where nothing but waiting takes time. It is the standard library's
// pipe, as the errors of the one that other tests use are no network's.
func (h *house) connect(t *testing.T) *dialed {
	t.Helper()
	near, far := net.Pipe()
	ln := &oneListener{conns: make(chan net.Conn, 1)}
	ln.conns <- near
	go func() { _ = h.server.Serve(ln) }() // ends with the house
	t.Cleanup(func() { _ = far.Close() })
	return &dialed{far, t, bufio.NewReader(far)}
}

// TestIdleIsNoSlowRequest: a client may take longer between two requests than for one.
func TestIdleIsNoSlowRequest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := strictHouse(t).connect(t)
		for range 3 {
			c.write("GET /ok HTTP/1.1\r\nHost: x\r\n\r\n")
			if got := c.answer(); !strings.HasPrefix(got, "200") {
				t.Fatal(got)
			}
			time.Sleep(3 * conn.RequestTimeout)
		}
	})
}

// TestIdleOverASocket: nor does the kernel mix up the two. A machine that takes longer for the
// first request than a client may is given more time, and the client as much more between the two.
func TestIdleOverASocket(t *testing.T) {
	const request = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"
	for span := 50 * time.Millisecond; span < patience; span *= 4 {
		h := newHouse(t, nil)
		h.server.turnstile.Timeouts.Request = span
		c := h.dial(t)
		_, _ = io.WriteString(c, request)
		var r fasthttp.Response
		if err := r.Read(c.reader); err != nil || r.StatusCode() == fasthttp.StatusRequestTimeout {
			continue
		}
		time.Sleep(3 * span)
		c.write(request)
		if got := c.answer(); !strings.HasPrefix(got, "200") {
			t.Error(got)
		}
		return
	}
	t.Error("the door waits for no request")
}

// TestSlowRequestIsNotIdle: one that stops anywhere, after another one was answered and behind one
// in a pipeline, is not waited for as the next one is.
func TestSlowRequestIsNotIdle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := strictHouse(t)
		const whole = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"
		const list = "POST /books HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n"
		for _, begun := range []string{whole[:9], list[:len(list)-1], list, list + "[",
			strings.Replace(list, "20", "20000", 1),
			strings.Replace(list, "Content-Length: 20", "Transfer-Encoding: chunked", 1),
			strings.Replace(list, "Host", "Expect: 100-continue\r\nHost", 1)} {
			for _, pipelined := range []bool{false, true} {
				c := h.connect(t)
				if pipelined {
					c.write(whole + begun)
				} else {
					c.write(whole)
					_ = c.answer()
					c.write(begun)
				}
				start := time.Now()
				_, err := io.Copy(io.Discard, c.reader)
				if d := time.Since(start); err != nil || d != conn.RequestTimeout {
					t.Errorf("%q, pipelined %v, was waited for %v: %v", begun, pipelined, d, err)
				}
			}
		}
	})
}

// TestIdleEnds: who sends no second request is hung up on, without a word.
func TestIdleEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := strictHouse(t).connect(t)
		c.write("GET /ok HTTP/1.1\r\nHost: x\r\n\r\n")
		if got := c.answer(); !strings.HasPrefix(got, "200") {
			t.Fatal(got)
		}
		start := time.Now()
		b, err := io.ReadAll(c.reader)
		if d := time.Since(start); len(b) != 0 || err != nil || d != conn.IdleTimeout {
			t.Errorf("after %v: %q, %v", d, b, err)
		}
	})
}

// TestUnreadAnswerEnds: nobody is waited for who does not read.
func TestUnreadAnswerEnds(t *testing.T) {
	const long = 64 << 20
	h := newHouse(t, func(o *Options) {
		o.Public = func(ctx *fasthttp.RequestCtx) { ctx.Response.SetBodyRaw(make([]byte, long)) }
	})
	h.server.turnstile.Timeouts.Answer = 50 * time.Millisecond
	c := h.dial(t)
	c.write("GET /book HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := c.reader.Peek(1); err != nil { // from here on it is among those that are open
		t.Fatal(err)
	}
	awaitOpen(t, h, 0)
	if n, _ := io.Copy(io.Discard, c.reader); n >= long {
		t.Errorf("all %d bytes arrived", n)
	}
}
