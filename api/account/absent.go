package account

import (
	"encoding/json"
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
)

// What the clients of other exchanges ask for and this one does not have is answered as if there
// were none of it.
var (
	notScoring  = []byte(`{"scoring":false}`)
	noneDropped = []byte(`{"deleted":[]}`)
	noBuilder   = []byte(`{"builder_maker_fee_rate_bps":0,"builder_taker_fee_rate_bps":0,` +
		`"builder_maker_flat_fee_bps":0,"builder_taker_fee_share_bps":0}`)
)

// alwaysTo is always for account routes.
func alwaysTo(body []byte) accountHandler {
	return func(ctx *fasthttp.RequestCtx, _ *caller) { wire.AnswerRaw(ctx, body) }
}

// builderFees answers GET /fees/builder-fees/{code}: builders take nothing here.
func builderFees(ctx *fasthttp.RequestCtx) {
	code, _ := ctx.UserValue("code").(string)
	if !isBuilder(code) {
		errBuilder.Send(ctx)
		return
	}
	wire.AnswerRaw(ctx, noBuilder)
}

// scoring answers GET /order-scoring: without rewards no order scores.
func scoring(ctx *fasthttp.RequestCtx, _ *caller) {
	args := ctx.QueryArgs()
	id := args.Peek("order_id")
	if len(id) == 0 {
		id = args.Peek("orderId")
	}
	if _, ok := engine.ParseOrderID(wire.Text(id)); !ok {
		errOrderID.Send(ctx)
		return
	}
	wire.AnswerRaw(ctx, notScoring)
}

// maxOrders is how many orders one request may ask about.
const maxOrders = 500

// scorings answers POST /orders-scoring: false for each id of the array.
func scorings(ctx *fasthttp.RequestCtx, _ *caller) {
	var ids []string
	if err := json.Unmarshal(ctx.PostBody(), &ids); err != nil || ids == nil {
		errOrderIDs.Send(ctx)
		return
	}
	if len(ids) > maxOrders {
		errTooManyOrders.Send(ctx)
		return
	}
	seen := make(map[string]struct{}, len(ids))
	b := append(make([]byte, 0, 2+80*len(ids)), '{')
	for _, id := range ids {
		if _, ok := engine.ParseOrderID(id); !ok {
			errOrderID.Send(ctx)
			return
		}
		if _, twice := seen[id]; !twice {
			seen[id] = struct{}{}
			b = append(wire.AppendKey(b, id), "false"...)
		}
	}
	wire.Answer(ctx, wire.CloseObject(b))
}

// dropped answers DELETE /notifications: there is none to drop.
func dropped(ctx *fasthttp.RequestCtx, _ *caller) {
	if strings.Trim(wire.Parameter(ctx, "ids"), ", ") == "" {
		errNoIDs.Send(ctx)
		return
	}
	wire.AnswerRaw(ctx, noneDropped)
}
