package ingress

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

// unhurried are deadlines that no test lives to see.
func unhurried() deadlines {
	return deadlines{timeouts: &timeouts{time.Minute, time.Minute, time.Minute}, began: time.Now()}
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
	want := timeouts{request: 5 * time.Second, idle: time.Minute, answer: 8 * time.Second}
	if got := newHouse(t, nil).server.timeouts; got != want {
		t.Errorf("%+v, want %+v", got, want)
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

// TestIdleIsNoSlowRequest: over a socket, between two requests.
func TestIdleIsNoSlowRequest(t *testing.T) {
	h := newHouse(t, nil)
	h.server.timeouts.request = 50 * time.Millisecond
	c := h.dial(t)
	for range 3 {
		c.write("GET /ok HTTP/1.1\r\nHost: x\r\n\r\n")
		if got := c.answer(); !strings.HasPrefix(got, "200") {
			t.Fatal(got)
		}
		time.Sleep(3 * h.server.timeouts.request)
	}
}

// TestSlowRequestIsNotIdle: one that stops anywhere, after another one was answered and behind one
// in a pipeline, is not waited for as the next one is.
func TestSlowRequestIsNotIdle(t *testing.T) {
	const whole = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"
	const list = "POST /books HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n"
	h := newHouse(t, nil)
	h.server.timeouts.request = 50 * time.Millisecond
	for _, begun := range []string{whole[:9], list[:len(list)-1], list, list + "[",
		strings.Replace(list, "20", "20000", 1),
		strings.Replace(list, "Content-Length: 20", "Transfer-Encoding: chunked", 1),
		strings.Replace(list, "Host", "Expect: 100-continue\r\nHost", 1)} {
		for _, pipelined := range []bool{false, true} {
			c := h.dial(t)
			if pipelined {
				c.write(whole + begun)
			} else {
				c.write(whole)
				_ = c.answer()
				c.write(begun)
			}
			start := time.Now()
			_, err := io.Copy(io.Discard, c.reader)
			if d := time.Since(start); err != nil || d > idleTimeout/20 {
				t.Errorf("%q, pipelined %v, was waited for %v: %v", begun, pipelined, d, err)
			}
		}
	}
}

// TestIdleEnds: who sends no second request is hung up on, without a word.
func TestIdleEnds(t *testing.T) {
	h := newHouse(t, nil)
	h.server.timeouts.idle = 50 * time.Millisecond
	c := h.dial(t)
	c.write("GET /ok HTTP/1.1\r\nHost: x\r\n\r\n")
	if got := c.answer(); !strings.HasPrefix(got, "200") {
		t.Fatal(got)
	}
	if b, err := io.ReadAll(c.reader); len(b) != 0 || err != nil {
		t.Errorf("%q, %v", b, err)
	}
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
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		h.server.turnstile.mutex.Lock()
		open := h.server.turnstile.open
		h.server.turnstile.mutex.Unlock()
		if open == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are open", open)
		}
	}
	if n, _ := io.Copy(io.Discard, c.reader); n >= long {
		t.Errorf("all %d bytes arrived", n)
	}
}
