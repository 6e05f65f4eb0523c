package api

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal"
)

// Options are where the answers come from. All but Log are required.
type Options struct {
	// Board is what is published: books, markets, wallets.
	Board *view.Board
	// History is the read side of the index: what became of orders.
	History *journal.History
	// Catalog is the current catalog: another one at each call, if need be, or nil.
	Catalog func() *catalog.Catalog
	// KeyID is the uuid of the API key of an address with a nonce.
	KeyID func(a engine.Address, nonce uint32) string
	// Checksum writes an address as 0x and 40 hex digits of mixed case.
	Checksum func(engine.Address) string
	// JournalID is the id of the journal behind the Board, part of all trade ids.
	JournalID uint64
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
	} {
		if !need.set {
			problems = append(problems, errors.New("api: Options."+need.name+" is not set"))
		}
	}
	return errors.Join(problems...)
}

// Handler answers every request that only reads. It may be used by any number of goroutines.
type Handler struct {
	o      Options
	public *router.Router
}

// New makes a Handler. The error names everything that is missing in the Options.
func New(o Options) (*Handler, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	h := &Handler{o: o}
	h.public = h.routes()
	return h, nil
}

// routes is the table of the public routes, each also under /clob. They answer HEAD as well as GET;
// fasthttp drops the body.
func (h *Handler) routes() *router.Router {
	r := router.New()
	// A redirect would cost clients that sign the path their signature; a wrong path is not found.
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.NotFound, r.MethodNotAllowed = notFound, wrongMethod
	for _, route := range []struct {
		path    string
		handler fasthttp.RequestHandler
	}{
		{"/book", h.book},
		{"/midpoint", h.midpoint},
		{"/price", h.price},
		{"/tick-size", h.tickSize},
		{"/tick-size/{token}", h.tickSize},
		{"/neg-risk", h.negRisk},
		{"/neg-risk/{token}", h.negRisk},
		{"/fee-rate", h.feeRate},
		{"/fee-rate/{token}", h.feeRate},
	} {
		for _, prefix := range []string{"", "/clob"} {
			r.GET(prefix+route.path, open(route.handler))
			r.HEAD(prefix+route.path, open(route.handler))
		}
	}
	return r
}

// Public answers a request that needs no key.
func (h *Handler) Public(ctx *fasthttp.RequestCtx) { h.public.Handler(ctx) }

// accountOrder is what the path of the one account route holds before the order's id.
const accountOrder = "/data/order/"

// Account answers a GET below /data/ for the owner of an API key, whose request the caller has
// authenticated. dialect is the prefix of its headers: SVC_, POLY_ or KUEST_.
func (h *Handler) Account(ctx *fasthttp.RequestCtx, owner engine.Address, dialect string) {
	path := text(ctx.URI().PathOriginal())
	id, is := strings.CutPrefix(strings.TrimPrefix(path, "/clob"), accountOrder)
	switch {
	case !is || id == "":
		notFound(ctx)
	case !ctx.IsGet() && !ctx.IsHead():
		ctx.Response.Header.Set(fasthttp.HeaderAllow, "GET, HEAD")
		wrongMethod(ctx)
	default:
		h.order(ctx, owner, dialect, id)
	}
}

// Market data is nobody's secret: any web page may read it.
var (
	allowOrigin = []byte(fasthttp.HeaderAccessControlAllowOrigin)
	anyOrigin   = []byte("*")
)

// open lets pages of any origin read the answer, whatever it is.
func open(handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.SetCanonical(allowOrigin, anyOrigin)
		handler(ctx)
	}
}
