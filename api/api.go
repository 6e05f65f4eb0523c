package api

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"clobd/api/account"
	"clobd/api/catalog"
	"clobd/api/console"
	"clobd/api/gamma"
	"clobd/api/pages"
	"clobd/api/wallets"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal/history"
)

// Options are where the answers come from. All are required, unless nil has a meaning here.
type Options struct {
	Board     *view.Board
	History   *history.History
	Catalog   func() *catalog.Catalog // the current catalog, or nil; it may change from call to call
	JournalID uint64                  // of the journal behind the Board, part of all trade ids
	// KeyID is the uuid of the API key of an address with a nonce.
	KeyID func(a engine.Address, nonce uint32) string
	// Checksum writes an address as 0x and 40 hex digits of mixed case.
	Checksum func(engine.Address) string
	// Exchanges are the contracts that orders may be signed for. Each has an unlimited allowance.
	Exchanges []engine.Address
	Values    *gamma.Values     // what markets are worth; nil: made of Board and History
	Profiles  *wallets.Profiles // what the operator says of wallets; nil: nothing
	Console   console.Facts     // what the console is told of the node
	// WalletAllow are the networks that may ask about wallets; empty: all. Client, which
	// WalletAllow needs, is the address of a request's sender.
	WalletAllow []netip.Prefix
	Client      func(*fasthttp.RequestCtx) netip.Addr
	// Confirm returns a Sequence not below that of anything that anybody was told before the call, on
	// whichever node. Nil: nobody is told before the Board shows it.
	Confirm func(context.Context) (engine.Sequence, error)
	// Now is the clock that ends windows of prices and, without Values, of volumes; nil: time.Now.
	Now func() time.Time
	Log *slog.Logger // of failures; nil: slog.Default
}

// validate returns all problems at once.
func (o *Options) validate() error {
	var problems []error
	for _, need := range []struct {
		name string
		set  bool
	}{
		{"Board", o.Board != nil}, {"History", o.History != nil}, {"Catalog", o.Catalog != nil},
		{"KeyID", o.KeyID != nil}, {"Checksum", o.Checksum != nil},
		{"Client", o.Client != nil || len(o.WalletAllow) == 0},
	} {
		if !need.set {
			problems = append(problems, errors.New("api: Options."+need.name+" is not set"))
		}
	}
	return errors.Join(problems...)
}

// awaitIndex is how long an account read waits for the index to see the account's last write.
const awaitIndex = 250 * time.Millisecond

// Handler answers every request that only reads: market data itself, all else through its rooms.
// Any number of goroutines may use a Handler.
type Handler struct {
	o       Options
	public  *router.Router
	pages   *pages.Cache
	account *account.Account
	gamma   *gamma.Gamma
	wallets *wallets.Wallets
	console *console.Console
	known   wire.Parameters // of the order book's family
	waiting atomic.Int64    // requests that wait in Current
	// patience is awaitIndex; tests set longer times.
	patience, currentWait time.Duration
}

// New makes a Handler. The error names everything that is missing in the Options.
func New(o Options) (*Handler, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Confirm == nil {
		o.Confirm = func(context.Context) (engine.Sequence, error) { return o.Board.Sequence(), nil }
	}
	if o.Values == nil {
		o.Values = gamma.NewValues(o.Board, o.History, o.Now)
	}
	h := &Handler{o: o, known: wire.Known(bookParameters), pages: pages.New(),
		patience: awaitIndex, currentWait: currentWait}
	h.account = account.New(account.Options{
		Board: o.Board, History: o.History, Catalog: o.Catalog, KeyID: o.KeyID, Checksum: o.Checksum,
		JournalID: o.JournalID, Exchanges: o.Exchanges, Await: h.await, Now: o.Now, Log: o.Log,
	})
	h.gamma = gamma.New(gamma.Options{
		Board: o.Board, Catalog: o.Catalog, Values: o.Values, Pages: h.pages, Log: o.Log,
	})
	h.wallets = wallets.New(wallets.Options{
		Board: o.Board, History: o.History, Catalog: o.Catalog, Checksum: o.Checksum,
		JournalID: o.JournalID, Price: o.Values.Price, Volume: o.Values.Volume, Profiles: o.Profiles,
		Allow: o.WalletAllow, Client: o.Client, Await: h.await, Now: o.Now, Log: o.Log,
	})
	h.console = console.New(&o.Console, h.pages)
	h.public = h.routes()
	return h, nil
}

func (h *Handler) await(s engine.Sequence) bool { return h.o.History.Await(s, h.patience) }

// routes is the table of the public routes, each also under the prefix of its family. What answers
// GET answers HEAD as well; fasthttp drops the body.
func (h *Handler) routes() *router.Router {
	r := router.New()
	// No redirects: a client that signs the path would need another signature.
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.NotFound, r.MethodNotAllowed, r.GlobalOPTIONS = wire.NotFound, wire.WrongMethod, preflight
	for _, route := range h.posts() {
		for _, prefix := range []string{"", "/clob"} {
			r.POST(prefix+route.Path, h.open(&route, h.known))
		}
	}
	for _, table := range h.tables() {
		for _, route := range table.routes {
			for _, prefix := range append(table.prefixes, alsoUnder(&route)...) {
				known := table.known
				if prefix == "/clob" {
					known = h.known // also of the routes that two families share
				}
				handler := h.open(&route, known)
				r.GET(prefix+route.Path, handler)
				r.HEAD(prefix+route.Path, handler)
			}
		}
	}
	for _, page := range h.console.Pages() {
		r.GET(page.Path, page.Handler)
		r.HEAD(page.Path, page.Handler)
	}
	none := h.open(&wire.Route{Handler: errNoRequests.Send}, nil)
	r.ANY("/rfq/{rest:*}", none)
	r.ANY("/clob/rfq/{rest:*}", none)
	return r
}

// routeTable is routes that answer GET, each of which may stand behind any of the prefixes.
type routeTable struct {
	prefixes []string
	routes   []wire.Route
	known    wire.Parameters // nil: the routes refuse what they do not know
}

func (h *Handler) tables() []routeTable {
	return []routeTable{
		{[]string{"", "/clob"}, slices.Concat(h.reads(), h.account.Routes(), h.gamma.BookRoutes(),
			h.console.Routes()), h.known},
		{[]string{"", "/gamma"}, h.gamma.Routes(), wire.Known(catalogParameters)},
		{[]string{"", "/gamma"}, []wire.Route{h.wallets.ProfileRoute()}, nil},
		{[]string{"", "/data-api"}, h.wallets.Routes(), nil},
	}
}

// alsoUnder is the further prefix of the two routes that catalog and order book share.
func alsoUnder(r *wire.Route) []string {
	if r.Path == "/markets" || r.Path == "/markets/{id}" {
		return []string{"/clob"}
	}
	return nil
}

func (h *Handler) reads() []wire.Route {
	return []wire.Route{
		{Path: "/book", Handler: h.book},
		{Path: "/midpoint", Handler: h.best("mid", midpoint, errOneSided)},
		{Path: "/midpoints", Handler: questions(queried).then(h.bests(midpoint))},
		{Path: "/price", Handler: h.price},
		{Path: "/prices", Handler: questions(queried).then(h.prices)},
		{Path: "/spread", Handler: h.best("spread", spread, errNoSpread)},
		{Path: "/last-trade-price", Handler: h.lastTrade},
		{Path: "/last-trades-prices", Handler: questions(queried).then(h.lastTrades)},
		{Path: "/tick-size", Handler: of(h.market, tickSize)},
		{Path: "/tick-size/{token}", Handler: of(h.market, tickSize)},
		{Path: "/neg-risk", Handler: of(h.market, negRisk)},
		{Path: "/neg-risk/{token}", Handler: of(h.market, negRisk)},
		{Path: "/fee-rate", Handler: h.feeRate},
		{Path: "/fee-rate/{token}", Handler: h.feeRate},
		{Path: "/markets-by-token/{token}", Handler: of(h.market, marketByToken)},
		{Path: "/clob-markets/{condition}", Handler: of(h.condition, h.clobMarket)},
		{Path: "/prices-history", Handler: wire.Answering(h.pricesHistory)},
		{Path: "/live-activity/events/{condition}", Handler: of(h.condition, h.latestTrades)},
		{Path: "/markets/live-activity/{condition}", Handler: of(h.condition, h.latestTrades)},
		{Path: "/rewards/markets/current", Handler: wire.Always(wire.EmptyPage)},
		{Path: "/rewards/markets/{condition}", Handler: of(h.condition, noRewards)},
		{Path: "/rebates/current", Handler: wire.Always(wire.EmptyList)},
		{Path: "/rfq/config", Handler: wire.Always(noQuotes)},
		{Path: "/openapi.json", Handler: h.document("openapi", description)},
		{Path: "/asyncapi.json", Handler: h.document("asyncapi", speech)},
	}
}

// posts are the public routes that answer POST: questions about many tokens at once.
func (h *Handler) posts() []wire.Route {
	return []wire.Route{
		{Path: "/books", Handler: questions(posted).then(h.books)},
		{Path: "/midpoints", Handler: questions(posted).then(h.bests(midpoint))},
		{Path: "/prices", Handler: questions(posted).then(h.prices)},
		{Path: "/spreads", Handler: questions(posted).then(h.bests(spread))},
		{Path: "/last-trades-prices", Handler: questions(posted).then(h.lastTrades)},
		{Path: "/batch-prices-history", Handler: wire.Answering(h.batchHistory)},
	}
}

// Account answers a request of the owner of an API key, whose request the caller has authenticated.
func (h *Handler) Account(ctx *fasthttp.RequestCtx, owner engine.Address, dialect wire.Dialect) {
	h.known.Tell(ctx)
	h.account.Serve(ctx, owner, dialect)
}

// Tell returns how many messages the user channel has for an owner about a Command of a frame, and
// what renders one: see account.Story.
func (h *Handler) Tell(f *engine.Frame, command int, owner engine.WalletNo, d wire.Dialect) (
	n int, message func(i int) (engine.MarketNo, []byte, error)) {
	s := h.account.Tell(f, command, owner, d)
	return s.Len(), s.Message
}

// Public answers a request that needs no key.
func (h *Handler) Public(ctx *fasthttp.RequestCtx) { h.public.Handler(ctx) }

var allowOrigin, anyOrigin = []byte(fasthttp.HeaderAccessControlAllowOrigin), []byte("*")

// preflight tells a browser that pages of any origin may ask. The router has set Allow.
func preflight(ctx *fasthttp.RequestCtx) {
	header := &ctx.Response.Header
	header.SetCanonical(allowOrigin, anyOrigin)
	header.SetBytesV(fasthttp.HeaderAccessControlAllowMethods, header.Peek(fasthttp.HeaderAllow))
	header.Set(fasthttp.HeaderAccessControlAllowHeaders, fasthttp.HeaderContentType)
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}

// plainPaths are those of answers that are never compressed: books change all the time, and those
// who read them want them at once; trades of a builder may be asked for with a key.
var plainPaths = [...]string{"/book", "/books", "/builder/trades"}

// open lets pages of any origin ask, tells them parameters that are not known, if known is not nil,
// and compresses answers to those who want that.
func (h *Handler) open(r *wire.Route, known wire.Parameters) fasthttp.RequestHandler {
	handler, plain := r.Handler, slices.Contains(plainPaths[:], r.Path)
	if known != nil {
		handler = known.Telling(handler)
	}
	return func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.SetCanonical(allowOrigin, anyOrigin)
		if handler(ctx); !plain {
			h.pages.Compress(ctx)
		}
	}
}
