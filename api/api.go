package api

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal/history"
)

// Options are where the answers come from. All but Log are required.
type Options struct {
	// Board is what is published: books, markets, wallets.
	Board *view.Board
	// History is the read side of the index: what became of orders.
	History *history.History
	// Catalog is the current catalog: another one at each call, if need be, or nil.
	Catalog func() *catalog.Catalog
	// KeyID is the uuid of the API key of an address with a nonce.
	KeyID func(a engine.Address, nonce uint32) string
	// Checksum writes an address as 0x and 40 hex digits of mixed case.
	Checksum func(engine.Address) string
	// JournalID is the id of the journal behind the Board, part of all trade ids.
	JournalID uint64
	// Exchanges are the contracts that orders may be signed for: all have an allowance without bounds.
	Exchanges []engine.Address
	// Values are what markets are worth; nil: made of Board and History.
	Values *Values
	// Profiles are what the operator says of wallets; nil: nothing.
	Profiles *Profiles
	// WalletAllow are the networks that may ask about wallets; empty: all. Client, which it needs, is
	// the address that a request comes from.
	WalletAllow []netip.Prefix
	Client      func(*fasthttp.RequestCtx) netip.Addr
	// Now is the clock that ends windows of prices and, without Values, of volumes; nil: time.Now.
	Now func() time.Time
	// Log hears of failures; nil: slog.Default.
	Log *slog.Logger
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

// Handler answers every request that only reads. It may be used by any number of goroutines.
type Handler struct {
	o         Options
	public    *router.Router
	private   map[string]privateRoute
	checksums checksums
	holdings  sync.Pool // of *[]holding: a page of a wallet may be cut out of megabytes
	values    *Values
	// patience is how long a read waits for the index: awaitIndex, but where a test gives it longer.
	patience  time.Duration
	interests sync.Map // engine.MarketNo → interest, of markets with many holders
	// describers are those that nobody uses now.
	describers sync.Pool
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
	if o.Values == nil {
		o.Values = NewValues(o.Board, o.History)
		o.Values.now = o.Now
	}
	h := &Handler{o: o, values: o.Values, patience: awaitIndex}
	h.describers.New = func() any { return new(describer) }
	h.holdings.New = func() any { return new([]holding) }
	h.public = h.routes()
	h.private = h.privateRoutes()
	return h, nil
}

// routes is the table of the public routes, each also under the prefix of its family. What answers
// GET answers HEAD as well; fasthttp drops the body.
func (h *Handler) routes() *router.Router {
	r := router.New()
	// A redirect would cost clients that sign the path their signature; a wrong path is not found.
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.NotFound, r.MethodNotAllowed, r.GlobalOPTIONS = notFound, wrongMethod, preflight
	for _, route := range h.reads() {
		for _, prefix := range []string{"", "/clob"} {
			r.GET(prefix+route.path, open(route.handler))
			r.HEAD(prefix+route.path, open(route.handler))
		}
	}
	for _, route := range h.posts() {
		for _, prefix := range []string{"", "/clob"} {
			r.POST(prefix+route.path, open(route.handler))
		}
	}
	for _, route := range slices.Concat(h.catalogRoutes(), h.besideCatalog()) {
		for _, prefix := range route.prefixes() {
			r.GET(prefix+route.path, open(route.handler))
			r.HEAD(prefix+route.path, open(route.handler))
		}
	}
	for _, route := range slices.Concat(h.walletRoutes(), h.marketDataRoutes()) {
		for _, prefix := range []string{"", "/data-api"} {
			r.GET(prefix+route.path, open(route.handler))
			r.HEAD(prefix+route.path, open(route.handler))
		}
	}
	r.ANY("/rfq/{rest:*}", open(noRequests))
	r.ANY("/clob/rfq/{rest:*}", open(noRequests))
	return r
}

// publicRoute is one row of the tables below.
type publicRoute struct {
	path    string
	handler fasthttp.RequestHandler
}

// reads are the public routes that answer GET.
func (h *Handler) reads() []publicRoute {
	return []publicRoute{
		{"/book", h.book},
		{"/midpoint", h.midpoint},
		{"/midpoints", h.queried(h.midpoints)},
		{"/price", h.price},
		{"/prices", h.queried(h.prices)},
		{"/spread", h.spread},
		{"/last-trade-price", h.lastTrade},
		{"/last-trades-prices", h.queried(h.lastTrades)},
		{"/tick-size", h.tickSize},
		{"/tick-size/{token}", h.tickSize},
		{"/neg-risk", h.negRisk},
		{"/neg-risk/{token}", h.negRisk},
		{"/fee-rate", h.feeRate},
		{"/fee-rate/{token}", h.feeRate},
		{"/markets-by-token/{token}", h.marketByToken},
		{"/clob-markets/{condition}", h.clobMarket},
		{"/simplified-markets", h.bookList((*describer).simpleEntry, false)},
		{"/sampling-markets", h.bookList((*describer).fullEntry, true)},
		{"/sampling-simplified-markets", h.bookList((*describer).simpleEntry, true)},
		{"/prices-history", h.pricesHistory},
		{"/live-activity/events/{condition}", h.tape},
		{"/markets/live-activity/{condition}", h.tape},
		{"/fees/builder-fees/{code}", h.builderFees},
		{"/builder/trades", h.builderTrades},
		{"/rewards/markets/current", always(emptyPage)},
		{"/rewards/markets/{condition}", h.noRewards},
		{"/rebates/current", always(emptyList)},
		{"/rfq/config", always(noQuotes)},
		{"/openapi.json", h.describeRoutes},
	}
}

// posts are the public routes that answer POST: questions about many tokens at once.
func (h *Handler) posts() []publicRoute {
	return []publicRoute{
		{"/books", h.posted(h.books)},
		{"/midpoints", h.posted(h.midpoints)},
		{"/prices", h.posted(h.prices)},
		{"/spreads", h.posted(h.spreads)},
		{"/last-trades-prices", h.posted(h.lastTrades)},
		{"/batch-prices-history", h.batchHistory},
	}
}

// Public answers a request that needs no key.
func (h *Handler) Public(ctx *fasthttp.RequestCtx) { h.public.Handler(ctx) }

// Market data is nobody's secret: any web page may read it.
var (
	allowOrigin = []byte(fasthttp.HeaderAccessControlAllowOrigin)
	anyOrigin   = []byte("*")
)

// preflight tells a browser that pages of any origin may ask. The router has set Allow.
func preflight(ctx *fasthttp.RequestCtx) {
	header := &ctx.Response.Header
	header.SetCanonical(allowOrigin, anyOrigin)
	header.SetBytesV(fasthttp.HeaderAccessControlAllowMethods, header.Peek(fasthttp.HeaderAllow))
	header.Set(fasthttp.HeaderAccessControlAllowHeaders, fasthttp.HeaderContentType)
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}

// open lets pages of any origin read the answer, whatever it is.
func open(handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.SetCanonical(allowOrigin, anyOrigin)
		handler(ctx)
	}
}
