package ingress

import (
	"net/http"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

// send refuses a request in the shape of its family, before its route could. What is no request at
// all has no family.
func send(ctx *fasthttp.RequestCtx, r *wire.Refusal) {
	if r.Status != http.StatusBadRequest {
		r = r.In(wire.FamilyFor(ctx))
	}
	r.Send(ctx)
}
