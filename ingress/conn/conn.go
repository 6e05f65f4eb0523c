package conn

import (
	"net"
	"sync"
	"syscall"
)

// Conn is a connection that went through the Turnstile. It waits for its client as long as the
// Timeouts allow, and leaves the Turnstile when it is closed. All but Close belong to the
// connection's goroutine.
//
// The fields that every request needs stand first: those of a connection that has waited are in no
// cache.
type Conn struct {
	net.Conn
	deadlines deadlines
	eager     eager // ready once something was written
	// Direct reports that the other end is one caller, not a proxy that stands for many.
	Direct bool
	once   sync.Once
	leave  func()
}

// Begins notes that a request's first byte is there.
func (c *Conn) Begins() { c.deadlines.begins() }

// Idle notes that a request was answered and no byte of the next one is there.
func (c *Conn) Idle() { c.deadlines.idle = true }

// Read reads, and waits at most until the request or the pause between two must end.
func (c *Conn) Read(b []byte) (int, error) { return c.deadlines.read(c.Conn, b) }

// Write writes what may have to wait for the client to read, at most for Timeouts.Answer.
func (c *Conn) Write(b []byte) (int, error) { return c.deadlines.write(c.Conn, b) }

// WriteNow writes as much as the socket has room for, without a wait, and returns how much that
// was. The next Write meets the error, if there is one. Only sockets take anything.
func (c *Conn) WriteNow(b []byte) int {
	if c.eager.raw == nil {
		socket, ok := c.Conn.(syscall.Conn)
		if !ok {
			return 0
		}
		raw, err := socket.SyscallConn()
		if err != nil {
			return 0
		}
		c.eager.raw, c.eager.attempt = raw, c.eager.try
	}
	return c.eager.write(b)
}

// Close closes the connection and makes room for another one.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.leave)
	return err
}

// eager writes to a socket as much as it takes at once.
type eager struct {
	raw     syscall.RawConn
	attempt func(fd uintptr) bool // try, made once
	rest    []byte
	wrote   int
}

func (e *eager) write(b []byte) int {
	e.rest, e.wrote = b, 0
	_ = e.raw.Write(e.attempt) // the next Write meets the error
	e.rest = nil
	return e.wrote
}

// try is one call of the kernel: sockets of this process never block.
func (e *eager) try(fd uintptr) bool {
	if n, err := syscall.Write(int(fd), e.rest); err == nil {
		e.wrote = n
	}
	return true
}
