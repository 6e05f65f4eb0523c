package api

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

// The errors of the routes below.
var (
	errToken = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid token id",
		"token_id must be the id of an outcome token: a decimal number below 2^256")
	errCharted = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid token id",
		"market must be the id of an outcome token: a decimal number below 2^256")
	errChartedAll = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid token id",
		"markets must be ids of outcome tokens, each a text with a decimal number below 2^256")
	errSide = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid side",
		"side must be BUY or SELL")
	errNoBook = wire.Refuse(fasthttp.StatusNotFound, "not_found",
		"No orderbook exists for the requested token id",
		"no market that is listed here has a token with that id: token_id is one of a market's "+
			"clobTokenIds, not the market's own id")
	errOneSided = wire.Refuse(fasthttp.StatusNotFound, "not_found",
		"No orderbook exists for the requested token id",
		"there is a midpoint only while orders rest on both sides of the book")
	errNoSpread = wire.Refuse(fasthttp.StatusNotFound, "not_found",
		"No orderbook exists for the requested token id",
		"there is a spread only while orders rest on both sides of the book")
	errNoTrade = wire.Refuse(fasthttp.StatusNotFound, "not_found", "no last trade price for token",
		"the token was never traded")
	errPayload = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		`the body must be a JSON array of objects like {"token_id":"decimal number below 2^256"}`)
	errTokens = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid token id",
		"token_ids must be ids of outcome tokens with commas between them")
	errPayloadSide = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid side",
		"where a side is given it must be BUY or SELL")
	errSides = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid side",
		"sides must name BUY or SELL once for each of token_ids, or be left out")
	errTooMany = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Payload exceeds the limit",
		"at most 500 tokens at once")
	errTooLong = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Payload exceeds the limit",
		"these books have more than 4 MiB together: ask for fewer of them at once")
	errCondition = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid market",
		"a condition id is 0x and 64 hex digits")
	errNoMarket = wire.Refuse(fasthttp.StatusNotFound, "not_found", "market not found",
		"no market that is listed here has that id: a market goes by its condition id, 0x and 64 hex "+
			"digits, a token by one of the market's clobTokenIds")
	errOrderID = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid orderID",
		"an order id is 0x and 64 hex digits")
	errOrderParams = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "invalid order params payload",
		"id is an order id, market a condition id, asset_id a token id, maker_address an address of "+
			"yours, next_cursor one that was answered")
	errTradeParams = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid trade params payload",
		"id is a trade id, taker, maker and maker_address are addresses, market is a condition id, "+
			"asset_id a token id, before and after are unix seconds or milliseconds, next_cursor one that "+
			"was answered")
	errOrderIDs = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		"the body must be a JSON array of order ids")
	errLookups = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		`the body must be a JSON array of 1 to 500 objects like {"orderId":"0x and 64 hex digits"}`)
	errVolumes = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		`the body must be like {"conditions":[{"conditionId":"0x and 64 hex digits","tokenIds":[]}]}, `+
			"1 to 100 of them")
	errTooManyOrders = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Payload exceeds the limit",
		"at most 500 orders at once")
	errSignatureType = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid signature type",
		"signature_type must be 0, 1, 2 or 3")
	errAssetType = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid asset type",
		"asset_type must be COLLATERAL or CONDITIONAL")
	errCursor = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "invalid next_cursor",
		"next_cursor is one that was answered, or MA== for the first page")
	errBuilder = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid builder code",
		"a builder's code is 0x and 64 hex digits")
	errNoBuilder = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid trade params payload",
		"say whose trades: builder_code is 0x and 64 hex digits, or ask with the headers of a builder key")
	errNoIDs = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		"ids must name notifications with commas between them")
	errNoRequests = wire.Refuse(fasthttp.StatusNotFound, "not_found", "rfq is not enabled",
		"there are no quotes on request here: place orders")
	errSpan = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid interval",
		"say either interval (1m, 5m, 15m, 1h, 6h, 1d, 1w, max or all) or a start in unix seconds, "+
			"with or without an end that is later")
	errFidelity = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid fidelity",
		"fidelity is a whole number of minutes, at least 1")
	errBatch = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		`the body must be like {"markets":["token id"],"interval":"1d","fidelity":5}, `+
			"with start_ts and end_ts in place of interval if need be")
	errNoCharts = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		`name the outcome tokens whose prices are wanted: {"markets":["token id"],"interval":"1d"}, `+
			"1 to 20 of them")
	errBatchSize = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Payload exceeds the limit",
		"1 to 20 markets at once")
	errNoOrder = wire.Refuse(fasthttp.StatusNotFound, "not_found", "order not found",
		"no order of this account has that id; one that was refused leaves nothing behind")
	errLagging = wire.Refuse(fasthttp.StatusServiceUnavailable, "index_lagging", "service not ready",
		"the index has not yet seen your latest write; nothing is lost, ask again")
	errInternal = wire.Refuse(fasthttp.StatusInternalServerError, "internal", "internal_error",
		"the node failed to read its own records: its log says which")
)

// families tells the family of a path that leads nowhere by its first segment.
var families = [...]struct {
	segment string
	family  wire.Family
}{
	{"/events", wire.Described}, {"/series", wire.Described}, {"/tags", wire.Described},
	{"/public-search", wire.Described}, {"/markets", wire.Described}, {"/gamma", wire.Described},
	{"/positions", wire.Wallets}, {"/closed-positions", wire.Wallets}, {"/holders", wire.Wallets},
	{"/value", wire.Wallets}, {"/traded", wire.Wallets}, {"/activity", wire.Wallets}, {"/trades", wire.Wallets},
	{"/data-api", wire.Wallets}, {"/oi", wire.Wallets}, {"/live-volume", wire.Wallets},
	{"/public-profile", wire.Wallets}, {"/v1/market-positions", wire.Wallets}, {"/v1/leaderboard", wire.Wallets},
	{"/v1/builders", wire.Wallets}, {"/v1/positions", wire.Wallets}, {"/v1/activity", wire.Wallets},
	{"/sports", wire.Described}, {"/teams", wire.Described}, {"/comments", wire.Described},
	{"/market-clarifications", wire.Described},
}

// The two ways to miss a route, worded by each family.
var errNotFound, errMethod = func() (n, m [wire.Operators]*wire.Refusal) {
	const routes, methods = "GET /openapi.json names all routes",
		"the header Allow names the methods of this path"
	for f := range wire.Operators {
		n[f] = f.Refuse(fasthttp.StatusNotFound, "not_found", "not found", routes)
		m[f] = f.Refuse(fasthttp.StatusMethodNotAllowed, "method_not_allowed", "method not allowed",
			methods)
	}
	// Bodies of this family hold nothing but the error.
	n[wire.Wallets] = wire.Wallets.Refuse(fasthttp.StatusNotFound, "not_found", "not found, "+routes, "")
	m[wire.Wallets] = wire.Wallets.Refuse(fasthttp.StatusMethodNotAllowed, "method_not_allowed",
		"method not allowed, "+methods, "")
	return n, m
}()

func familyOf(path []byte) wire.Family {
	for i := range families {
		rest, is := bytes.CutPrefix(path, []byte(families[i].segment))
		if is && (len(rest) == 0 || rest[0] == '/') {
			return families[i].family
		}
	}
	return wire.Trading
}

func notFound(ctx *fasthttp.RequestCtx) { errNotFound[familyOf(ctx.Path())].Send(ctx) }

func wrongMethod(ctx *fasthttp.RequestCtx) { errMethod[familyOf(ctx.Path())].Send(ctx) }
