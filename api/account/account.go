package account

import (
	"log/slog"
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal/history"
)

// Options are where the answers come from. All are required.
type Options struct {
	// Board is what is published: markets, wallets, links.
	Board *view.Board
	// History is the read side of the index: what became of orders.
	History *history.History
	// Catalog is the current catalog, which labels outcomes; it may be nil.
	Catalog func() *catalog.Catalog
	// KeyID is the uuid of the API key of an address with a nonce.
	KeyID func(a engine.Address, nonce uint32) string
	// Checksum writes an address as 0x and 40 hex digits of mixed case.
	Checksum func(engine.Address) string
	// JournalID is the id of the journal behind the Board, part of all trade ids.
	JournalID uint64
	// Exchanges are the contracts that orders may be signed for. Each has an unlimited allowance.
	Exchanges []engine.Address
	// Await waits until the index holds a Sequence and reports whether it does.
	Await func(engine.Sequence) bool
	// Log hears of failures.
	Log *slog.Logger
}

// Account answers what the owner of an API key asks about its own orders, trades and balances, and
// what anybody asks about a builder's trades. Any number of goroutines may use an Account.
type Account struct {
	o      Options
	routes map[string]privateRoute
}

// New makes an Account.
func New(o Options) *Account {
	a := &Account{o: o}
	a.routes = a.privateRoutes()
	return a
}

// caller is who an account request comes from.
type caller struct {
	address engine.Address
	dialect wire.Dialect
	no      engine.WalletNo   // 0: the caller never had money or a linked wallet
	wallets []engine.WalletNo // linked to the caller, the oldest link first
}

// handler answers the requests of one account path: the body, or why there is none.
type handler func(ctx *fasthttp.RequestCtx, c *caller) ([]byte, *wire.Refusal)

// privateRoute is the handlers of one account path, by method; GET answers HEAD as well.
type privateRoute struct {
	by map[string]handler
	// indexed routes read the index: they wait until it holds the caller's latest write.
	indexed bool
}

// The one account path that ends in an id: what stands before the id, and its name in the table.
const (
	orderPath  = "/data/order/"
	orderRoute = orderPath + "{id}"
)

// privateRoutes is the table of the account routes, each also under /clob.
func (a *Account) privateRoutes() map[string]privateRoute {
	get := func(h handler) map[string]handler { return map[string]handler{"GET": h} }
	return map[string]privateRoute{
		orderRoute:                  {get(a.order), true},
		"/data/orders":              {map[string]handler{"GET": a.orders, "POST": a.lookups}, true},
		"/data/trades":              {get(a.trades), true},
		"/data/volumes":             {map[string]handler{"POST": a.volumes}, true},
		"/balance-allowance":        {get(a.balance), true},
		"/balance-allowance/update": {get(a.balance), true}, // there is nothing to refresh

		"/order-scoring":  {get(scoring), false},
		"/orders-scoring": {map[string]handler{"POST": scorings}, false},
		"/notifications": {map[string]handler{
			"GET": always(wire.EmptyList), "DELETE": dropped}, false},
		"/data/pre-migration-orders": {get(always(wire.EmptyPage)), false},
		"/rewards/user":              {get(always(wire.EmptyPage)), false},
		"/rewards/user/total":        {get(always(wire.EmptyList)), false},
		"/rewards/user/percentages":  {get(always(wire.EmptyObject)), false},
		"/rewards/user/markets":      {get(always(wire.EmptyPage)), false},
	}
}

// Routes are the public routes about builders, each also under /clob.
func (a *Account) Routes() []wire.Route {
	return []wire.Route{
		{Path: "/fees/builder-fees/{code}", Handler: wire.Answering(builderFees)},
		{Path: "/builder/trades", Handler: wire.Answering(a.builderTrades)},
	}
}

// Private names the routes that need a key, as a method, a space and a path.
func (a *Account) Private() (routes []string) {
	for path, r := range a.routes {
		for method := range r.by {
			routes = append(routes, method+" "+path)
		}
	}
	return routes
}

// Serve answers a request of the owner of an API key, whose request the caller has authenticated.
// dialect is that of its headers.
func (a *Account) Serve(ctx *fasthttp.RequestCtx, owner engine.Address, dialect wire.Dialect) {
	path := strings.TrimPrefix(wire.Text(ctx.URI().PathOriginal()), "/clob")
	if strings.HasPrefix(path, orderPath) {
		path = orderRoute
	}
	route, known := a.routes[path]
	if !known {
		wire.NotFound(ctx)
		return
	}
	method := wire.Text(ctx.Method())
	if method == fasthttp.MethodHead {
		method = fasthttp.MethodGet
	}
	serve := route.by[method]
	if serve == nil {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, route.allow())
		wire.WrongMethod(ctx)
		return
	}
	c := a.caller(owner, dialect)
	if route.indexed && !a.await(c) {
		errLagging.Send(ctx)
		return
	}
	body, refused := serve(ctx, c)
	wire.Respond(ctx, body, refused)
}

// allow names the methods that are answered.
func (r *privateRoute) allow() string {
	var names []string
	for _, method := range [...]string{"GET", "POST", "DELETE"} {
		if r.by[method] == nil {
			continue
		}
		if names = append(names, method); method == "GET" {
			names = append(names, "HEAD")
		}
	}
	return strings.Join(names, ", ")
}

func (a *Account) caller(owner engine.Address, dialect wire.Dialect) *caller {
	d := a.o.Board.Directory
	c := &caller{address: owner, dialect: dialect}
	if no, known := d.Wallet(owner); known {
		c.no, c.wallets = no, d.Owned(no, nil)
	}
	return c
}

// await waits until the index holds the last acknowledged write of the caller and of each of its
// wallets, and reports whether it does.
func (a *Account) await(c *caller) bool {
	d := a.o.Board.Directory
	last := d.LastNamed(c.no)
	for _, w := range c.wallets {
		last = max(last, d.LastNamed(w))
	}
	return a.o.Await(last)
}
