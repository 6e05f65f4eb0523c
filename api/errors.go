package api

import (
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

// The refusals of market data.
var (
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
)
