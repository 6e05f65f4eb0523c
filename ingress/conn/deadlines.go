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

// Begins notes that a request's first byte is there.
func (c *Conn) Begins() {
	c.request, c.answer, c.idle = 0, 0, false
	if c.spoke { // the HTTP server says that the first request begins before any byte has come
		c.busy()
	}
}

// Idle notes that a request was answered and no byte of the next one is there.
func (c *Conn) Idle() {
	c.idle, c.answer = true, 0
	c.waits.Store(time.Now().UnixNano())
}

// Greeted notes that what the client has sent so far was no request yet: it may give way.
func (c *Conn) Greeted() {
	c.spoke = false
	c.waits.CompareAndSwap(0, time.Now().UnixNano())
}

// Heard notes that the client has sent something: it does not give way.
func (c *Conn) Heard() {
	c.spoke = true
	c.busy()
}

func (c *Conn) due() time.Duration {
	if c.idle {
		return time.Since(c.began) + c.timeouts.Idle
	}
	if c.request == 0 {
		c.request = time.Since(c.began) + c.timeouts.Request
	}
	return c.request
}

// Read reads, and waits at most until the request or the pause between two must end. That of a
// socket waits for ever.
func (c *Conn) Read(b []byte) (int, error) {
	if c.socket {
		return c.Conn.Read(b)
	}
	due := c.due()
	for {
		if c.armed == 0 || c.armed > due {
			c.armed = due
			if err := c.SetReadDeadline(c.began.Add(due)); err != nil {
				return 0, err
			}
		}
		since := c.stall()
		n, err := c.Conn.Read(b)
		if !c.resume(since) {
			return 0, errEvicted
		}
		if n > 0 {
			c.Heard()
			if c.idle { // of a secured connection, these bytes may be no request for long
				c.idle, c.request = false, 0
			}
		}
		if err == nil || c.armed == due || !TimedOut(err) {
			return n, err
		}
		c.armed = 0 // the deadline of an earlier read has passed: go on until this read's own
	}
}

// Write writes what may have to wait for the client to read, at most for Timeouts.Answer, or until
// the end of Turnstile.Hurry.
func (c *Conn) Write(b []byte) (int, error) {
	c.writing.Store(true)
	defer c.writing.Store(false)
	defer c.resume(c.stall())
	if c.answer == 0 {
		c.answer = time.Since(c.began) + c.timeouts.Answer
	}
	if err := c.SetWriteDeadline(c.began.Add(c.answer)); err != nil {
		return 0, err
	}
	if end := c.turnstile.hurry.Load(); end != nil { // who sets it later sets the deadline as well
		if err := c.SetWriteDeadline(*end); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Write(b)
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
