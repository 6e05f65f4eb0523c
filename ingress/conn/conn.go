package conn

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// Conn is a connection that went through the Turnstile. It holds its client to the Timeouts, and
// leaves the Turnstile when it is closed. All but Close belong to the connection's goroutine.
//
// The HTTP server would move a timer of the runtime three times for each request, and hardly any
// request waits. A Conn tells its socket
//
//	when a request must be complete       only if its first bytes were not all of it
//	when the next one must have begun     only when an earlier deadline has passed
//	when an answer must have gone out     only if the client must read before there is room
//
// The fields that every request needs stand first: after a wait, none of them is in a cache.
type Conn struct {
	net.Conn
	timeouts *Timeouts
	began    time.Time

	// Durations after began.
	armed   time.Duration // when the socket gives up reading, 0: never; no later than it should
	request time.Duration // when the present request must be complete, 0: it has all its time
	answer  time.Duration // when the answer must have gone out, 0: it has all its time

	idle bool // no byte of the next request is there

	// Of WriteNow: raw and attempt are made at the first write.
	raw     syscall.RawConn
	attempt func(fd uintptr) bool // writeOnce
	rest    []byte
	wrote   int

	// Direct reports that the other end is one caller, not a proxy that stands for many.
	Direct bool
	once   sync.Once
	leave  func()
}

// WriteNow writes as much as the socket has room for, without a wait, and returns how much that
// was. The next Write meets the error, if there is one. Only sockets take anything.
func (c *Conn) WriteNow(b []byte) int {
	if c.raw == nil {
		socket, ok := c.Conn.(syscall.Conn)
		if !ok {
			return 0
		}
		raw, err := socket.SyscallConn()
		if err != nil {
			return 0
		}
		c.raw, c.attempt = raw, c.writeOnce
	}
	c.rest, c.wrote = b, 0
	_ = c.raw.Write(c.attempt)
	c.rest = nil
	return c.wrote
}

// Close closes the connection and makes room for another one.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.leave)
	return err
}

// writeOnce is one call of the kernel: sockets of this process never block.
func (c *Conn) writeOnce(fd uintptr) bool {
	if n, err := syscall.Write(int(fd), c.rest); err == nil {
		c.wrote = n
	}
	return true
}
