package account

import (
	"log/slog"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal/history"
)

// Options are where the answers come from. All are required.
type Options struct {
	Board     *view.Board
	History   *history.History
	Catalog   func() *catalog.Catalog // the current catalog; it may be nil
	JournalID uint64                  // of the journal behind the Board, part of all trade ids
	// KeyID is the uuid of the API key of an address with a nonce.
	KeyID func(a engine.Address, nonce uint32) string
	// Checksum writes an address as 0x and 40 hex digits of mixed case.
	Checksum func(engine.Address) string
	// Exchanges are the contracts that orders may be signed for. Each has an unlimited allowance.
	Exchanges []engine.Address
	// Await waits until the index holds a Sequence and reports whether it does.
	Await func(engine.Sequence) bool
	Now   func() time.Time // the clock that ages notices
	Log   *slog.Logger     // of failures
}

// Account answers what the owner of an API key asks about its own orders, trades and balances, and
// what anybody asks about a builder's trades. Any number of goroutines may use an Account.
type Account struct {
	o      Options
	routes map[privateRoute]private
}

// New makes an Account.
func New(o Options) *Account {
	a := &Account{o: o}
	a.routes = a.privateRoutes()
	return a
}

type caller struct {
	address engine.Address
	dialect wire.Dialect
	no      engine.WalletNo   // 0: the caller never had money or a linked wallet
	wallets []engine.WalletNo // linked to the caller, the oldest link first
}

// handler answers the requests of one account route: the body, or why there is none.
type handler func(ctx *fasthttp.RequestCtx, c *caller) ([]byte, *wire.Refusal)

// privateRoute is a route that needs a key. GET answers HEAD as well.
type privateRoute struct{ method, path string }

// private is the handler of a route. An indexed route reads the index: it waits until the index
// holds the caller's latest write.
type private struct {
	serve   handler
	indexed bool
}

// The one account path that ends in an id: what stands before the id, and its name in the table.
const (
	orderPath  = "/data/order/"
	orderRoute = orderPath + "{id}"
)

// privateRoutes is the table of the account routes, each also under /clob.
func (a *Account) privateRoutes() map[privateRoute]private {
	h := newHerald(a)
	return map[privateRoute]private{
		{"GET", orderRoute}:                  {a.order, true},
		{"GET", "/data/orders"}:              {a.orders, true},
		{"POST", "/data/orders"}:             {a.lookups, true},
		{"GET", "/data/trades"}:              {a.trades, true},
		{"POST", "/data/volumes"}:            {a.volumes, true},
		{"GET", "/balance-allowance"}:        {a.balance, true},
		{"GET", "/balance-allowance/update"}: {a.balance, true}, // there is nothing to refresh

		{"GET", "/order-scoring"}:             {scoring, false},
		{"POST", "/orders-scoring"}:           {scorings, false},
		{"GET", "/notifications"}:             {h.notices, true},
		{"DELETE", "/notifications"}:          {h.dropNotices, true},
		{"GET", "/data/pre-migration-orders"}: {always(wire.EmptyPage), false},
		{"GET", "/rewards/user"}:              {always(wire.EmptyPage), false},
		{"GET", "/rewards/user/total"}:        {always(wire.EmptyList), false},
		{"GET", "/rewards/user/percentages"}:  {always(wire.EmptyObject), false},
		{"GET", "/rewards/user/markets"}:      {always(wire.EmptyPage), false},
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
	for r := range a.routes {
		routes = append(routes, r.method+" "+r.path)
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
	method := wire.Text(ctx.Method())
	if method == fasthttp.MethodHead {
		method = fasthttp.MethodGet
	}
	route, known := a.routes[privateRoute{method, path}]
	if !known {
		a.noRoute(ctx, path)
		return
	}
	c := a.caller(owner, dialect)
	if !route.indexed {
		body, refused := route.serve(ctx, c)
		wire.Respond(ctx, body, refused)
		return
	}
	body, refused := a.read(ctx, c, route.serve)
	wire.Respond(ctx, body, refused)
}

// rereads is how often an answer is made until nothing that the caller wrote came in between. The
// last time, X-Sequence is that of before: the answer may show more.
const rereads = 3

// read answers from the index, with the Sequence that the answer shows.
func (a *Account) read(
	ctx *fasthttp.RequestCtx, c *caller, serve handler,
) (body []byte, refused *wire.Refusal) {
	for range rereads {
		if !a.o.Await(a.last(c)) {
			return nil, errLagging
		}
		seen := a.o.History.Sequence()
		body, refused = serve(ctx, c)
		if refused != nil {
			return nil, refused
		}
		wire.MarkSequence(ctx, seen)
		// The Board tells who wrote last, but the index may be ahead of it.
		ahead := a.o.History.Ahead()
		if ahead == seen || ahead <= a.o.Board.Shown() && a.last(c) <= seen {
			break
		}
		a.o.Await(ahead)
	}
	return body, refused
}

// noRoute refuses a path that has no such method, and names the methods that it has.
func (a *Account) noRoute(ctx *fasthttp.RequestCtx, path string) {
	var names []string
	for _, method := range [...]string{"GET", "POST", "DELETE"} {
		if _, known := a.routes[privateRoute{method, path}]; !known {
			continue
		}
		if names = append(names, method); method == "GET" {
			names = append(names, "HEAD")
		}
	}
	if names == nil {
		wire.NotFound(ctx)
		return
	}
	ctx.Response.Header.Set(fasthttp.HeaderAllow, strings.Join(names, ", "))
	wire.WrongMethod(ctx)
}

func (a *Account) caller(owner engine.Address, dialect wire.Dialect) *caller {
	d := a.o.Board.Directory
	c := &caller{address: owner, dialect: dialect}
	if no, known := d.Wallet(owner); known {
		c.no, c.wallets = no, d.Owned(no, nil)
	}
	return c
}

// last is the last write of c and of its wallets.
func (a *Account) last(c *caller) engine.Sequence {
	d := a.o.Board.Directory
	last := d.LastNamed(c.no)
	for _, w := range c.wallets {
		last = max(last, d.LastNamed(w))
	}
	return last
}
