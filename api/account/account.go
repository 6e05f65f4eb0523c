package account

import (
	"log/slog"
	"slices"
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
	// Exchanges are the contracts that orders may be signed for: all have an allowance without bounds.
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
	h := &Account{o: o}
	h.routes = h.privateRoutes()
	return h
}

// caller is who an account request comes from.
type caller struct {
	address engine.Address
	dialect wire.Dialect
	no      engine.WalletNo   // 0: nothing was ever paid to it, nor linked
	wallets []engine.WalletNo // linked to it, in the order in which they were
}

// accountHandler answers one account path.
type accountHandler func(ctx *fasthttp.RequestCtx, c *caller)

// privateRoute is what one account path answers, by method.
type privateRoute struct {
	get, post, del accountHandler
	// indexed routes read the index: they wait until it holds the caller's latest write.
	indexed bool
}

// accountOrder is what the one account path that ends in an id holds before it.
const accountOrder = "/data/order/"

// privateRoutes is the table of the account routes, each also under /clob.
func (h *Account) privateRoutes() map[string]privateRoute {
	return map[string]privateRoute{
		accountOrder:                {get: h.order, indexed: true},
		"/data/orders":              {get: h.orders, post: h.lookups, indexed: true},
		"/data/trades":              {get: h.trades, indexed: true},
		"/data/volumes":             {post: h.volumes, indexed: true},
		"/balance-allowance":        {get: h.balance, indexed: true},
		"/balance-allowance/update": {get: h.balance, indexed: true},

		"/order-scoring":             {get: scoring},
		"/orders-scoring":            {post: scorings},
		"/notifications":             {get: alwaysTo(wire.EmptyList), del: dropped},
		"/data/pre-migration-orders": {get: alwaysTo(wire.EmptyPage)},
		"/rewards/user":              {get: alwaysTo(wire.EmptyPage)},
		"/rewards/user/total":        {get: alwaysTo(wire.EmptyList)},
		"/rewards/user/percentages":  {get: alwaysTo(wire.EmptyObject)},
		"/rewards/user/markets":      {get: alwaysTo(wire.EmptyPage)},
	}
}

// Routes are the public routes about builders, each also under /clob.
func (h *Account) Routes() []wire.Route {
	return []wire.Route{
		{Path: "/fees/builder-fees/{code}", Handler: builderFees},
		{Path: "/builder/trades", Handler: h.builderTrades},
	}
}

// Private names the routes that need a key, as a method, a space and a path.
func (h *Account) Private() (routes []string) {
	for path, r := range h.routes {
		if path == accountOrder {
			path += "{id}"
		}
		for method, handler := range map[string]accountHandler{
			"GET": r.get, "POST": r.post, "DELETE": r.del,
		} {
			if handler != nil {
				routes = append(routes, method+" "+path)
			}
		}
	}
	return routes
}

// Serve answers a request of the owner of an API key, whose request the caller has authenticated.
// dialect is that of its headers.
func (h *Account) Serve(ctx *fasthttp.RequestCtx, owner engine.Address, dialect wire.Dialect) {
	path := strings.TrimPrefix(wire.Text(ctx.URI().PathOriginal()), "/clob")
	if strings.HasPrefix(path, accountOrder) {
		path = accountOrder
	}
	route, known := h.routes[path]
	if !known {
		wire.NotFound(ctx)
		return
	}
	serve := route.method(ctx)
	if serve == nil {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, route.allow())
		wire.WrongMethod(ctx)
		return
	}
	c := h.caller(owner, dialect)
	if route.indexed && !h.await(c) {
		errLagging.Send(ctx)
		return
	}
	serve(ctx, c)
}

// method is what answers the request's method, nil if nothing does.
func (r *privateRoute) method(ctx *fasthttp.RequestCtx) accountHandler {
	switch {
	case ctx.IsGet() || ctx.IsHead():
		return r.get
	case ctx.IsPost():
		return r.post
	case ctx.IsDelete():
		return r.del
	}
	return nil
}

// allow names the methods that are answered.
func (r *privateRoute) allow() string {
	var names []string
	if r.get != nil {
		names = append(names, "GET", "HEAD")
	}
	if r.post != nil {
		names = append(names, "POST")
	}
	if r.del != nil {
		names = append(names, "DELETE")
	}
	return strings.Join(names, ", ")
}

// caller finds out what an owner has.
func (h *Account) caller(owner engine.Address, dialect wire.Dialect) *caller {
	d := h.o.Board.Directory
	c := &caller{address: owner, dialect: dialect}
	if no, known := d.Wallet(owner); known {
		c.no, c.wallets = no, d.Owned(no, nil)
	}
	return c
}

// owns reports whether a wallet is linked to the caller.
func (c *caller) owns(no engine.WalletNo) bool { return slices.Contains(c.wallets, no) }

// await waits until the index holds every write that the caller was told of, be it through the
// owner or through one of the wallets, and says whether it does.
func (h *Account) await(c *caller) bool {
	d := h.o.Board.Directory
	last := d.LastNamed(c.no)
	for _, w := range c.wallets {
		last = max(last, d.LastNamed(w))
	}
	return h.o.Await(last)
}
