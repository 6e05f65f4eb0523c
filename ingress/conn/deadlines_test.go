package conn

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

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
	*Conn
}

// inTime runs test in such a world.
func inTime(t *testing.T, test func(*waiting)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		w := &waiting{t: t, near: counting{Conn: near}, far: far}
		w.Conn = &Conn{Conn: &w.near, turnstile: new(Turnstile), began: time.Now(), timeouts: &Timeouts{
			Request: 5 * time.Second, Idle: time.Minute, Answer: 8 * time.Second}}
		test(w)
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
	_, err := w.Read(make([]byte, 1))
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
		w.Idle()
		w.sends(41) // long after what the socket was told for the first request
		w.reads(41, true)
		w.Begins()
		w.reads(46, false)
	})
	inTime(t, func(w *waiting) {
		w.Idle()
		w.sends(50)
		w.reads(50, true)
		w.Begins()
		w.Idle()
		w.reads(110, false)
	})
	inTime(t, func(w *waiting) { // a part of the next request came with the one before
		w.sends(2)
		w.reads(2, true)
		w.Idle()
		w.Begins()
		w.reads(7, false)
	})
}

// TestDeadlinesAreRarelySet: not for each request, which is what this is about.
func TestDeadlinesAreRarelySet(t *testing.T) {
	inTime(t, func(w *waiting) {
		for second := range 300 {
			w.sends(second)
			w.reads(second, true)
			w.Begins()
			w.Idle()
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
		_, err := w.Write([]byte{'x'})
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
		w.Begins()
		writes(w, 48, false)
	})
	inTime(t, func(w *waiting) { // answers without the HTTP server, which says when a request begins
		takes(w, 7)
		writes(w, 7, true)
		w.Idle()
		time.Sleep(3 * time.Second)
		takes(w, 17)
		writes(w, 17, true)
	})
}
