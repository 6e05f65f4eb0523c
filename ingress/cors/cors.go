package cors

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// Origins are the web pages whose browsers may hand them the answers of this node: those of any
// origin in its zero value.
type Origins struct {
	only []string // if not empty, no others
	none bool
}

// Sendable are the headers that a page may send: those that any request may have, and names, each
// written with '_' and with '-'.
func Sendable(names []string) []byte {
	list := []byte("*, Content-Type, Cache-Control, Idempotency-Key, If-Modified-Since, " +
		"If-None-Match, X-Chain-Id, X-Request-Id")
	for _, name := range names {
		list = fmt.Appendf(list, ", %s, %s", name, strings.ReplaceAll(name, "_", "-"))
	}
	return list
}

// Parse reads a list of origins with commas between them: "*" is any, "" is none.
func Parse(text string) (o Origins, err error) {
	if text == "*" {
		return o, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		u, err := url.Parse(item)
		if err != nil || !isOrigin(u, item) {
			return o, fmt.Errorf("%q is no origin as browsers write it: scheme, host, and a port that "+
				"is not the scheme's own", item)
		}
		o.only = append(o.only, strings.ToLower(item))
	}
	o.none = len(o.only) == 0
	return o, nil
}

// isOrigin reports whether item, which was read as u, is what a browser would say.
func isOrigin(u *url.URL, item string) bool {
	own := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return u.Host != "" && strings.EqualFold(u.Scheme+"://"+u.Host, item) &&
		!strings.Contains(u.Host, "*") && (own == "" || u.Port() != own) &&
		!strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' })
}

// preflightAge is how many seconds a browser may remember a preflight: the most that any takes.
const preflightAge = "7200"

// exposed are the headers that a page may read. An asterisk alone is not enough for older browsers.
const exposed = "*, ETag, RateLimit, RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, " +
	"RateLimit-Reset, Poly-RateLimit-Limit, Poly-RateLimit-Remaining, Poly-RateLimit-Reset, " +
	"Poly-RateLimit-Tier, Retry-After, X-Canceled, X-Debug-Stages, X-Fee, X-Idempotent-Replay, X-Node-Version, " +
	"X-Sequence, X-Unknown-Query"

// exposedUnread are those of an answer that is given before a request is read.
const exposedUnread = "*, Retry-After, X-Node-Version"

// The names and values of what browsers ask for, as bytes: they stand on every answer to a page.
var (
	allowOrigin   = []byte(fasthttp.HeaderAccessControlAllowOrigin)
	exposeHeaders = []byte(fasthttp.HeaderAccessControlExposeHeaders)
	anyPage       = []byte("*")
	exposedBytes  = []byte(exposed)
)

// Stamp tells the browser of a page whether the page may read the answer, and in the answer to a
// preflight which headers it may send. Only browsers send Origin: all others are spared the
// headers, but for what the answer carries already.
func (o *Origins) Stamp(ctx *fasthttp.RequestCtx, sendable []byte) {
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

// Allows reports whether a request may be served where the answer cannot be kept from the page: one
// without the header Origin comes from no page, and a page of the host itself, as the console is,
// may read its answers in any case.
func (o *Origins) Allows(h *fasthttp.RequestHeader) bool {
	origin := h.Peek(fasthttp.HeaderOrigin)
	if len(origin) == 0 || !o.none && len(o.only) == 0 || o.named(origin) != nil {
		return true
	}
	scheme, from, is := bytes.Cut(origin, []byte("://"))
	return is && bytes.EqualFold(from, h.Host()) && (string(scheme) == "http" || string(scheme) == "https")
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

// Unread stamps an answer to bytes that were no request: nobody knows whether a page sent them.
func (o *Origins) Unread(ctx *fasthttp.RequestCtx) {
	if !o.none && len(o.only) == 0 {
		ctx.Response.Header.SetCanonical(allowOrigin, anyPage)
		ctx.Response.Header.Set(fasthttp.HeaderAccessControlExposeHeaders, exposedUnread)
	}
}

// Lines are the headers of a refusal that is written before a request is read.
func (o *Origins) Lines() string {
	switch {
	case o.none:
		return ""
	case len(o.only) > 0:
		return fasthttp.HeaderVary + ": " + fasthttp.HeaderOrigin + "\r\n"
	}
	return fasthttp.HeaderAccessControlAllowOrigin + ": *\r\n" +
		fasthttp.HeaderAccessControlExposeHeaders + ": " + exposedUnread + "\r\n"
}
