package api

import (
	"net/netip"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// walletRoutes are the public routes about wallets, each also under /data-api. Everybody may ask
// about every wallet, unless the operator names the addresses that may.
func (h *Handler) walletRoutes() []publicRoute {
	return []publicRoute{
		{"/positions", h.welcome(h.positions)},
		{"/closed-positions", h.welcome(h.closedPositions)},
		{"/holders", h.welcome(h.holders)},
		{"/value", h.welcome(h.value)},
		{"/traded", h.welcome(h.tradedMarkets)},
		{"/activity", h.welcome(h.activity)},
		{"/trades", h.welcome(h.publicTrades)},
	}
}

// The errors of these routes that do not name a field.
var (
	errAddress = wire.Wallets.Refuse(fasthttp.StatusUnauthorized, "unauthorized", "ip_not_allowlisted", "")
	errRecords = wire.Wallets.Refuse(fasthttp.StatusInternalServerError, "internal_error",
		"the node failed to read its own records", "")
	errBehind = wire.Wallets.Refuse(fasthttp.StatusServiceUnavailable, "index_lagging",
		"the wallet's latest write is not in the index yet, ask again", "")
)

// welcome lets in whom the operator's list names; an empty one names everybody.
func (h *Handler) welcome(handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	if len(h.o.WalletAllow) == 0 {
		return handler
	}
	return func(ctx *fasthttp.RequestCtx) {
		from := h.o.Client(ctx)
		if !slices.ContainsFunc(h.o.WalletAllow, func(p netip.Prefix) bool {
			return p.Contains(from)
		}) {
			errAddress.Send(ctx)
			return
		}
		handler(ctx)
	}
}

// unread logs why records could not be read and is the answer.
func (h *Handler) unread(what, id string, err error) *wire.Refusal {
	h.o.Log.Error(what, "id", id, "err", err)
	return errRecords
}

// user is the wallet that a request is about.
type user struct {
	address engine.Address
	no      engine.WalletNo // 0: it never had anything
}

// user reads the parameter of that name, which must be there.
func (h *Handler) user(a *asked) (u user) {
	id := a.text("user")
	if id == "" {
		a.missing("user")
		return u
	}
	if !engine.ParseHex(u.address[:], id) {
		a.invalid("user")
		return u
	}
	u.no, _ = h.o.Board.Directory.Wallet(u.address)
	return u
}

// settled waits until the index holds what the wallet was told of, and says whether it does.
func (h *Handler) settled(u user) bool {
	return h.o.History.Await(h.o.Board.Directory.LastNamed(u.no), h.patience)
}

// about is what the catalog says of a market, in the words of these routes. All may be empty.
type about struct {
	title, slug, icon, eventSlug, endDate string
}

// about describes a market.
func (h *Handler) about(m *view.Market) (a about) {
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
