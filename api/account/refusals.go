package account

import (
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

// The refusals of this room.
var (
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
	errBuilder = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid builder code",
		"a builder's code is 0x and 64 hex digits")
	errNoBuilder = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid trade params payload",
		"say whose trades: builder_code is 0x and 64 hex digits, or ask with the headers of a builder key")
	errDeep = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "invalid next_cursor",
		"that offset is too far into the list to count to: go on from a next_cursor that was answered")
	errNoIDs = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid payload",
		"ids must name notifications with commas between them")
	errNoOrder = wire.Refuse(fasthttp.StatusNotFound, "not_found", "order not found",
		"no order of this account has that id; one that was refused leaves nothing behind")
	errLagging = wire.Refuse(fasthttp.StatusServiceUnavailable, "index_lagging", "service not ready",
		"the index has not yet seen your latest write; nothing is lost, ask again")
)
