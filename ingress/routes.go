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
	"clobd/ingress/cors"
	"clobd/ingress/head"
	"clobd/ingress/limits"
)

// makeRoutes makes the route table. Paths under /clob are the same routes.
func (s *Server) makeRoutes() {
	r := router.New()
	s.routes = r
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	s.elsewhere = s.rest()
	r.NotFound = s.elsewhere
	r.MethodNotAllowed = s.gate("unknown", false, refuseMethod.Send) // the router has set Allow
	r.GlobalOPTIONS = s.gate("options", false, func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(204) })
	read := func(path string, h fasthttp.RequestHandler) { add(r, "GET", path, h) }
	for _, prefix := range []string{"", "/clob"} {
		read(prefix+"/", cors.AnyPage(telling(s.gate("health", false, health))))
		read(prefix+"/ok", cors.AnyPage(telling(s.gate("health", false, okay))))
		read(prefix+"/time", cors.AnyPage(telling(s.gate("time", false, s.time))))
		read(prefix+"/version", cors.AnyPage(telling(s.gate("version", false, version))))
		for _, path := range []string{"/", "/ok", "/time", "/version"} {
			r.OPTIONS(prefix+path, s.gate("options", false, cors.AllowReads))
		}
		s.ownRoutes(r, prefix)
		for _, path := range []string{"/ws", "/ws/market"} {
			r.GET(prefix+path, telling(s.gate("sockets", true, s.sockets.market)))
		}
		r.GET(prefix+userPath, telling(s.gate("sockets", true, s.sockets.user)))
		r.GET(prefix+tradePath, telling(s.gate("sockets", true, s.sockets.trade)))
		r.OPTIONS(prefix+"/builder/trades", s.gate("options", false, cors.AllowReads))
		read(prefix+"/builder/trades", cors.Refusals(s.gate("public", true, s.keys.builderTrades)))
		account := s.gate("account", true, s.account)
		for _, route := range accountPaths {
			for _, method := range strings.Fields(route.methods) {
				add(r, method, prefix+route.path, account)
			}
		}
	}
}

// ownRoutes are the routes that trade and those about API keys.
func (s *Server) ownRoutes(r *router.Router, prefix string) {
	beat := func(h signedRequest) fasthttp.RequestHandler { return s.signed(limits.BeatScope, h) }
	exchange := func(kind engine.Kind) fasthttp.RequestHandler {
		return s.signed(limits.TransferScope, s.tokens.exchange(kind))
	}
	k := &s.keys
	for _, route := range []struct {
		name, method, path string
		handler            fasthttp.RequestHandler
	}{
		{"post_order", "POST", "/order", s.tells(s.orders.place)},
		{"post_orders", "POST", "/orders", s.tells(s.orders.placeAll)},
		{"delete_order", "DELETE", "/order", s.tells(s.cancels.cancelOne)},
		{"delete_orders", "DELETE", "/orders", s.tells(s.cancels.cancelMany)},
		{"cancel_all", "DELETE", "/cancel-all", s.tells(s.cancels.sweepAll)},
		{"cancel_market", "DELETE", "/cancel-market-orders", s.tells(s.cancels.sweepMarket)},
		{"heartbeat", "POST", "/v1/heartbeats", beat(s.beats.heartbeat)},
		{"heartbeat", "POST", "/heartbeats", beat(s.beats.heartbeat)},
		{"split", "POST", "/split", exchange(engine.SplitTokens)},
		{"merge", "POST", "/merge", exchange(engine.MergeTokens)},
		{"redeem", "POST", "/redeem", exchange(engine.RedeemTokens)},
		{"derive", "POST", "/auth/api-key", k.deriveKey},
		{"derive", "GET", "/auth/derive-api-key", k.deriveKey},
		{"keys", "GET", "/auth/api-keys", k.reads(k.listKeys)},
		{"keys", "DELETE", "/auth/api-key", k.writes(k.deleteKey)},
		{"keys", "GET", "/auth/ban-status/closed-only", k.reads(k.closedOnly)},
		{"keys", "POST", "/auth/readonly-api-key", k.writes(k.addReadOnly)},
		{"keys", "GET", "/auth/readonly-api-keys", k.reads(k.listReadOnly)},
		{"keys", "DELETE", "/auth/readonly-api-key", k.writes(k.deleteReadOnly)},
		{"keys", "GET", "/auth/validate-readonly-api-key", k.validateReadOnly},
		{"keys", "POST", "/auth/builder-api-key", k.writes(k.addBuilder)},
		{"keys", "GET", "/auth/builder-api-key", k.reads(k.listBuilder)},
		{"keys", "DELETE", "/auth/builder-api-key", k.deleteBuilder},
	} {
		add(r, route.method, prefix+route.path, telling(s.gate(route.name, true, route.handler)))
	}
}

// telling makes the answers of a handler name the parameters that no route of this package knows.
var telling = wire.Known("address apiKey includeRevoked key metadata").Telling

// add adds a route; a GET also answers HEAD.
func add(r *router.Router, method, path string, h fasthttp.RequestHandler) {
	r.Handle(method, path, h)
	if method == "GET" {
		r.HEAD(path, h)
	}
}

// rest serves the paths that are not in the table: reads belong to Public.
func (s *Server) rest() fasthttp.RequestHandler {
	root := cors.AnyPage(telling(s.gate("health", false, health)))
	public := cors.Refusals(s.gate("public", true, s.public))
	preflight := s.gate("options", false, cors.AllowReads)
	unknown := s.gate("unknown", false, refuseRoute.Send)
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
		"heartbeats", "split", "merge", "redeem", "auth", "data", "clob", "builder", "ws":
		return true
	}
	for i := range accountPaths {
		if string(path) == accountPaths[i].path {
			return true
		}
	}
	return false
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

func health(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBodyString("OK")
}

func okay(ctx *fasthttp.RequestCtx) { wire.AnswerRaw(ctx, []byte(`"OK"`)) }

// version is GET /version: the version of the order struct that clients should sign.
func version(ctx *fasthttp.RequestCtx) { wire.AnswerRaw(ctx, []byte(`{"version":2}`)) }

// time is GET /time: bare unix seconds, which clients put into their headers.
func (s *Server) time(ctx *fasthttp.RequestCtx) {
	wire.AnswerRaw(ctx, engine.AppendDecimal(nil, s.options.Now().Unix(), 0))
}

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
	c := head.ReadCredentials(&ctx.Request.Header)
	if reads && strings.HasPrefix(path, "/data/") && c.ReadOnly != "" && c.Key == "" {
		claim, may := s.claim(ctx, c.ReadOnly)
		if !may {
			return
		}
		if address, ok = s.keys.reader(c.Address, c.ReadOnly); !ok || c.Doubled != "" {
			s.refuseClaim(ctx, &claim, auth.ErrKey, refuseUnclear(&c, auth.ErrKey, needL2, time.Time{}))
			return
		}
		s.proved(&claim)
		dialect = c.Dialect
	} else {
		caller, ok := s.authenticate(ctx)
		if !ok {
			return
		}
		address, dialect = caller.Address, caller.dialect
	}
	ctx.Request.URI().SetPath(path)
	s.options.Account(ctx, address, dialect)
}
