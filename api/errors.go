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
	text   string
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
		switch {
		case status == fasthttp.StatusNotFound:
			kind = "not found error"
		case status >= fasthttp.StatusInternalServerError:
			kind = "internal error"
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
	return &failure{status: status, text: text, body: closeObject(b)}
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
	errCharted = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid token id",
		"market must be the id of an outcome token: a decimal number below 2^256")
	errChartedAll = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid token id",
		"markets must be ids of outcome tokens, each a text with a decimal number below 2^256")
	errSide = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid side",
		"side must be BUY or SELL")
	errNoBook = fail(fasthttp.StatusNotFound, "not_found",
		"No orderbook exists for the requested token id",
		"no market that is listed here has a token with that id: token_id is one of a market's "+
			"clobTokenIds, not the market's own id")
	errOneSided = fail(fasthttp.StatusNotFound, "not_found",
		"No orderbook exists for the requested token id",
		"there is a midpoint only while orders rest on both sides of the book")
	errNoSpread = fail(fasthttp.StatusNotFound, "not_found",
		"No orderbook exists for the requested token id",
		"there is a spread only while orders rest on both sides of the book")
	errNoTrade = fail(fasthttp.StatusNotFound, "not_found", "no last trade price for token",
		"the token was never traded")
	errPayload = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		`the body must be a JSON array of objects like {"token_id":"decimal number below 2^256"}`)
	errTokens = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid token id",
		"token_ids must be ids of outcome tokens with commas between them")
	errPayloadSide = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid side",
		"where a side is given it must be BUY or SELL")
	errSides = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid side",
		"sides must name BUY or SELL once for each of token_ids, or be left out")
	errTooMany = fail(fasthttp.StatusBadRequest, "bad_payload", "Payload exceeds the limit",
		"at most 500 tokens at once")
	errTooLong = fail(fasthttp.StatusBadRequest, "bad_payload", "Payload exceeds the limit",
		"these books have more than 4 MiB together: ask for fewer of them at once")
	errCondition = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid market",
		"a condition id is 0x and 64 hex digits")
	errNoMarket = fail(fasthttp.StatusNotFound, "not_found", "market not found",
		"no market that is listed here has that id: a market goes by its condition id, 0x and 64 hex "+
			"digits, a token by one of the market's clobTokenIds")
	errOrderID = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid orderID",
		"an order id is 0x and 64 hex digits")
	errOrderParams = fail(fasthttp.StatusBadRequest, "bad_payload", "invalid order params payload",
		"id is an order id, market a condition id, asset_id a token id, maker_address an address of "+
			"yours, next_cursor one that was answered")
	errTradeParams = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid trade params payload",
		"id is a trade id, taker, maker and maker_address are addresses, market is a condition id, "+
			"asset_id a token id, before and after are unix seconds or milliseconds, next_cursor one that "+
			"was answered")
	errOrderIDs = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		"the body must be a JSON array of order ids")
	errLookups = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		`the body must be a JSON array of 1 to 500 objects like {"orderId":"0x and 64 hex digits"}`)
	errVolumes = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		`the body must be like {"conditions":[{"conditionId":"0x and 64 hex digits","tokenIds":[]}]}, `+
			"1 to 100 of them")
	errTooManyOrders = fail(fasthttp.StatusBadRequest, "bad_payload", "Payload exceeds the limit",
		"at most 500 orders at once")
	errSignatureType = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid signature type",
		"signature_type must be 0, 1, 2 or 3")
	errAssetType = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid asset type",
		"asset_type must be COLLATERAL or CONDITIONAL")
	errCursor = fail(fasthttp.StatusBadRequest, "bad_payload", "invalid next_cursor",
		"next_cursor is one that was answered, or MA== for the first page")
	errBuilder = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid builder code",
		"a builder's code is 0x and 64 hex digits")
	errNoBuilder = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid trade params payload",
		"say whose trades: builder_code is 0x and 64 hex digits, or ask with the headers of a builder key")
	errNoIDs = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		"ids must name notifications with commas between them")
	errNoRequests = fail(fasthttp.StatusNotFound, "not_found", "rfq is not enabled",
		"there are no quotes on request here: place orders")
	errSpan = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid interval",
		"say either interval (1m, 5m, 15m, 1h, 6h, 1d, 1w, max or all) or a start in unix seconds, "+
			"with or without an end that is later")
	errFidelity = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid fidelity",
		"fidelity is a whole number of minutes, at least 1")
	errBatch = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		`the body must be like {"markets":["token id"],"interval":"1d","fidelity":5}, `+
			"with start_ts and end_ts in place of interval if need be")
	errNoCharts = fail(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		`name the outcome tokens whose prices are wanted: {"markets":["token id"],"interval":"1d"}, `+
			"1 to 20 of them")
	errBatchSize = fail(fasthttp.StatusBadRequest, "bad_payload", "Payload exceeds the limit",
		"1 to 20 markets at once")
	errNoOrder = fail(fasthttp.StatusNotFound, "not_found", "order not found",
		"no order of this account has that id; one that was refused leaves nothing behind")
	errLagging = fail(fasthttp.StatusServiceUnavailable, "index_lagging", "service not ready",
		"the index has not yet seen your latest write; nothing is lost, ask again")
	errInternal = fail(fasthttp.StatusInternalServerError, "internal", "internal_error",
		"the node failed to read its own records: its log says which")
)

// families tells the family of a path that leads nowhere by its first segment.
var families = [...]struct {
	segment string
	family  family
}{
	{"/events", described}, {"/series", described}, {"/tags", described},
	{"/public-search", described}, {"/markets", described}, {"/gamma", described},
	{"/positions", wallets}, {"/closed-positions", wallets}, {"/holders", wallets},
	{"/value", wallets}, {"/traded", wallets}, {"/activity", wallets}, {"/trades", wallets},
	{"/data-api", wallets}, {"/oi", wallets}, {"/live-volume", wallets},
	{"/public-profile", wallets}, {"/v1/market-positions", wallets}, {"/v1/leaderboard", wallets},
	{"/v1/builders", wallets}, {"/v1/positions", wallets}, {"/v1/activity", wallets},
	{"/sports", described}, {"/teams", described}, {"/comments", described},
	{"/market-clarifications", described},
}

// The two ways to miss a route, worded by each family.
var errNotFound, errMethod = func() (n, m [wallets + 1]*failure) {
	const routes, methods = "GET /openapi.json names all routes",
		"the header Allow names the methods of this path"
	for f := range wallets {
		n[f] = f.fail(fasthttp.StatusNotFound, "not_found", "not found", routes)
		m[f] = f.fail(fasthttp.StatusMethodNotAllowed, "method_not_allowed", "method not allowed",
			methods)
	}
	// Bodies of this family hold nothing but the error.
	n[wallets] = wallets.fail(fasthttp.StatusNotFound, "not_found", "not found, "+routes, "")
	m[wallets] = wallets.fail(fasthttp.StatusMethodNotAllowed, "method_not_allowed",
		"method not allowed, "+methods, "")
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
