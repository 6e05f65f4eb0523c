package ingress

import (
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/engine"
)

// seat is the place in the pool that the order of a connection's request holds while its goroutine
// works: from its bytes to the ring, and again from its Receipt until the answer is written. In
// between it waits without one, so that those who work are never more than there are places.
//
//	Read ─► take ─► decode, verify ─► leave ─► ring … Receipt ─► back ─► Write ─► done
//
// A nil seat holds nothing. All but release belong to the connection's goroutine.
type seat struct {
	held   atomic.Bool // release may come from whoever closes the connection
	worked time.Duration
	pool   *pool
	since  time.Time
	answer waiter
}

func newSeat(p *pool) seat {
	return seat{pool: p, answer: waiter{turn: make(chan error, 1)}}
}

// take waits for a place, unless there is one already. Errors as of pool.do.
func (s *seat) take(wallet engine.Address) error {
	if s == nil || s.held.Load() {
		return nil
	}
	w, err := s.pool.enter(wallet)
	if err == nil && w != nil {
		err = <-w.turn
	}
	if err == nil {
		s.sit()
	}
	return err
}

func (s *seat) sit() {
	s.since = time.Now()
	s.held.Store(true)
}

// leave gives the place to somebody else while this request waits.
func (s *seat) leave() {
	if s != nil && s.held.Load() && s.held.Swap(false) { // most reads hold none
		s.worked += time.Since(s.since)
		s.pool.leave()
	}
}

// back waits for a place before all that is new.
func (s *seat) back() {
	if s != nil && !s.held.Load() {
		s.pool.back(&s.answer)
		s.sit()
	}
}

// done is leave after the answer, or when there will be none.
func (s *seat) done() {
	s.leave()
	if s.worked != 0 {
		s.pool.ranFor(s.worked)
		s.worked = 0
	}
}

// release gives the place back if there is one: the connection is closed.
func (s *seat) release() {
	if s.held.Swap(false) {
		s.pool.leave()
	}
}

// orderConn is what a connection knows of the orders that come over it.
type orderConn struct {
	early bool // the next one takes its place before it is parsed
	// fresh: what was read last began with an order, and nothing of it has been handled yet.
	fresh bool
	full  error // why it has no place
	seat  seat
	payer engine.Address // who sent one over it last
}

// orderStart is how a request that places an order begins, as public clients write it.
const (
	orderPath  = "/order"
	orderStart = "POST " + orderPath + " "
)

// begins takes a place for what seems to be an order before anything else is done with it: what
// waits for a place has then cost no more than one read of its socket. The first order of a
// connection has been authenticated before, so that it is known whose share of the queue it takes.
func (c *orderConn) begins(b []byte) {
	c.fresh = false
	if c.early && len(b) >= len(orderStart) && string(b[:len(orderStart)]) == orderStart {
		c.fresh, c.full = true, c.seat.take(c.payer)
	}
}

// next drops the place, or the refusal of one, that is not of the request that is handled now. The
// bytes that it was taken for may be another request's: of the one before it in a pipeline, which
// was not written yet, or of a body. Whoever held a place while he waits for a second one could
// wait for ever.
func (c *orderConn) next(order bool) {
	if !c.fresh || !order {
		c.seat.done()
		c.full = nil
	}
	c.fresh = false
}

// sit takes a place for the order of a request, unless it has one since its first byte. Keys are
// free: those without an account have one share of the queue together.
func (s *Server) sit(ctx *fasthttp.RequestCtx, caller *identity) (*seat, *refusal) {
	c, ok := ctx.Conn().(*countedConn)
	if !ok {
		panic("BUG: a connection that did not pass the turnstile")
	}
	o, payer := &c.orders, engine.Address{}
	if _, known := s.options.Board.Directory.Wallet(caller.Address); known {
		payer = caller.Address
	}
	err := o.full
	if o.full = nil; err == nil {
		err = o.seat.take(payer)
	}
	if err != nil {
		return nil, s.refusePool(err)
	}
	o.payer, o.early = payer, c.direct
	return &o.seat, nil
}
