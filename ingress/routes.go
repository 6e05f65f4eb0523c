package ingress

import (
	"bytes"
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/ingress/auth"
)

// makeRoutes makes the route table. Paths under /clob are the same routes.
func (s *Server) makeRoutes() {
	r := router.New()
	s.routes = r
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	s.elsewhere = s.rest()
	r.NotFound = s.elsewhere
	r.MethodNotAllowed = s.gate("unknown", false, notAllowed)
	r.GlobalOPTIONS = s.gate("options", false, func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(204) })
	read := func(path string, h fasthttp.RequestHandler) {
		r.GET(path, h)
		r.HEAD(path, h)
	}
	for _, prefix := range []string{"", "/clob"} {
		read(prefix+"/", anyOrigin(s.gate("health", false, health)))
		read(prefix+"/ok", anyOrigin(s.gate("health", false, okay)))
		read(prefix+"/time", anyOrigin(s.gate("time", false, s.time)))
		read(prefix+"/version", anyOrigin(s.gate("version", false, version)))
		for _, path := range []string{"/", "/ok", "/time", "/version"} {
			r.OPTIONS(prefix+path, s.gate("options", false, allowReads))
		}
		s.writes(r, prefix)
		s.keyRoutes(r, prefix)
		r.OPTIONS(prefix+"/builder/trades", s.gate("options", false, allowReads))
		read(prefix+"/builder/trades", sharedRefusals(s.gate("public", true, s.keys.builderTrades)))
		account := s.gate("account", true, s.account)
		for _, route := range accountPaths {
			for _, method := range strings.Fields(route.methods) {
				r.Handle(method, prefix+route.path, account)
				if method == "GET" {
					r.HEAD(prefix+route.path, account)
				}
			}
		}
	}
}

// writes are the routes that trade.
func (s *Server) writes(r *router.Router, prefix string) {
	r.POST(prefix+"/order", s.gate("post_order", true, s.orders.postOrder))
	r.POST(prefix+"/orders", s.gate("post_orders", true, s.orders.postOrders))
	r.DELETE(prefix+"/order", s.gate("delete_order", true, s.signed(cancelScope, s.cancels.deleteOrder)))
	r.DELETE(prefix+"/orders", s.gate("delete_orders", true, s.cancels.deleteOrders))
	r.DELETE(prefix+"/cancel-all", s.gate("cancel_all", true, s.signed(cancelScope, s.cancels.deleteAll)))
	r.DELETE(prefix+"/cancel-market-orders", s.gate("cancel_market", true, s.signed(cancelScope, s.cancels.deleteMarket)))
	r.POST(prefix+"/v1/heartbeats", s.gate("heartbeat", true, s.signed(beatScope, s.beats.heartbeat)))
	r.POST(prefix+"/heartbeats", s.gate("heartbeat", true, s.signed(beatScope, s.beats.legacyHeartbeat)))
	r.POST(prefix+"/split", s.gate("split", true, s.signed(transferScope, s.tokens.exchange(engine.SplitTokens))))
	r.POST(prefix+"/merge", s.gate("merge", true, s.signed(transferScope, s.tokens.exchange(engine.MergeTokens))))
	r.POST(prefix+"/redeem", s.gate("redeem", true, s.signed(transferScope, s.tokens.exchange(engine.RedeemTokens))))
}

// keyRoutes are the routes about API keys.
func (s *Server) keyRoutes(r *router.Router, prefix string) {
	prefix += "/auth"
	for _, route := range []struct {
		method, path string
		handler      fasthttp.RequestHandler
	}{
		{"POST", "/api-key", s.keys.deriveKey},
		{"GET", "/derive-api-key", s.keys.deriveKey},
		{"GET", "/api-keys", s.keys.reads(s.keys.listKeys)},
		{"DELETE", "/api-key", s.keys.writes(s.keys.deleteKey)},
		{"GET", "/ban-status/closed-only", s.keys.reads(s.keys.closedOnly)},
		{"POST", "/readonly-api-key", s.keys.writes(s.keys.addReadOnly)},
		{"GET", "/readonly-api-keys", s.keys.reads(s.keys.listReadOnly)},
		{"DELETE", "/readonly-api-key", s.keys.writes(s.keys.deleteReadOnly)},
		{"GET", "/validate-readonly-api-key", s.keys.validateReadOnly},
		{"POST", "/builder-api-key", s.keys.writes(s.keys.addBuilder)},
		{"GET", "/builder-api-key", s.keys.reads(s.keys.listBuilder)},
		{"DELETE", "/builder-api-key", s.keys.deleteBuilder},
	} {
		name := "keys"
		if strings.HasSuffix(route.path, "derive-api-key") || route.method+route.path == "POST/api-key" {
			name = "derive"
		}
		h := s.gate(name, true, route.handler)
		r.Handle(route.method, prefix+route.path, h)
		if route.method == "GET" {
			r.HEAD(prefix+route.path, h)
		}
	}
}

// rest serves the paths that are not in the table: reads belong to Public.
func (s *Server) rest() fasthttp.RequestHandler {
	root := anyOrigin(s.gate("health", false, health))
	public := sharedRefusals(s.gate("public", true, s.public))
	preflight := s.gate("options", false, allowReads)
	unknown := s.gate("unknown", false, func(ctx *fasthttp.RequestCtx) {
		refuseRoute.Send(ctx)
	})
	return func(ctx *fasthttp.RequestCtx) {
		reads := ctx.IsGet() || ctx.IsHead()
		switch {
		case reads && string(ctx.Path()) == "/clob":
			root(ctx)
		case ctx.IsOptions():
			preflight(ctx)
		case reads || ctx.IsPost() || !owned(ctx.Path()):
			public(ctx) // it refuses a method that it does not know
		default:
			unknown(ctx)
		}
	}
}

// owned reports whether a path may be in this package's table.
func owned(path []byte) bool {
	first, _, _ := bytes.Cut(path[1:], []byte{'/'})
	switch string(first) {
	case "", "ok", "time", "version", "order", "orders", "cancel-all", "cancel-market-orders", "v1",
		"heartbeats", "split", "merge", "redeem", "auth", "data", "clob", "builder":
		return true
	}
	return private(path)
}

// accountPaths are the reads that need a key, with their methods. HEAD counts as GET.
var accountPaths = [...]struct{ path, methods string }{
	{"/data/orders", "GET POST"}, {"/data/order/{rest:*}", "GET"}, {"/data/trades", "GET"},
	{"/data/volumes", "POST"}, {"/data/pre-migration-orders", "GET"},
	{"/balance-allowance", "GET"}, {"/balance-allowance/update", "GET"},
	{"/order-scoring", "GET"}, {"/orders-scoring", "POST"}, {"/notifications", "GET DELETE"},
	{"/rewards/user", "GET"}, {"/rewards/user/total", "GET"},
	{"/rewards/user/percentages", "GET"}, {"/rewards/user/markets", "GET"},
}

// private reports whether a path is one of accountPaths.
func private(path []byte) bool {
	for i := range accountPaths {
		if string(path) == accountPaths[i].path {
			return true
		}
	}
	return false
}

// allowReads answers a browser's preflight: any page may read market data.
func allowReads(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST")
	h.Set("Access-Control-Allow-Headers", "Content-Type")
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}

// anyOrigin lets web pages read a public answer.
func anyOrigin(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
		h(ctx)
	}
}

// sharedRefusals lets web pages read why market data is refused, and when to ask again. Without the
// header a page sees no answer at all.
func sharedRefusals(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		h(ctx)
		if ctx.Response.StatusCode() >= fasthttp.StatusBadRequest {
			header := &ctx.Response.Header
			header.Set("Access-Control-Allow-Origin", "*")
			header.Set("Access-Control-Expose-Headers", "Retry-After")
		}
	}
}

// health is GET /, for clients and load balancers.
func health(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBodyString("OK")
}

// okay is GET /ok.
func okay(ctx *fasthttp.RequestCtx) { wire.AnswerRaw(ctx, []byte(`"OK"`)) }

// version is GET /version: the version of the order struct that clients should sign.
func version(ctx *fasthttp.RequestCtx) { wire.AnswerRaw(ctx, []byte(`{"version":2}`)) }

// time is GET /time: bare unix seconds, which clients put into their headers.
func (s *Server) time(ctx *fasthttp.RequestCtx) {
	wire.AnswerRaw(ctx, engine.AppendDecimal(nil, s.options.Now().Unix(), 0))
}

// notAllowed answers a wrong method on a known path. The router has set Allow.
func notAllowed(ctx *fasthttp.RequestCtx) {
	refuseMethod.Send(ctx)
}

// public hands a read to its owner.
func (s *Server) public(ctx *fasthttp.RequestCtx) {
	s.pool.reading(ctx.Time())
	s.options.Public(ctx)
}

// account hands a private read to its owner, once the caller is known.
func (s *Server) account(ctx *fasthttp.RequestCtx) {
	s.pool.reading(ctx.Time())
	path := strings.TrimPrefix(string(ctx.Path()), "/clob")
	address, dialect, ok := engine.Address{}, wire.Dialect(""), false
	reads := ctx.IsGet() || ctx.IsHead()
	c := readCredentials(&ctx.Request.Header)
	if reads && strings.HasPrefix(path, "/data/") && c.readOnly != "" && c.key == "" {
		if address, ok = s.keys.reader(c.address, c.readOnly); !ok || c.doubled {
			refuseCaller(auth.ErrKey, time.Time{}).Send(ctx)
			return
		}
		dialect = c.dialect
	} else {
		caller, ok := s.authenticate(ctx)
		if !ok {
			return
		}
		address, dialect = caller.Address, caller.dialect
	}
	ctx.Request.URI().SetPath(path)
	s.options.Account(ctx, address, string(dialect))
}
