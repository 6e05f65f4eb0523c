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
	Board     *view.Board
	History   *history.History
	Catalog   func() *catalog.Catalog // the current catalog; it may be nil
	JournalID uint64                  // of the journal behind the Board, part of all receipts
	// Checksum writes an address as 0x and 40 hex digits of mixed case.
	Checksum func(engine.Address) string
	// Price is what outcome 0 of a market is worth, in 1/100,000; 0 before the resolution says that
	// nobody knows. Volume is what takers paid in the market so far, in base units.
	Price    func(*view.Market) int64
	Volume   func(*view.Market) (int64, error)
	Profiles *Profiles // nil: nothing is known of wallets
	// Allow are the networks that may ask; empty: all. Client, which Allow needs, is the address of
	// a request's sender.
	Allow  []netip.Prefix
	Client func(*fasthttp.RequestCtx) netip.Addr
	// Await waits until the index holds a Sequence and reports whether it does.
	Await func(engine.Sequence) bool
	Now   func() time.Time // the clock that ages the cached open interest
	Log   *slog.Logger     // of failures
}

// Wallets answers what anybody may ask about wallets. Any number of goroutines may use a Wallets.
type Wallets struct {
	o         Options
	checksums checksums
	holdings  sync.Pool // of *[]holding: the positions of one wallet may take megabytes
	kept      sync.Map  // engine.MarketNo → owedBefore, of markets with many holders
}

// New makes a Wallets.
func New(o Options) *Wallets {
	ws := &Wallets{o: o}
	ws.holdings.New = func() any { return new([]holding) }
	return ws
}

// Routes are the public routes about wallets, each also under /data-api. Leaderboards and combos
// are empty lists: the node ranks no wallets and trades single markets only.
func (ws *Wallets) Routes() []wire.Route {
	empty := wire.Always(wire.EmptyList)
	routes := []wire.Route{
		{Path: "/positions", Handler: wire.Answering(ws.positions)},
		{Path: "/closed-positions", Handler: wire.Answering(ws.closedPositions)},
		{Path: "/holders", Handler: wire.Answering(ws.holders)},
		{Path: "/value", Handler: wire.Answering(ws.value)},
		{Path: "/traded", Handler: wire.Answering(ws.tradedMarkets)},
		{Path: "/activity", Handler: wire.Answering(ws.activity)},
		{Path: "/trades", Handler: wire.Answering(ws.publicTrades)},
		{Path: "/oi", Handler: wire.Answering(ws.openInterest)},
		{Path: "/live-volume", Handler: wire.Answering(ws.liveVolume)},
		{Path: "/v1/market-positions", Handler: wire.Answering(ws.marketPositions)},
		{Path: "/v1/leaderboard", Handler: empty},
		{Path: "/v1/builders/leaderboard", Handler: empty},
		{Path: "/v1/builders/volume", Handler: empty},
		{Path: "/v1/positions/combos", Handler: wire.Always(noCombos)},
		{Path: "/v1/activity/combos", Handler: wire.Always(noComboMoves)},
	}
	for i := range routes {
		routes[i].Handler = ws.welcome(routes[i].Handler)
	}
	return routes
}

// ProfileRoute is the route about wallets that belongs to the catalog's clients, also under /gamma.
func (ws *Wallets) ProfileRoute() wire.Route {
	return wire.Route{Path: "/public-profile", Handler: ws.welcome(wire.Answering(ws.publicProfile))}
}

// The refusals that do not name a parameter.
var (
	errAddress = wire.Wallets.Refuse(fasthttp.StatusUnauthorized, "unauthorized", "ip_not_allowlisted", "")
	errRecords = wire.Wallets.Refuse(fasthttp.StatusInternalServerError, "internal_error",
		"the node failed to read its own records", "")
	errBehind = wire.Wallets.Refuse(fasthttp.StatusServiceUnavailable, "index_lagging",
		"the wallet's latest write is not in the index yet, ask again", "")
)

// welcome refuses clients outside Options.Allow; an empty list lets everybody in.
func (ws *Wallets) welcome(handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	if len(ws.o.Allow) == 0 {
		return handler
	}
	return func(ctx *fasthttp.RequestCtx) {
		from := ws.o.Client(ctx)
		if !slices.ContainsFunc(ws.o.Allow, func(p netip.Prefix) bool { return p.Contains(from) }) {
			errAddress.Send(ctx)
			return
		}
		handler(ctx)
	}
}

func (ws *Wallets) unread(what, id string, err error) *wire.Refusal {
	ws.o.Log.Error(what, "id", id, "err", err)
	return errRecords
}

type user struct {
	address engine.Address
	no      engine.WalletNo // 0: the wallet never had money or tokens
}

// user reads the parameter user, which must be there.
func (ws *Wallets) user(q *query) (u user) {
	id := q.Text("user")
	if id == "" {
		q.Missing("user")
		return u
	}
	if !engine.ParseHex(u.address[:], id) {
		q.Invalid("user", "")
		return u
	}
	u.no, _ = ws.o.Board.Directory.Wallet(u.address)
	return u
}

// settled reports whether the index holds, after a wait, the wallet's last acknowledged write.
func (ws *Wallets) settled(u user) bool {
	return ws.o.Await(ws.o.Board.Directory.LastNamed(u.no))
}

// about is what the catalog says of a market. All fields may be empty.
type about struct {
	title, slug, icon, eventSlug, endDate string
}

func (ws *Wallets) about(m *view.Market) (a about) {
	c := ws.o.Catalog()
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

func appendAbout(b []byte, a *about) []byte {
	b = wire.AppendField(b, "title", a.title)
	b = wire.AppendField(b, "slug", a.slug)
	b = wire.AppendField(b, "icon", a.icon)
	return wire.AppendField(b, "eventSlug", a.eventSlug)
}

// appendAssetField appends a key and a token as these routes name it: condition, colon, outcome.
func appendAssetField(b []byte, key string, c *engine.Condition, o engine.Outcome) []byte {
	b = engine.AppendHex(append(wire.AppendKey(b, key), '"'), c[:])
	return append(b, ':', '0'+byte(o), '"')
}
