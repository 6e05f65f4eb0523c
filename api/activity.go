package api

import (
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

// noQuotes is the configuration of quotes on request, of which there are none here.
var noQuotes = []byte(`{"enabled":false}`)

// noRewards answers GET /rewards/markets/{condition}: a page without rewards.
func (h *Handler) noRewards(ctx *fasthttp.RequestCtx) {
	if _, refused := h.condition(ctx); refused != nil {
		refused.Send(ctx)
		return
	}
	wire.AnswerRaw(ctx, wire.EmptyPage)
}

// noRequests answers every route for quotes on request but their configuration.
func noRequests(ctx *fasthttp.RequestCtx) { errNoRequests.Send(ctx) }
