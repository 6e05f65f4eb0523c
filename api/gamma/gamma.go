package gamma

import (
	"bytes"
	"log/slog"
	"sync"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/pages"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// Options are where the answers come from. All are required.
type Options struct {
	Board   *view.Board
	Catalog func() *catalog.Catalog // the current catalog; it may be nil
	Values  *Values
	Pages   *pages.Cache
	Log     *slog.Logger // of failures
}

// Gamma answers what the catalog says of markets, and what a search finds. Any number of goroutines
// may use a Gamma.
type Gamma struct {
	o          Options
	describers sync.Pool // of *describer
}

// New makes a Gamma.
func New(o Options) *Gamma {
	g := &Gamma{o: o}
	g.describers.New = func() any { return new(describer) }
	return g
}

// Routes are the routes of the catalog, each also under /gamma. Sports, teams, comments and
// clarifications are empty lists. The routes /markets and /markets/{id} also belong to the order
// book and are under /clob as well: kindOf decides which of the two a request means.
func (g *Gamma) Routes() []wire.Route {
	none := wire.Always(wire.EmptyList)
	return []wire.Route{
		{Path: "/markets", Handler: g.anyMarkets},
		{Path: "/markets/{id}", Handler: g.anyMarket},
		{Path: "/markets/slug/{slug}",
			Handler: markets.one(g, "slug", "market", (*describer).oneMarket)},
		{Path: "/markets/{id}/tags", Handler: g.marketTags},
		{Path: "/markets/keyset", Handler: g.catalogMarkets(true)},
		{Path: "/events", Handler: events.list(g, (*describer).listedEvent, false)},
		{Path: "/events/{id}", Handler: events.one(g, "id", "event", (*describer).wholeEvent)},
		{Path: "/events/slug/{slug}", Handler: events.one(g, "slug", "event", (*describer).wholeEvent)},
		{Path: "/events/{id}/tags", Handler: events.one(g, "id", "event tags", (*describer).eventTags)},
		{Path: "/events/pagination", Handler: g.countedEvents},
		{Path: "/events/keyset", Handler: events.list(g, (*describer).wholeEvent, true)},
		{Path: "/series", Handler: g.series},
		{Path: "/series/{id}", Handler: series.one(g, "id", "series", (*describer).wholeSeries)},
		{Path: "/tags", Handler: tags.list(g, (*describer).tag, false)},
		{Path: "/tags/{id}", Handler: tags.one(g, "id", "tag", (*describer).tag)},
		{Path: "/tags/slug/{slug}", Handler: tags.one(g, "slug", "tag", (*describer).tag)},
		{Path: "/public-search", Handler: g.publicSearch},
		{Path: "/tags/{id}/related-tags", Handler: g.relatedTags(true, g.appendRelations)},
		{Path: "/tags/{id}/related-tags/tags", Handler: g.relatedTags(true, g.tagsOf)},
		{Path: "/tags/slug/{slug}/related-tags", Handler: g.relatedTags(false, g.appendRelations)},
		{Path: "/tags/slug/{slug}/related-tags/tags", Handler: g.relatedTags(false, g.tagsOf)},
		{Path: "/status", Handler: status},
		{Path: "/sports", Handler: none},
		{Path: "/sports/market-types", Handler: wire.Always(noMarketTypes)},
		{Path: "/teams", Handler: none},
		{Path: "/comments", Handler: none},
		{Path: "/comments/{id}", Handler: none},
		{Path: "/comments/user_address/{address}", Handler: none},
		{Path: "/market-clarifications", Handler: none},
	}
}

// BookRoutes are the order book's lists of markets, each also under /clob.
func (g *Gamma) BookRoutes() []wire.Route {
	return []wire.Route{
		{Path: "/simplified-markets", Handler: g.bookList("simple", (*describer).simpleEntry, false)},
		{Path: "/sampling-markets", Handler: g.bookList("full", (*describer).fullEntry, true)},
		{Path: "/sampling-simplified-markets",
			Handler: g.bookList("simple", (*describer).simpleEntry, true)},
	}
}

// The refusals that do not name a parameter.
var (
	errNoID = wire.Described.Refuse(fasthttp.StatusNotFound, "not_found", "id not found",
		"nothing of this kind has that id here: the lists and GET /public-search tell ids")
	errNoSlug = wire.Described.Refuse(fasthttp.StatusNotFound, "not_found", "slug not found",
		"nothing of this kind has that slug here: the lists and GET /public-search tell slugs")
	errBadID = wire.Described.Refuse(fasthttp.StatusBadRequest, "invalid_field", "id is invalid",
		"id is a whole number")
	errPlace = wire.Described.Refuse(fasthttp.StatusBadRequest, "invalid_field", "after_cursor is invalid",
		"after_cursor is the next_cursor of a page with the same order")
	errCatalog = wire.Described.Refuse(fasthttp.StatusInternalServerError, "internal", "internal_error",
		"the node failed to read its own records")
)

// kind is the kind of answer that a request of /markets or /markets/{id} wants.
type kind uint8

const (
	either kind = iota // as the rest of the request says
	ofBook
	ofCatalog
)

// kindOf decides by the prefix of the path, else by the name of the host.
func kindOf(ctx *fasthttp.RequestCtx) kind {
	path, host := ctx.Path(), ctx.Host()
	switch {
	case bytes.HasPrefix(path, []byte("/clob/")):
		return ofBook
	case bytes.HasPrefix(path, []byte("/gamma/")):
		return ofCatalog
	case bytes.HasPrefix(host, []byte("clob.")):
		return ofBook
	case bytes.HasPrefix(host, []byte("gamma")):
		return ofCatalog
	}
	return either
}

// anyMarkets answers with a page of the order book's markets if the query has a cursor, even an
// empty one, else with a list of the catalog's.
func (g *Gamma) anyMarkets(ctx *fasthttp.RequestCtx) {
	kind := kindOf(ctx)
	if kind == ofBook || kind == either && ctx.QueryArgs().Has("next_cursor") {
		g.bookList("full", (*describer).fullEntry, false)(ctx)
		return
	}
	g.catalogMarkets(false)(ctx)
}

// catalogMarkets answers with a list of the catalog's markets, with their tags if the query says
// so.
func (g *Gamma) catalogMarkets(keyed bool) fasthttp.RequestHandler {
	plain := markets.list(g, (*describer).listedMarket, keyed)
	tagged := taggedMarkets.list(g, (*describer).taggedMarket, keyed)
	return func(ctx *fasthttp.RequestCtx) {
		w := ask(ctx)
		switch with := w.flag("include_tag"); {
		case w.Refused != nil:
			w.Refused.Send(ctx)
		case with == catalog.Yes:
			tagged(ctx)
		default:
			plain(ctx)
		}
	}
}

// anyMarket answers with a market: by its id in the catalog's shape, by its condition with an
// object that has the members of both shapes.
func (g *Gamma) anyMarket(ctx *fasthttp.RequestCtx) {
	id, c, kind := wire.InPath(ctx, "id"), g.o.Catalog(), kindOf(ctx)
	if condition, is := engine.ParseCondition(id); is {
		g.marketOfCondition(ctx, c, condition, kind)
		return
	}
	m := c.MarketByID(id)
	if kind == ofBook || m == nil ||
		!markets.offers(ctx, c, &catalog.PageQuery{IDs: []string{id}}) {
		errNoID.Send(ctx)
		return
	}
	key := keyOf("market").of(m.No)
	g.write(ctx, c, key, func(d *describer, b []byte) []byte { return d.oneMarket(b, m) })
}

// marketOfCondition answers with the market of a condition, in the shape that the request wants.
func (g *Gamma) marketOfCondition(
	ctx *fasthttp.RequestCtx, c *catalog.Catalog, condition engine.Condition, kind kind,
) {
	l := bookMarket{m: c.Market(condition), listed: g.o.Board.Directory.Condition(condition)}
	args := ctx.QueryArgs()
	scoped := len(args.Peek("creator")) > 0
	if kind == either && (scoped || wire.Text(args.Peek("shape")) == "catalog") {
		kind = ofCatalog
	}
	described := l.m != nil && !l.m.BookOnly
	known := l.hasBook() || kind != ofBook && described
	if kind == ofCatalog && l.m == nil || !known ||
		!markets.offers(ctx, c, &catalog.PageQuery{Conditions: []engine.Condition{condition}}) {
		errNoID.Send(ctx)
		return
	}
	if described && (kind == ofCatalog || !l.hasBook()) {
		key := keyOf("market").of(l.m.No)
		g.write(ctx, c, key, func(d *describer, b []byte) []byte { return d.oneMarket(b, l.m) })
		return
	}
	both := kind == either && described
	key := append(keyOf("condition").with(both), condition[:]...)
	g.write(ctx, c, key, func(d *describer, b []byte) []byte {
		b = append(b, '{')
		if both {
			b = d.marketEvents(d.othersOf(b, l.m), l.m, inShort)
		}
		return wire.CloseObject(d.fullEntry(b, &l))
	})
}

// oneMarket appends a market in the shape of its record.
func (d *describer) oneMarket(b []byte, m *catalog.Market) []byte {
	if m.BookOnly {
		l := bookMarket{m: m, listed: d.g.o.Board.Directory.Condition(m.Condition)}
		return wire.CloseObject(d.fullEntry(append(b, '{'), &l))
	}
	return d.market(b, m, inShort)
}

// marketTags answers with the tags of a market, by its id or its condition.
func (g *Gamma) marketTags(ctx *fasthttp.RequestCtx) {
	id, c := wire.InPath(ctx, "id"), g.o.Catalog()
	m := c.MarketByID(id)
	if condition, is := engine.ParseCondition(id); is {
		m = c.Market(condition)
	}
	if m == nil || !markets.offers(ctx, c, &catalog.PageQuery{IDs: []string{m.ID}}) {
		errNoID.Send(ctx)
		return
	}
	key := keyOf("market tags").of(m.No)
	g.write(ctx, c, key, func(d *describer, b []byte) []byte { return d.tags(b, c.MarketTags(m)) })
}

// status says that the catalog answers, in the text that clients look for.
func status(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBodyString("OK")
}

const maxSeriesEvents = 4 << 20

// series answers with a list of series, whose events share maxSeriesEvents.
func (g *Gamma) series(ctx *fasthttp.RequestCtx) {
	w := ask(ctx)
	q, alone := w.ofSeries(), w.flag("exclude_events")
	if w.Refused != nil {
		w.Refused.Send(ctx)
		return
	}
	c := g.o.Catalog()
	page, _ := c.QuerySeries(q) // only a cursor can be wrong
	most := 0
	if alone != catalog.Yes {
		most = maxSeriesEvents / max(len(page.Rows), 1)
	}
	key := keyOf("series list").with(most == 0)
	for _, s := range page.Rows {
		key = key.of(s.No)
	}
	g.write(ctx, c, key, func(d *describer, b []byte) []byte {
		b = append(b, '[')
		for _, s := range page.Rows {
			b = d.series(b, s, most)
		}
		return append(b, ']')
	})
}
