package ingress

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/ingress/conn"
	"clobd/ingress/limits"
)

var refuseLimited = wire.Refuse(429, "rate_limited", "Too Many Requests", "")

// admit counts a request in the windows of its address and its route. If one of them is full, the
// request counts in none of them: admit answers 429 and returns false.
func (s *door) admit(ctx *fasthttp.RequestCtx) bool {
	if s.windows == nil {
		return true
	}
	path := string(ctx.Path())
	// Only on /markets does a cursor decide: most queries are never taken apart.
	cursor := strings.HasPrefix(path, "/markets") && ctx.QueryArgs().Has("next_cursor")
	scope := limits.AddressScope(string(ctx.Method()), path, cursor)
	return noWait(ctx, s.windows.Address(s.ClientAddress(ctx), scope))
}

// admitAccount is admit for the windows of an account.
func (s *door) admitAccount(ctx *fasthttp.RequestCtx, caller *identity, d limits.Demand) bool {
	if s.windows == nil {
		return true
	}
	wait := s.windows.Account(caller.Address, d)
	if wait > 0 {
		h := &ctx.Response.Header
		reset := s.options.Now().Add(wait + time.Second).Unix()
		h.Set("Poly-RateLimit-Remaining", "0")
		h.Set("Poly-RateLimit-Reset", strconv.FormatInt(reset, 10))
		h.Set("Poly-RateLimit-Tier", "standard")
	}
	return noWait(ctx, wait)
}

// noWait reports whether a request need not wait. If it must, noWait answers 429.
func noWait(ctx *fasthttp.RequestCtx, wait time.Duration) bool {
	if wait == 0 {
		return true
	}
	seconds := strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)
	ctx.Response.Header.Set("Retry-After", seconds)
	refuseLimited.With(retryAfter(seconds)).Send(ctx)
	return false
}

// ClientAddress returns who sent a request: the peer, or whom a trusted proxy names.
func (s *door) ClientAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	peer, proxies := conn.PeerAddress(ctx.RemoteAddr()), s.options.TrustedProxies
	if !proxies.Trusts(peer) {
		return peer
	}
	return proxies.Client(peer, ctx.Request.Header.PeekAll("X-Forwarded-For"))
}
