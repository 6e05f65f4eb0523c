package account

import (
	"encoding/json"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/journal/history"
)

// Answers about what clients of other exchanges ask for and this exchange does not have.
var (
	notScoring = []byte(`{"scoring":false}`)
	noBuilder  = []byte(`{"builder_maker_fee_rate_bps":0,"builder_taker_fee_rate_bps":0,` +
		`"builder_maker_flat_fee_bps":0,"builder_taker_fee_share_bps":0}`)
)

func always(body []byte) handler {
	return func(*fasthttp.RequestCtx, *caller) ([]byte, *wire.Refusal) { return body, nil }
}

// builderFees tells the fees of a builder, who takes none here.
func builderFees(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	var code history.BuilderCode
	if !engine.ParseHex(code[:], wire.InPath(ctx, "code")) {
		return nil, errBuilder
	}
	return noBuilder, nil
}

// scoring says that an order does not score: there are no rewards.
func scoring(ctx *fasthttp.RequestCtx, _ *caller) ([]byte, *wire.Refusal) {
	if _, ok := engine.ParseOrderID(wire.Parameter(ctx, "order_id", "orderId")); !ok {
		return nil, errOrderID
	}
	return notScoring, nil
}

const maxOrders = 500

func scorings(ctx *fasthttp.RequestCtx, _ *caller) ([]byte, *wire.Refusal) {
	var ids []string
	if err := json.Unmarshal(ctx.PostBody(), &ids); err != nil || ids == nil {
		return nil, errOrderIDs
	}
	if len(ids) > maxOrders {
		return nil, errTooManyOrders
	}
	seen := make(map[string]struct{}, len(ids))
	b := append(make([]byte, 0, 2+80*len(ids)), '{')
	for _, id := range ids {
		if _, ok := engine.ParseOrderID(id); !ok {
			return nil, errOrderID
		}
		if _, twice := seen[id]; !twice {
			seen[id] = struct{}{}
			b = append(wire.AppendKey(b, id), "false"...)
		}
	}
	return wire.CloseObject(b), nil
}
