package ingress

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// Origins are the web pages whose browsers may hand them the answers of this node: those of any
// origin in its zero value. A page signs with its user's key, and the node knows no cookie, so the
// origin of a page gives it no right that another client lacks.
type Origins struct {
	only []string // if not empty, no others
	none bool
}

// ParseOrigins reads a list of origins with commas between them: "*" is any, "" is none.
func ParseOrigins(text string) (o Origins, err error) {
	if text == "*" {
		return o, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		u, err := url.Parse(item)
		if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != strings.ToLower(item) {
			return o, fmt.Errorf("%q is no origin", item)
		}
		o.only = append(o.only, strings.ToLower(item))
	}
	o.none = len(o.only) == 0
	return o, nil
}

// preflightAge is how many seconds a browser may remember a preflight: the most that any takes.
const preflightAge = "7200"

// exposed are the headers that a page may read. An asterisk alone is not enough for older browsers.
const exposed = "*, ETag, RateLimit, RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, " +
	"RateLimit-Reset, Poly-RateLimit-Limit, Poly-RateLimit-Remaining, Poly-RateLimit-Reset, " +
	"Poly-RateLimit-Tier, Retry-After, X-Canceled, X-Fee, X-Idempotent-Replay, X-Node-Version, " +
	"X-Sequence, X-Unknown-Query"

// exposedUnread are those of an answer that is given before a request is read.
const exposedUnread = "*, Retry-After, X-Node-Version"

// sendable are the headers that a page may send: those of each family, written in both ways, and
// those that any request may have.
var sendable = func() []byte {
	list := []byte("*, Content-Type, Cache-Control, Idempotency-Key, If-Modified-Since, " +
		"If-None-Match, X-Chain-Id, X-Request-Id")
	for _, family := range families {
		for _, name := range headers {
			list = fmt.Appendf(list, ", %s%s, %s", family, name,
				strings.ReplaceAll(string(family)+name, "_", "-"))
		}
	}
	return list
}()

// The names and values of what browsers ask for, as bytes: they stand on every answer to a page.
var (
	allowOrigin   = []byte(fasthttp.HeaderAccessControlAllowOrigin)
	exposeHeaders = []byte(fasthttp.HeaderAccessControlExposeHeaders)
	anyPage       = []byte("*")
	exposedBytes  = []byte(exposed)
)

// stamp tells the browser of a page whether the page may read the answer. Only browsers send
// Origin: all others are spared the headers, but for what the answer carries already.
func (o *Origins) stamp(ctx *fasthttp.RequestCtx) {
	origin := ctx.Request.Header.Peek(fasthttp.HeaderOrigin)
	h := &ctx.Response.Header
	allowed := anyPage
	if o.none || len(o.only) > 0 {
		allowed = o.named(origin)
		o.withdraw(h)
		if allowed == nil {
			return
		}
	} else if len(origin) == 0 {
		return
	}
	h.SetCanonical(allowOrigin, allowed)
	h.SetCanonical(exposeHeaders, exposedBytes)
	if ctx.IsOptions() && ctx.Response.StatusCode() == fasthttp.StatusNoContent {
		if methods := h.Peek(fasthttp.HeaderAllow); len(methods) > 0 { // the router knows them
			h.SetBytesV(fasthttp.HeaderAccessControlAllowMethods, methods)
		} else {
			h.Set(fasthttp.HeaderAccessControlAllowMethods, "GET, HEAD, POST")
		}
		h.SetBytesV(fasthttp.HeaderAccessControlAllowHeaders, sendable)
		h.Set(fasthttp.HeaderAccessControlMaxAge, preflightAge)
	}
}

// named returns origin if it is one of the list, else nil.
func (o *Origins) named(origin []byte) []byte {
	if len(origin) > 0 && slices.Contains(o.only, string(origin)) {
		return origin
	}
	return nil
}

// withdraw takes away what handlers wrote for the pages of any origin. A cache must keep the
// answers to different origins apart.
func (o *Origins) withdraw(h *fasthttp.ResponseHeader) {
	for _, name := range [...]string{fasthttp.HeaderAccessControlAllowOrigin,
		fasthttp.HeaderAccessControlExposeHeaders, fasthttp.HeaderAccessControlAllowMethods,
		fasthttp.HeaderAccessControlAllowHeaders} {
		h.Del(name)
	}
	if !o.none {
		h.Add(fasthttp.HeaderVary, fasthttp.HeaderOrigin)
	}
}

// unread stamps an answer to bytes that were no request: nobody knows whether a page sent them.
func (o *Origins) unread(ctx *fasthttp.RequestCtx) {
	if !o.none && len(o.only) == 0 {
		ctx.Response.Header.SetCanonical(allowOrigin, anyPage)
		ctx.Response.Header.Set(fasthttp.HeaderAccessControlExposeHeaders, exposedUnread)
	}
}

// lines are the headers of a refusal that is written before a request is read.
func (o *Origins) lines() string {
	switch {
	case o.none:
		return ""
	case len(o.only) > 0:
		return fasthttp.HeaderVary + ": " + fasthttp.HeaderOrigin + "\r\n"
	}
	return fasthttp.HeaderAccessControlAllowOrigin + ": *\r\n" +
		fasthttp.HeaderAccessControlExposeHeaders + ": " + exposedUnread + "\r\n"
}
