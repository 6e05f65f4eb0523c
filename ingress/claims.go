package ingress

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/ingress/auth"
	"clobd/ingress/limits"
)

// turnAwayPause is how long a connection waits for such an answer at least: its next request is not
// read before. So a connection that fails all the time costs four requests a second at most.
const turnAwayPause = 250 * time.Millisecond

// Why a caller must wait who was let in by all windows.
const (
	failedKeys = "authentication failed too often: from this address, or with this key from this " +
		"address; look at what the answers with status 401 say, and wait"
	failedOrders = "too many orders of this account had a wrong signature: sign what the answers to " +
		"them name as orderHash, for the exchange in domain, and wait; cancels are taken"
)

// claim asks whether the key that a request names may be checked. If too many such checks have
// failed, nothing is computed any more: claim answers 429 and returns false.
func (s *door) claim(ctx *fasthttp.RequestCtx, key string) (limits.Claim, bool) {
	if s.windows == nil {
		return limits.Claim{}, true
	}
	c, wait := s.windows.Claim(s.ClientAddress(ctx), key, addressScope(ctx).Cancels)
	if wait > 0 && s.admitFalse(ctx) {
		s.turnAway(ctx, wait, failedKeys)
	}
	return c, wait == 0
}

// admitFalse counts a cancel that nobody may have sent with all other traffic of its address, or
// answers 429 and returns false. Other requests have been counted.
func (s *door) admitFalse(ctx *fasthttp.RequestCtx) bool {
	return s.windows == nil || !addressScope(ctx).Cancels ||
		s.admitAddress(ctx, limits.General)
}

// proved notes that the key of a claim is the caller's.
func (s *door) proved(c *limits.Claim) {
	if s.windows != nil {
		s.windows.Proved(c)
	}
}

// refuseClaim answers a failed authentication, which counts if its check took some computing.
func (s *door) refuseClaim(ctx *fasthttp.RequestCtx, c *limits.Claim, err error,
	refused *wire.Refusal) {
	if s.windows != nil && checked(err) {
		s.windows.Failed(c)
	}
	if s.admitFalse(ctx) {
		send(ctx, refused)
	}
}

// checked reports whether a failed authentication took some computing.
func checked(err error) bool {
	for _, early := range []error{auth.ErrMissing, auth.ErrTimestamp, auth.ErrWindow, auth.ErrNonce,
		auth.ErrL1Missing, auth.ErrL1Address, auth.ErrL1Chain, auth.ErrL1Form} {
		if errors.Is(err, early) {
			return false
		}
	}
	return true
}

// mayVerify asks whether the signature of an order may be checked. If too many of the caller's were
// wrong, mayVerify answers 429 and returns false.
func (s *door) mayVerify(ctx *fasthttp.RequestCtx, caller *identity) (limits.Claim, bool) {
	if s.windows == nil {
		return limits.Claim{}, true
	}
	c, wait := s.windows.Order(s.ClientAddress(ctx), caller.Address)
	if wait > 0 {
		s.turnAway(ctx, wait, failedOrders)
	}
	return c, wait == 0
}

// turnAway answers 429 to a caller that has failed too often, after a pause: whoever asks again at
// once, over each of his connections, would cost as much as those who are checked.
func (s *door) turnAway(ctx *fasthttp.RequestCtx, wait time.Duration, why string) {
	s.rest(ctx)
	later(ctx, wait, why)
}

// rest is the pause before such an answer. Meanwhile the request holds no seat, and its connection
// may give way to a new one.
func (s *door) rest(ctx *fasthttp.RequestCtx) {
	c := ctx.Conn().(*orderConn)
	if c.detached {
		ctx.SetUserValue(rested, true)
		return
	}
	c.seat.leave()
	from := s.ClientAddress(ctx)
	c.Pause(func(gone <-chan struct{}) { s.rests.Rest(from, gone) })
}

// verified counts how the signature of an order turned out.
func (s *door) verified(c *limits.Claim, p *placement) {
	if p.refused == nil || p.forged {
		p.seat.proven = !p.forged
	}
	switch {
	case s.windows == nil:
	case p.forged:
		s.windows.FailedOrder(c)
	case p.refused == nil:
		s.windows.Proved(c)
	}
}
