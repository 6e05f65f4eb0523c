package wallets

import (
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal/history"
)

// Options are where the answers come from. All but Profiles, Allow and Client are required.
type Options struct {
	// Board is what is published: books, markets, wallets.
	Board *view.Board
	// History is the read side of the index: positions, holders, trades.
	History *history.History
	// Catalog is the current catalog; it may be nil.
	Catalog func() *catalog.Catalog
	// Checksum writes an address as 0x and 40 hex digits of mixed case.
	Checksum func(engine.Address) string
	// JournalID is the id of the journal behind the Board, part of all receipts.
	JournalID uint64
	// Price is what outcome 0 of a market is worth, in 1/100,000; Volume what takers paid there so
	// far, in base units.
	Price  func(*view.Market) int64
	Volume func(*view.Market) (int64, error)
	// Profiles are what the operator says of wallets; nil: nothing.
	Profiles *Profiles
	// Allow are the networks that may ask; empty: all. Client, which Allow needs, is the address that
	// a request comes from.
	Allow  []netip.Prefix
	Client func(*fasthttp.RequestCtx) netip.Addr
	// Await waits until the index holds a Sequence and reports whether it does.
	Await func(engine.Sequence) bool
	// Now is the clock that a sum over holders is kept by.
	Now func() time.Time
	// Log hears of failures.
	Log *slog.Logger
}

// Wallets answers what anybody may ask about wallets. Any number of goroutines may use a Wallets.
type Wallets struct {
	o         Options
	checksums checksums
	holdings  sync.Pool // of *[]holding: a page of a wallet may be cut out of megabytes
	kept      sync.Map  // engine.MarketNo → owedBefore, of markets with many holders
}

// New makes a Wallets.
func New(o Options) *Wallets {
	h := &Wallets{o: o}
	h.holdings.New = func() any { return new([]holding) }
	return h
}

// Routes are the public routes about wallets, each also under /data-api. Everybody may ask about
// every wallet, unless the operator names the addresses that may. Nobody is ranked here, and
// nothing is traded but single markets: those lists are empty.
func (h *Wallets) Routes() []wire.Route {
	empty := wire.Always(wire.EmptyList)
	routes := []wire.Route{
		{Path: "/positions", Handler: h.positions},
		{Path: "/closed-positions", Handler: h.closedPositions},
		{Path: "/holders", Handler: h.holders},
		{Path: "/value", Handler: h.value},
		{Path: "/traded", Handler: h.tradedMarkets},
		{Path: "/activity", Handler: h.activity},
		{Path: "/trades", Handler: h.publicTrades},
		{Path: "/oi", Handler: h.openInterest},
		{Path: "/live-volume", Handler: h.liveVolume},
		{Path: "/v1/market-positions", Handler: h.marketPositions},
		{Path: "/v1/leaderboard", Handler: empty},
		{Path: "/v1/builders/leaderboard", Handler: empty},
		{Path: "/v1/builders/volume", Handler: empty},
		{Path: "/v1/positions/combos", Handler: wire.Always(noCombos)},
		{Path: "/v1/activity/combos", Handler: wire.Always(noComboMoves)},
	}
	for i := range routes {
		routes[i].Handler = h.welcome(routes[i].Handler)
	}
	return routes
}

// ProfileRoute is the one route about wallets that clients of the catalog ask for: it is also under
// /gamma.
func (h *Wallets) ProfileRoute() wire.Route {
	return wire.Route{Path: "/public-profile", Handler: h.welcome(h.publicProfile)}
}

// The errors of these routes that do not name a field.
var (
	errAddress = wire.Wallets.Refuse(fasthttp.StatusUnauthorized, "unauthorized", "ip_not_allowlisted", "")
	errRecords = wire.Wallets.Refuse(fasthttp.StatusInternalServerError, "internal_error",
		"the node failed to read its own records", "")
	errBehind = wire.Wallets.Refuse(fasthttp.StatusServiceUnavailable, "index_lagging",
		"the wallet's latest write is not in the index yet, ask again", "")
)

// welcome refuses clients outside Options.Allow; an empty list lets everybody in.
func (h *Wallets) welcome(handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	if len(h.o.Allow) == 0 {
		return handler
	}
	return func(ctx *fasthttp.RequestCtx) {
		from := h.o.Client(ctx)
		if !slices.ContainsFunc(h.o.Allow, func(p netip.Prefix) bool {
			return p.Contains(from)
		}) {
			errAddress.Send(ctx)
			return
		}
		handler(ctx)
	}
}

// unread logs why records could not be read and is the answer.
func (h *Wallets) unread(what, id string, err error) *wire.Refusal {
	h.o.Log.Error(what, "id", id, "err", err)
	return errRecords
}

// user is the wallet that a request is about.
type user struct {
	address engine.Address
	no      engine.WalletNo // 0: it never had anything
}

// user reads the parameter of that name, which must be there.
func (h *Wallets) user(a *query) (u user) {
	id := a.Text("user")
	if id == "" {
		a.Missing("user")
		return u
	}
	if !engine.ParseHex(u.address[:], id) {
		a.Invalid("user", "")
		return u
	}
	u.no, _ = h.o.Board.Directory.Wallet(u.address)
	return u
}

// settled waits until the index holds what the wallet was told of, and says whether it does.
func (h *Wallets) settled(u user) bool {
	return h.o.Await(h.o.Board.Directory.LastNamed(u.no))
}

// about is what the catalog says of a market, in the words of these routes. All may be empty.
type about struct {
	title, slug, icon, eventSlug, endDate string
}

// about describes a market.
func (h *Wallets) about(m *view.Market) (a about) {
	c := h.o.Catalog()
	described := c.Market(m.Condition)
	if described == nil {
		return a
	}
	a.title, a.slug, a.icon = described.Question, described.Slug, described.Icon
	if event := c.EventOf(described); event != nil {
		a.eventSlug = event.Slug
	}
	if described.End != 0 {
		a.endDate = time.UnixMilli(described.End).UTC().Format(time.RFC3339)
	}
	return a
}

// appendAbout appends what is said of a market, but for its end.
func appendAbout(b []byte, a *about) []byte {
	b = wire.AppendField(b, "title", a.title)
	b = wire.AppendField(b, "slug", a.slug)
	b = wire.AppendField(b, "icon", a.icon)
	return wire.AppendField(b, "eventSlug", a.eventSlug)
}

// appendAssetField appends a key and the name that these routes have for a token: its condition, a
// colon and the outcome.
func appendAssetField(b []byte, key string, c *engine.Condition, o engine.Outcome) []byte {
	b = engine.AppendHex(append(wire.AppendKey(b, key), '"'), c[:])
	return append(b, ':', '0'+byte(o), '"')
}
