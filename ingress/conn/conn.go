package conn

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
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

	waits   atomic.Int64 // when the wait for the next request began, in ns after 1970; 0; or evicted
	stalls  atomic.Int64 // when the request began whose client is waited for; 0; or evicted
	writing atomic.Bool  // an answer waits for its client to read

	trusted bool // Know was called
	spoke   bool // the client has sent something
	socket  bool // Socket was called

	once      sync.Once
	turnstile *Turnstile
	known     bool          // guarded by the Turnstile
	stranger  bool          // a socket that was not known when it became one
	gone      chan struct{} // guarded by the Turnstile: closed with the connection; nil: nobody waits
	from      [20]byte      // AddressKey of the peer if Direct
	network   [20]byte      // networkKey of the peer if Direct
}

// evicted is the idle time of a connection that gives way to a new one.
const evicted = -1

// busy takes the connection from those that may give way, unless it has given way already.
func (c *Conn) busy() {
	if since := c.waits.Load(); since > 0 {
		c.waits.CompareAndSwap(since, 0)
	}
}

// Evicted reports whether the connection has been closed for a new one. A request that it brought
// at that moment must not be served: its client will not get the answer.
func (c *Conn) Evicted() bool { return c.waits.Load() == evicted }

// errEvicted is the error of a read whose connection has given way.
var errEvicted = errors.New("the connection gave way to a new one")

// stall notes that the connection waits for its client in the middle of a request or of an answer.
// Nobody works on the request meanwhile, so the connection may give way.
func (c *Conn) stall() (since int64) {
	if c.waits.Load() != 0 {
		return 0
	}
	since = c.began.UnixNano() + int64(c.request-c.timeouts.Request)
	c.stalls.Store(since)
	return since
}

// resume ends a stall, and reports whether the connection is still there.
func (c *Conn) resume(since int64) bool { return since == 0 || c.stalls.CompareAndSwap(since, 0) }

// Known reports whether somebody has authenticated from the address of the connection.
func (c *Conn) Known() bool {
	c.turnstile.mutex.Lock()
	defer c.turnstile.mutex.Unlock()
	return c.known
}

// Pause has wait wait until gone is closed with the connection, or for less. Nobody works on the
// request meanwhile, so the connection may give way.
func (c *Conn) Pause(wait func(gone <-chan struct{})) {
	t := c.turnstile
	t.mutex.Lock()
	if _, open := t.conns[c]; !open {
		t.mutex.Unlock()
		return
	}
	c.gone = make(chan struct{})
	t.mutex.Unlock()
	since := c.stall()
	wait(c.gone)
	c.resume(since)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	c.gone = nil
}

// Know notes that somebody has authenticated over the connection.
func (c *Conn) Know() {
	if !c.trusted {
		c.trusted = true
		c.turnstile.Know(c)
	}
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
	c.once.Do(func() { c.turnstile.leave(c) })
	return err
}

// writeOnce is one call of the kernel: sockets of this process never block.
func (c *Conn) writeOnce(fd uintptr) bool {
	if n, err := syscall.Write(int(fd), c.rest); err == nil {
		c.wrote = n
	}
	return true
}
