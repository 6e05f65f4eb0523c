package ingress

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/ingress/auth"
)

// unhurried are deadlines that no test lives to see.
func unhurried() deadlines {
	return deadlines{timeouts: &timeouts{request: time.Hour, idle: time.Hour, answer: time.Hour},
		began: time.Now()}
}

// counting is a connection that counts how often it is given a deadline.
type counting struct {
	net.Conn
	set int
}

func (c *counting) SetReadDeadline(t time.Time) error {
	c.set++
	return c.Conn.SetReadDeadline(t)
}

func (c *counting) SetWriteDeadline(t time.Time) error {
	c.set++
	return c.Conn.SetWriteDeadline(t)
}

// waiting is a connection with the node's own deadlines, in a world of its own in which nothing but
// waiting takes time.
type waiting struct {
	t    *testing.T
	near counting
	far  net.Conn
	deadlines
}

// inTime runs test in such a world.
func inTime(t *testing.T, test func(*waiting)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		test(&waiting{t, counting{Conn: near}, far, deadlines{
			timeouts: &timeouts{request: 5 * time.Second, idle: time.Minute, answer: 8 * time.Second},
			began:    time.Now()}})
	})
}

// sends lets the client send one byte at this second.
func (w *waiting) sends(second int) {
	go func() {
		time.Sleep(time.Duration(second)*time.Second - time.Since(w.began))
		_, _ = w.far.Write([]byte{'x'})
	}()
}

// reads reads and fails unless that ends at this second, well or not.
func (w *waiting) reads(second int, good bool) {
	w.t.Helper()
	_, err := w.read(&w.near, make([]byte, 1))
	w.ended(second, good, err)
}

// ended fails unless it is this second, and err as it should be.
func (w *waiting) ended(second int, good bool, err error) {
	w.t.Helper()
	if at := time.Since(w.began); at != time.Duration(second)*time.Second || good != (err == nil) ||
		!good && !errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Fatalf("ended after %v with %v, want %d s", at, err, second)
	}
}

// TestReadDeadlines: a request has its time from its first byte on, whatever trickles in, and none
// is needed between requests but the idle time, which earlier deadlines do not cut short.
func TestReadDeadlines(t *testing.T) {
	inTime(t, func(w *waiting) { w.reads(5, false) })
	inTime(t, func(w *waiting) {
		w.sends(3)
		w.reads(3, true)
		w.sends(4)
		w.reads(4, true)
		w.reads(5, false)
	})
	inTime(t, func(w *waiting) {
		w.sends(1)
		w.reads(1, true)
		w.idle = true
		w.sends(41) // long after what the socket was told for the first request
		w.reads(41, true)
		w.begins()
		w.reads(46, false)
	})
	inTime(t, func(w *waiting) {
		w.idle = true
		w.sends(50)
		w.reads(50, true)
		w.begins()
		w.idle = true
		w.reads(110, false)
	})
	inTime(t, func(w *waiting) { // a part of the next request came with the one before
		w.sends(2)
		w.reads(2, true)
		w.idle = true
		w.begins()
		w.reads(7, false)
	})
}

// TestDeadlinesAreRarelySet: not for each request, which is what this is about.
func TestDeadlinesAreRarelySet(t *testing.T) {
	inTime(t, func(w *waiting) {
		for second := range 300 {
			w.sends(second)
			w.reads(second, true)
			w.begins()
			w.idle = true
		}
		if w.near.set > 10 {
			t.Errorf("%d deadlines for 300 requests", w.near.set)
		}
	})
}

// TestWriteDeadlines: an answer has its time for all its parts together, the next one has its own,
// and between them none is left to pass.
func TestWriteDeadlines(t *testing.T) {
	takes := func(w *waiting, second int) {
		go func() {
			time.Sleep(time.Duration(second)*time.Second - time.Since(w.began))
			_, _ = w.far.Read(make([]byte, 1))
		}()
	}
	writes := func(w *waiting, second int, good bool) {
		w.t.Helper()
		_, err := w.write(&w.near, []byte{'x'})
		w.ended(second, good, err)
	}
	inTime(t, func(w *waiting) {
		for _, second := range []int{3, 7} {
			takes(w, second)
			writes(w, second, true)
		}
		writes(w, 8, false)
	})
	inTime(t, func(w *waiting) {
		takes(w, 7)
		writes(w, 7, true)
		time.Sleep(33 * time.Second)
		takes(w, 40)
		_, err := w.near.Write([]byte{'x'})
		w.ended(40, true, err)
		w.begins()
		writes(w, 48, false)
	})
}

// TestTimeouts: what clients are told.
func TestTimeouts(t *testing.T) {
	want := timeouts{request: 5 * time.Second, idle: time.Minute, answer: 8 * time.Second,
		refusal: 100 * time.Millisecond}
	s, err := New(Options{
		Keyring: auth.NewKeyring([32]byte{}), Verifier: auth.NewVerifier(nil), Chains: []uint64{1},
	})
	if err != nil || s.timeouts != want {
		t.Errorf("%+v, want %+v: %v", s.timeouts, want, err)
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
	c := &countedConn{Conn: socket, draining: new(atomic.Bool), deadlines: unhurried(),
		orders: orderConn{seat: newSeat(newPool(1))}}
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
	h.server.timeouts = timeouts{readTimeout, idleTimeout, writeTimeout, refusalTimeout}
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
			time.Sleep(3 * readTimeout)
		}
	})
}

// TestIdleOverASocket: nor does the kernel mix up the two. A machine that takes longer for the
// first request than a client may is given more time, and the client as much more between the two.
func TestIdleOverASocket(t *testing.T) {
	const request = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"
	for span := 50 * time.Millisecond; span < patience; span *= 4 {
		h := newHouse(t, nil)
		h.server.timeouts.request = span
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
				if d := time.Since(start); err != nil || d != readTimeout {
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
		if d := time.Since(start); len(b) != 0 || err != nil || d != idleTimeout {
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
	h.server.timeouts.answer = 50 * time.Millisecond
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
