package cors

import "github.com/valyala/fasthttp"

// AllowReads answers a browser's preflight: any page may read market data.
func AllowReads(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST")
	h.Set("Access-Control-Allow-Headers", "Content-Type")
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}

// AnyPage lets web pages read a public answer.
func AnyPage(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
		h(ctx)
	}
}

// Refusals lets web pages read why market data is refused, and when to ask again.
func Refusals(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		h(ctx)
		if ctx.Response.StatusCode() >= fasthttp.StatusBadRequest {
			header := &ctx.Response.Header
			header.Set("Access-Control-Allow-Origin", "*")
			header.Set("Access-Control-Expose-Headers", "Retry-After")
		}
	}
}
