package api

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// family is how a group of routes words its errors. Clients of the three groups expect three
// bodies:
//
//	trading   {"error": text, "code": word}             orders, account, market data
//	described {"type": kind, "error": text}             catalog
//	wallets   {"error": "word: text"}                   positions, holders
//
// The text is what clients compare, so it is the one they know, to the byte; what helps a person on
// top of it goes into "detail".
type family uint8

const (
	trading family = iota
	described
	wallets
)

// failure is one answer that is an error: its body is made once and shared by all who get it.
type failure struct {
	status int
	body   []byte
}

// fail makes an error of the trading family.
func fail(status int, code, text, detail string) *failure {
	return trading.fail(status, code, text, detail)
}

// fail makes an error as the family words it. code is a stable word for machines; detail, in plain
// words what was expected, may be empty.
func (f family) fail(status int, code, text, detail string) *failure {
	b := append([]byte(nil), '{')
	switch f {
	case described:
		kind := "bad request"
		if status == fasthttp.StatusNotFound {
			kind = "not found error"
		}
		b = appendField(b, "type", kind)
		b = appendField(b, "error", text)
	case wallets:
		b = appendField(b, "error", code+": "+text)
	default:
		b = appendField(b, "error", text)
		b = appendField(b, "code", code)
	}
	if detail != "" {
		b = appendField(b, "detail", detail)
	}
	return &failure{status: status, body: closeObject(b)}
}

// send answers with the failure.
func (f *failure) send(ctx *fasthttp.RequestCtx) {
	ctx.SetStatusCode(f.status)
	ctx.SetContentType(jsonType)
	if f.status == fasthttp.StatusServiceUnavailable {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
	}
	ctx.Response.SetBodyRaw(f.body)
}

// The errors of the routes below.
var (
	errToken = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid token id",
		"token_id must be the id of an outcome token: a decimal number below 2^256")
	errSide = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid side",
		"side must be BUY or SELL")
	errNoBook = fail(fasthttp.StatusNotFound, "not_found",
		"No orderbook exists for the requested token id", "")
	errOneSided = fail(fasthttp.StatusNotFound, "not_found",
		"No orderbook exists for the requested token id",
		"there is a midpoint only while orders rest on both sides of the book")
	errNoMarket = fail(fasthttp.StatusNotFound, "not_found", "market not found", "")
	errOrderID  = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid orderID",
		"an order id is 0x and 64 hex digits")
	errNoOrder = fail(fasthttp.StatusNotFound, "not_found", "order not found", "")
	errLagging = fail(fasthttp.StatusServiceUnavailable, "index_lagging", "service not ready",
		"the index has not yet seen your latest write; nothing is lost, ask again")
	errInternal = fail(fasthttp.StatusInternalServerError, "internal", "internal_error", "")
)

// families tells the family of a path that leads nowhere by its first segment.
var families = [...]struct {
	segment string
	family  family
}{
	{"/events", described}, {"/series", described}, {"/tags", described},
	{"/public-search", described}, {"/markets", described},
	{"/positions", wallets}, {"/closed-positions", wallets}, {"/holders", wallets},
}

// The two ways to miss a route, worded by each family.
var errNotFound, errMethod = func() (n, m [wallets + 1]*failure) {
	for f := range wallets + 1 {
		n[f] = f.fail(fasthttp.StatusNotFound, "not_found", "not found", "")
		m[f] = f.fail(fasthttp.StatusMethodNotAllowed, "method_not_allowed",
			"method not allowed", "")
	}
	return n, m
}()

func familyOf(path []byte) family {
	for i := range families {
		rest, is := bytes.CutPrefix(path, []byte(families[i].segment))
		if is && (len(rest) == 0 || rest[0] == '/') {
			return families[i].family
		}
	}
	return trading
}

func notFound(ctx *fasthttp.RequestCtx) { errNotFound[familyOf(ctx.Path())].send(ctx) }

func wrongMethod(ctx *fasthttp.RequestCtx) { errMethod[familyOf(ctx.Path())].send(ctx) }
