package conn

import (
	"errors"
	"net"
	"time"
)

// The usual Timeouts.
const (
	RequestTimeout = 5 * time.Second
	AnswerTimeout  = 8 * time.Second // below the time that a stop waits
	IdleTimeout    = 60 * time.Second
	// RefusalTimeout is short: the listener waits while a connection is turned away.
	RefusalTimeout = 100 * time.Millisecond
)

// Timeouts bound the wait for a client.
type Timeouts struct {
	Request time.Duration // from a request's first byte, or the connection's begin, to its last byte
	Idle    time.Duration // for the first byte of the next request
	Answer  time.Duration // from the first byte that there is no room for to the answer's last
	Refusal time.Duration // for the answer to a connection that is turned away
}

// deadlines hold a connection's client to the Timeouts. The HTTP server could do that, but it reads
// the clock and moves a timer of the runtime three times for each request, and hardly any of them
// waits. Here the socket is told
//
//	when a request must be complete       only if its first bytes were not all of it
//	when the next one must have begun     only when an earlier deadline has passed
//	when an answer must have gone out     only if the client must read before there is room
//
// and clients have the same time. All belongs to the connection's goroutine.
type deadlines struct {
	timeouts *Timeouts
	began    time.Time

	// Durations after began.
	armed   time.Duration // when the socket gives up reading, 0: never; no later than it should
	request time.Duration // when the present request must be complete, 0: it has all its time
	answer  time.Duration // when the answer must have gone out, 0: it has all its time

	idle bool // no byte of the next request is there
}

// begins notes that a request's first byte is there, or that the connection has begun.
func (d *deadlines) begins() { d.request, d.answer, d.idle = 0, 0, false }

// due returns when a read must end.
func (d *deadlines) due() time.Duration {
	if d.idle {
		return time.Since(d.began) + d.timeouts.Idle
	}
	if d.request == 0 {
		d.request = time.Since(d.began) + d.timeouts.Request
	}
	return d.request
}

// read reads from c. A deadline of an earlier read may still be set: when that has passed, the read
// goes on until its own.
func (d *deadlines) read(c net.Conn, b []byte) (int, error) {
	due := d.due()
	for {
		if d.armed == 0 || d.armed > due {
			d.armed = due
			if err := c.SetReadDeadline(d.began.Add(due)); err != nil {
				return 0, err
			}
		}
		n, err := c.Read(b)
		if err == nil || d.armed == due || !TimedOut(err) {
			return n, err
		}
		d.armed = 0 // the deadline of an earlier read has passed
	}
}

// write writes to c and waits for the client to read.
func (d *deadlines) write(c net.Conn, b []byte) (int, error) {
	if d.answer == 0 {
		d.answer = time.Since(d.began) + d.timeouts.Answer
	}
	if err := c.SetWriteDeadline(d.began.Add(d.answer)); err != nil {
		return 0, err
	}
	n, err := c.Write(b)
	if err == nil { // a passed deadline would refuse a write that need not wait, too
		err = c.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// TimedOut reports whether err says that a deadline has passed.
func TimedOut(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}
