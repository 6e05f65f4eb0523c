package ingress

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire/live"
	"clobd/engine"
	"clobd/ingress/conn"
	"clobd/ingress/head"
)

// seat is a connection's place in the pool. An order holds it while its goroutine works: from its
// bytes to the ring, and again from its Receipt until the answer is written. In between the order
// waits without a seat.
//
//	Read ─► take ─► decode, verify ─► leave ─► ring … Receipt ─► back ─► Write ─► leave
//
// All belong to the connection's goroutine, but whoever closes the connection may call leave.
type seat struct {
	held   atomic.Pointer[company] // nil: no seat. leave may come from whoever closes the connection
	pool   *pool
	waiter *waiter

	direct bool // the connection is one caller's own, not that of a proxy that stands for many
	proven bool // the last signature that came over the connection was good
	early  bool // the next order takes its seat before it is parsed
	// fresh: what was read last began with an order, and nothing of it has been handled yet.
	fresh   bool
	refused error          // why the order that has begun has no seat
	payer   engine.Address // whose share of the queue the last order took; zero unless direct
}

func newSeat(p *pool) seat { return seat{pool: p, waiter: newWaiter()} }

// take waits for a seat, unless the order has one since its first byte. The next order of the
// connection takes its seat for the same payer. A single order may share the seat. Errors:
// errPoolFull, errPoolExpired, errPoolClosed.
func (s *seat) take(payer engine.Address, single bool) error {
	if err := s.refusal(); err != nil {
		return err
	}
	if s.held.Load() == nil {
		s.waiter.shares = single && s.proven // a party would wait for the recovery of a key
		if err := s.pool.sit(s.waiter, payer, s.proven); err != nil {
			return err
		}
		s.held.Store(s.waiter.party)
	}
	if s.early = s.direct; s.early {
		s.payer = payer
	}
	return nil
}

// refusal returns why the order that has begun has no seat, once; nil if it may still have one.
func (s *seat) refusal() error {
	err := s.refused
	s.refused = nil
	return err
}

// leave returns the seat to the pool while its order waits, so that another order can use it. leave
// does nothing if s is nil.
func (s *seat) leave() {
	if s == nil || s.held.Load() == nil { // most reads hold none
		return
	}
	if g := s.held.Swap(nil); g != nil {
		if g != alone {
			g.Miss(s.waiter.turn)
		}
		s.pool.leave(g)
	}
}

// back waits for a seat, before all orders that are new.
func (s *seat) back() {
	if s != nil && s.held.Load() == nil {
		s.pool.back(s.waiter)
		s.held.Store(alone)
	}
}

// begins takes a seat for bytes that seem to be an order before they are parsed: an order that
// waits has then cost one read of its socket. The share of the queue is that of the order before.
// What the queue has no room for is refused now.
func (s *seat) begins(b []byte) {
	s.fresh = false
	if orders, _ := head.PlacesOrders(b); !orders {
		return
	}
	if s.crowded() {
		s.fresh, s.refused = true, s.pool.refuse()
	} else if s.early && bytes.HasPrefix(b, []byte(head.OrderStart)) {
		s.fresh, s.refused = true, nil
		s.refused = s.take(s.payer, true)
	}
}

// crowded reports whether the queue has no room for the next order of the connection.
func (s *seat) crowded() bool {
	return s.pool.crowded(s.waiter, s.payer, s.proven)
}

// next gives up the seat, or its refusal, unless the request that is handled now took it. The order
// before in a pipeline, or a body that looked like an order, may have taken it. Whoever held a seat
// and waited for a second could wait for ever. A request with orders that the queue has no room for
// is refused now: nobody reads its body or asks who sends it.
func (s *seat) next(orders bool) {
	if !s.fresh || !orders {
		s.leave()
		s.refused = nil
	}
	s.fresh = false
	if orders && s.refused == nil && s.held.Load() == nil && s.crowded() {
		s.refused = s.pool.refuse()
	}
}

func seatOf(ctx *fasthttp.RequestCtx) *seat {
	c, ok := ctx.Conn().(*orderConn)
	if !ok {
		panic("BUG: a connection that did not pass the turnstile")
	}
	return &c.seat
}

// orderListener hands out the connections that passed the turnstile, each with a seat.
type orderListener struct {
	*conn.Listener
	server *Server
}

// Accept waits for the next connection.
func (l orderListener) Accept() (net.Conn, error) {
	c, err := l.Next()
	for ; err == nil && !l.server.mayShake(c); c, err = l.Next() {
		_ = c.Close()
	}
	if err != nil {
		return nil, err
	}
	oc := &orderConn{Conn: c, seat: newSeat(l.server.pool), server: l.server,
		lines: conn.NewLineWatch()}
	oc.seat.direct, oc.answer.Budget = c.Direct, l.server.answers
	if socket, ok := c.Conn.(interface{ SetWriteBuffer(n int) error }); ok {
		_ = socket.SetWriteBuffer(socketBytes) // refused, the system keeps its own limit
	}
	if l.server.speaksTLS(c) {
		oc.secure = &secure{Conn: tls.Server(cipherSide{oc.Conn, oc}, l.server.options.TLS)}
	}
	return oc, nil
}

// orderConn lets orders over its connection work only while they have a seat.
type orderConn struct {
	*conn.Conn
	seat     seat
	lines    conn.LineWatch
	answer   conn.Held   // the large one that its client has not read yet
	secure   *secure     // nil: in the clear
	leaving  atomic.Bool // what is written now is a farewell
	server   *Server
	ended    bool       // the client sends no more
	detached bool       // the HTTP server reads it no more
	line     *live.Line // of a socket: its writes do not wait
	client   netip.Addr // the address that opened a socket for orders
	whole    time.Time  // when the last body was there that did not come with its head

	room *conn.Buffer // of that body, while its request is in work
}

// free lets others use the room of a body whose request was answered. After any other end of a
// connection the collector has it: somebody may be at work on it.
func (c *orderConn) free() {
	if c.room != nil {
		c.room.Release()
		c.room = nil
	}
}

// arrived is when all of a request was there, zero for bytes that are no request.
func arrived(ctx *fasthttp.RequestCtx) time.Time {
	head := ctx.Time()
	if c, ok := ctx.Conn().(*orderConn); ok && !head.IsZero() && c.whole.After(head) {
		return c.whole
	}
	return head
}

// Read waits without a seat; an order that it has read gets one at once. While the node drains it
// does not: the connection would count as idle meanwhile and be closed under the order.
func (c *orderConn) Read(b []byte) (int, error) {
	if c.detached {
		return 0, io.EOF
	}
	for {
		c.seat.leave()
		waits, begins := c.lines.Waits(), c.lines.Begins()
		n, err := c.receive(b)
		c.lines.Read(b[:n])
		c.ended = err == io.EOF
		if c.seat.early && c.server.draining.Load() {
			c.seat.early = false
		}
		if waits && err == nil {
			if away, err := c.turnAway(b, n); err != nil {
				return 0, err
			} else if away {
				continue
			}
		}
		if begins { // bytes in the middle of another request are no order
			c.seat.begins(b[:n])
		}
		return n, err
	}
}

// turnAway answers an order that the queue has no room for, without the HTTP server, for which the
// connection goes on waiting: beside a flood nothing is done as often, and that server would take
// most of the time. It reports false if the request in b, of which n bytes are there, is another
// one, or none whose end is plain. While the node drains, the HTTP server may close what waits.
func (c *orderConn) turnAway(b []byte, n int) (away bool, err error) {
	s := c.server
	orders, list := head.PlacesOrders(b[:n])
	if !orders || c.lines.Bare || s.draining.Load() || !s.ready.Load() || !c.seat.crowded() {
		return false, nil
	}
	length, plain := head.Plain(b[:n])
	if !plain || length < n {
		return false, nil
	}
	_ = s.refusePool(s.pool.refuse())
	for n < length {
		m, err := c.receive(b[:min(len(b), length-n)])
		c.lines.Read(b[:m])
		if n += m; err != nil && n < length {
			return false, err
		}
	}
	busy, route, began := s.busy, s.metrics.order, time.Now()
	if c.secure != nil {
		busy = s.secureBusy
	}
	if list {
		route = s.metrics.list
	}
	if _, err = c.Write(busy); err != nil {
		return false, err
	}
	route.note(refuseBusy.Status, time.Since(began))
	c.lines.Answered()
	c.Idle()
	return true, nil
}

// Write writes an answer.
func (c *orderConn) Write(b []byte) (int, error) {
	if c.secure != nil {
		return c.secure.Write(b)
	}
	return c.send(b)
}

// send gives the seat back once b is written, or the client must read before more can be written.
func (c *orderConn) send(b []byte) (int, error) {
	n := c.Conn.WriteNow(b)
	c.seat.leave()
	if n == len(b) {
		return n, nil
	}
	more, err := c.Conn.Write(b[n:])
	return n + more, err
}

// Close closes the connection and gives its seat back.
func (c *orderConn) Close() error {
	err := c.hangUp()
	c.answer.Release()
	c.seat.leave()
	return err
}
