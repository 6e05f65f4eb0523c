package ingress

import (
	"bytes"
	"net/http"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

// familyOf is the family that words the refusals of a request.
func familyOf(ctx *fasthttp.RequestCtx) wire.Family {
	path := ctx.Path()
	if string(bytes.TrimSuffix(path, []byte{'/'})) == "/markets" && ctx.QueryArgs().Has("next_cursor") {
		return wire.Trading // the order book's list shares the catalog's path
	}
	return wire.FamilyOf(path)
}

// send refuses a request in the shape of its family, before its route could. What is no request at
// all has no family.
func send(ctx *fasthttp.RequestCtx, r *wire.Refusal) {
	if r.Status != http.StatusBadRequest {
		r = r.In(familyOf(ctx))
	}
	r.Send(ctx)
}
