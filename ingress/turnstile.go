package ingress

import (
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// turnstile counts the connections of all listeners, and those of each address.
type turnstile struct {
	all, each int // the most of each

	mutex   sync.Mutex
	open    int
	callers map[[20]byte]int
}

func newTurnstile(all, each int) *turnstile {
	return &turnstile{all: all, each: each, callers: make(map[[20]byte]int)}
}

// The answers to a connection that is not let in.
var (
	refuseCrowd = refusal{429, "rate_limited", "too many connections from this address", nil}
	refuseFull  = refusal{503, "busy", "too many connections, nothing was entered, send again", nil}
)

// enter counts a connection, nil as the key only among all, and says why if there is no room for
// it.
func (t *turnstile) enter(key *[20]byte) *refusal {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	switch {
	case key != nil && t.callers[*key] >= t.each:
		return &refuseCrowd
	case t.open >= t.all:
		return &refuseFull
	}
	t.open++
	if key != nil {
		t.callers[*key]++
	}
	return nil
}

// leave takes a connection out again.
func (t *turnstile) leave(key *[20]byte) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.open--
	if key == nil {
		return
	}
	if t.callers[*key]--; t.callers[*key] == 0 {
		delete(t.callers, *key)
	}
}

// counted is a listener whose connections pass the turnstile. Those that may not are told so in the
// form of every other answer; the HTTP server's own words are no JSON.
type counted struct {
	net.Listener
	server *Server
}

// Accept is the next connection that there is room for.
func (l counted) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		key := l.server.connectionKey(c)
		r := l.server.turnstile.enter(key)
		if r == nil {
			leave := func() { l.server.turnstile.leave(key) }
			return &countedConn{Conn: c, leave: leave, direct: key != nil,
				draining:  &l.server.draining,
				deadlines: deadlines{timeouts: &l.server.timeouts, began: time.Now()},
				orders:    orderConn{seat: newSeat(l.server.pool)}}, nil
		}
		l.server.turnAway(c, r)
	}
}

// connectionKey is what a connection counts as, nil if by no address: a trusted proxy stands for
// many callers, and a connection inside the process for none.
func (s *Server) connectionKey(c net.Conn) *[20]byte {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return nil
	}
	from := peerAddress(tcp)
	if s.trusted(from) {
		return nil
	}
	key := addressKey(from)
	return &key
}

// turnAway answers a connection whose request nobody reads. A new socket has room for these bytes;
// the deadline is for whatever else a listener may hand out.
func (s *Server) turnAway(c net.Conn, r *refusal) {
	status := strconv.Itoa(r.status)
	s.metrics.requests.WithLabelValues("connect", status).Inc()
	body := appendFailure(make([]byte, 0, 128), r)
	head := "HTTP/1.1 " + status + " " + http.StatusText(r.status) +
		"\r\nConnection: close\r\nRetry-After: " + busySeconds +
		"\r\nX-Node-Version: " + string(s.version) + "\r\nContent-Type: application/json" +
		"\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	_ = c.SetWriteDeadline(time.Now().Add(s.timeouts.refusal))
	_, _ = c.Write(append([]byte(head), body...)) // who hung up need not be told
	_ = c.Close()
}

// countedConn leaves the turnstile when it is closed, once, waits for its client only as long as
// the timeouts allow, and lets orders over it work only while they have a place in the pool.
//
// What every request needs stands first: of a connection that has waited it is in no cache.
type countedConn struct {
	net.Conn
	deadlines deadlines
	eager     eager // ready once something was written
	orders    orderConn
	draining  *atomic.Bool
	direct    bool // one caller's own: no proxy stands for many
	once      sync.Once
	leave     func()
}

// Read reads. It waits without a place; an order gets one at once. At the end of all it does not:
// the connection would count as idle while it waits here, and be closed under the order.
func (c *countedConn) Read(b []byte) (int, error) {
	c.orders.seat.done()
	n, err := c.deadlines.read(c.Conn, b)
	if c.orders.early && c.draining.Load() {
		c.orders.early = false
	}
	c.orders.begins(b[:n])
	return n, err
}

// Write writes. What an order still needed a place for is then done. It is done, too, if the
// client must read before more can be written: he may never do that.
func (c *countedConn) Write(b []byte) (int, error) {
	n := c.writeNow(b)
	if c.orders.seat.held.Load() {
		c.orders.seat.done()
	}
	if n == len(b) {
		return n, nil
	}
	more, err := c.deadlines.write(c.Conn, b[n:])
	return n + more, err
}

// writeNow writes as much as there is room for, without a wait; what fails is found by the next
// Write. Only sockets can do that.
func (c *countedConn) writeNow(b []byte) int {
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

// eager writes to a socket as much as it takes at once.
type eager struct {
	raw     syscall.RawConn
	attempt func(fd uintptr) bool // try, made once
	rest    []byte
	wrote   int
}

func (e *eager) write(b []byte) int {
	e.rest, e.wrote = b, 0
	_ = e.raw.Write(e.attempt) // an error is found by the next Write
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

// Close closes the connection and makes room for another one.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.orders.seat.release()
	c.once.Do(c.leave)
	return err
}
