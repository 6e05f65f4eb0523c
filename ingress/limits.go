package ingress

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine/sequencer"
	"clobd/ingress/answer"
	"clobd/ingress/conn"
	"clobd/ingress/limits"
)

var refuseLimited = wire.Refuse(429, "rate_limited", "Too Many Requests", "")

// addressScope returns the windows that a request counts in as one of its address.
func addressScope(ctx *fasthttp.RequestCtx) *limits.Scope {
	path := string(ctx.Path())
	// Only on /markets does a cursor decide: most queries are never taken apart.
	cursor := strings.HasPrefix(path, "/markets") && ctx.QueryArgs().Has("next_cursor")
	return limits.AddressScope(string(ctx.Method()), path, cursor)
}

// admit counts a request in the windows of its address and its route. If one of them is full, the
// request counts in none of them: admit answers 429 and returns false. A cancel counts once its
// caller is known; see claim.
func (s *door) admit(ctx *fasthttp.RequestCtx) bool {
	if s.windows == nil {
		return true
	}
	scope := addressScope(ctx)
	return scope.Cancels || s.admitAddress(ctx, scope)
}

func (s *door) admitAddress(ctx *fasthttp.RequestCtx, scope *limits.Scope) bool {
	from := s.ClientAddress(ctx)
	v := s.windows.Address(from, scope)
	s.announce(ctx, &v)
	if v.Wait > 0 && s.windows.TurnedAway(from) {
		s.rest(ctx)
	}
	return noWait(ctx, v.Wait)
}

// admitAccount is admit for the windows of an account.
func (s *door) admitAccount(ctx *fasthttp.RequestCtx, caller *identity, d limits.Demand) bool {
	if s.windows == nil {
		return true
	}
	var v limits.Verdict
	if d.Scope.Cancels {
		sweep := d.Scope == limits.SweepScope
		v = s.windows.Cancel(s.ClientAddress(ctx), caller.Address, d.N, sweep)
	} else {
		v = s.windows.Account(caller.Address, d)
	}
	s.announceAccount(ctx, &v)
	return noWait(ctx, v.Wait)
}

// announceAccount is announce for the windows of an account.
func (s *door) announceAccount(ctx *fasthttp.RequestCtx, v *limits.Verdict) {
	s.announce(ctx, v)
	left := v.Left
	if v.Wait > 0 {
		left = 0
	}
	var text [20]byte
	h := &ctx.Response.Header
	reset := s.options.Now().Add(v.More + time.Second).Unix()
	h.SetCanonical(polyRemaining, strconv.AppendUint(text[:0], uint64(left), 10))
	h.SetCanonical(polyReset, strconv.AppendInt(text[:0], reset, 10))
	if v.Tier != "" {
		h.SetCanonical(polyTier, append(text[:0], v.Tier...))
	}
}

// refuseFull refuses a request of an account that has used up a window of the member that leads, as
// admitAccount does where a window of this node is full.
func (s *door) refuseFull(full *sequencer.LimitedError) *wire.Refusal {
	v := limits.Full(full.Window, full.Wait)
	seconds := strconv.FormatInt(limits.Seconds(v.Wait), 10)
	refused := refuseLimited.With(answer.RetryAfter(seconds))
	refused.Mark = func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, seconds)
		s.announceAccount(ctx, &v)
	}
	return refused
}

// The names of the headers that say what is left of a caller's windows.
var (
	rateLimit       = []byte("RateLimit")
	rateLimitPolicy = []byte("RateLimit-Policy")
	polyRemaining   = []byte("Poly-Ratelimit-Remaining")
	polyReset       = []byte("Poly-Ratelimit-Reset")
	polyTier        = []byte("Poly-Ratelimit-Tier")
)

// announce says which windows a request counts in, and what is left in the fullest, as
// draft-ietf-httpapi-ratelimit-headers has it. A verdict of another node names one of them only.
func (s *door) announce(ctx *fasthttp.RequestCtx, v *limits.Verdict) {
	if v.Wait > 0 {
		s.metrics.limited.WithLabelValues(v.Name).Inc()
	}
	var text [128]byte
	h := &ctx.Response.Header
	if v.Policy != "" {
		h.SetCanonical(rateLimitPolicy, append(text[:0], v.Policy...))
	}
	h.SetCanonical(rateLimit, v.AppendRateLimit(text[:0]))
}

// noWait reports whether a request need not wait. If it must, noWait answers 429.
func noWait(ctx *fasthttp.RequestCtx, wait time.Duration) bool {
	if wait > 0 {
		later(ctx, wait, "")
	}
	return wait == 0
}

// later answers 429 to a request that must wait, and says why if its windows do not.
func later(ctx *fasthttp.RequestCtx, wait time.Duration, why string) {
	seconds := strconv.FormatInt(limits.Seconds(wait), 10)
	ctx.Response.Header.Set("Retry-After", seconds)
	refused := refuseLimited.With(answer.RetryAfter(seconds))
	if why != "" {
		refused = refused.Because(why)
	}
	send(ctx, refused)
}

// ClientAddress returns who sent a request: the peer, or whom a trusted proxy names.
func (s *door) ClientAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	if c, ok := ctx.Conn().(*orderConn); ok && c.detached { // requests on a socket have no headers
		return c.client
	}
	peer, proxies := conn.PeerAddress(ctx.RemoteAddr()), s.options.TrustedProxies
	if !proxies.Trusts(peer) {
		return peer
	}
	return proxies.Client(peer, ctx.Request.Header.PeekAll("X-Forwarded-For"))
}
