package ingress

import (
	"errors"
	"net"
	"time"
)

// timeouts are how long a client is waited for.
type timeouts struct {
	request time.Duration // from a request's first byte, or the connection's begin, to its last byte
	idle    time.Duration // for the first byte of the next request
	answer  time.Duration // from the first byte of an answer that there is no room for to its last
	refusal time.Duration // for the answer to a connection that is not let in
}

// deadlines hold a connection's client to the timeouts. The HTTP server could do it, but it reads
// the clock and moves a timer of the runtime three times for each request, and hardly any of them
// waits. Here the socket is told
//
//	when a request must be complete       only if its first bytes were not all of it
//	when the next one must have begun     only when an earlier deadline has passed
//	when an answer must have gone out     only if the client must read before there is room
//
// and clients have the same time. All belongs to the connection's goroutine.
type deadlines struct {
	timeouts *timeouts
	began    time.Time

	// What follows is after began.
	armed   time.Duration // when the socket gives up reading, 0: never; no later than it should
	request time.Duration // when the request that comes in must be complete, 0: it has all its time
	answer  time.Duration // when the answer must have gone out, 0: it has all its time

	idle bool // no byte of the next request is there
}

// begins notes that a request's first byte is there, or that the connection has begun.
func (d *deadlines) begins() { d.request, d.answer, d.idle = 0, 0, false }

// due is when a read has to end.
func (d *deadlines) due() time.Duration {
	if d.idle {
		return time.Since(d.began) + d.timeouts.idle
	}
	if d.request == 0 {
		d.request = time.Since(d.began) + d.timeouts.request
	}
	return d.request
}

// read reads from c.
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
		if err == nil || d.armed == due || !timedOut(err) {
			return n, err
		}
		d.armed = 0 // that was the time of an earlier read
	}
}

// write writes to c what may have to wait.
func (d *deadlines) write(c net.Conn, b []byte) (int, error) {
	if d.answer == 0 {
		d.answer = time.Since(d.began) + d.timeouts.answer
	}
	if err := c.SetWriteDeadline(d.began.Add(d.answer)); err != nil {
		return 0, err
	}
	n, err := c.Write(b)
	if err == nil { // one that has passed would refuse what need not wait, too
		err = c.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// timedOut says whether err is that a deadline has passed.
func timedOut(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}
