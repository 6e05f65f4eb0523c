package gamma

import (
	"bytes"
	"hash/crc32"
	"log/slog"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// Options are where the answers come from. All are required.
type Options struct {
	// Board is what is published: books and markets.
	Board *view.Board
	// Catalog is the current catalog; it may be nil.
	Catalog func() *catalog.Catalog
	// Values are what markets are worth.
	Values *Values
	// Log hears of failures.
	Log *slog.Logger
}

// Gamma answers what the catalog says of markets, and what a search finds. Any number of goroutines
// may use a Gamma.
type Gamma struct {
	o Options
	// describers are those that nobody uses now.
	describers sync.Pool
}

// New makes a Gamma.
func New(o Options) *Gamma {
	h := &Gamma{o: o}
	h.describers.New = func() any { return new(describer) }
	return h
}

// Routes are the routes of the catalog, each also under /gamma, and of what its clients ask for
// beside it: which tags go together, and sports, teams, comments and clarifications, of which there
// are none here. Two of them, /markets and /markets/{id}, are also routes of the order book and
// under /clob: kindOf says which one is meant.
func (h *Gamma) Routes() []wire.Route {
	none := wire.Always(wire.EmptyList)
	return []wire.Route{
		{Path: "/markets", Handler: h.anyMarkets},
		{Path: "/markets/{id}", Handler: h.anyMarket},
		{Path: "/markets/slug/{slug}", Handler: h.marketBySlug},
		{Path: "/markets/{id}/tags", Handler: h.marketTags},
		{Path: "/markets/keyset", Handler: h.marketsKeyset},
		{Path: "/events", Handler: h.events},
		{Path: "/events/{id}", Handler: h.eventByID},
		{Path: "/events/slug/{slug}", Handler: h.eventBySlug},
		{Path: "/events/{id}/tags", Handler: h.eventTags},
		{Path: "/events/keyset", Handler: h.eventsKeyset},
		{Path: "/series", Handler: h.series},
		{Path: "/series/{id}", Handler: h.seriesByID},
		{Path: "/tags", Handler: h.tags},
		{Path: "/tags/{id}", Handler: h.tagByID},
		{Path: "/tags/slug/{slug}", Handler: h.tagBySlug},
		{Path: "/public-search", Handler: h.publicSearch},
		{Path: "/tags/{id}/related-tags", Handler: h.relatedTags(true, h.appendRelations)},
		{Path: "/tags/{id}/related-tags/tags", Handler: h.relatedTags(true, h.tagsOf)},
		{Path: "/tags/slug/{slug}/related-tags", Handler: h.relatedTags(false, h.appendRelations)},
		{Path: "/tags/slug/{slug}/related-tags/tags", Handler: h.relatedTags(false, h.tagsOf)},
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
func (h *Gamma) BookRoutes() []wire.Route {
	return []wire.Route{
		{Path: "/simplified-markets", Handler: h.bookList((*describer).simpleEntry, false)},
		{Path: "/sampling-markets", Handler: h.bookList((*describer).fullEntry, true)},
		{Path: "/sampling-simplified-markets", Handler: h.bookList((*describer).simpleEntry, true)},
	}
}

// The complaints of these routes that do not name a parameter.
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

// kind of answer that /markets and /markets/{id} may have.
type kind uint8

const (
	either kind = iota // as the rest of the request says
	ofBook
	ofCatalog
)

// kindOf is what the path's prefix says, else the host's name.
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

// anyMarkets answers GET /markets: a page of the order book's markets if there is a cursor, even an
// empty one, else a list of the catalog's.
func (h *Gamma) anyMarkets(ctx *fasthttp.RequestCtx) {
	kind := kindOf(ctx)
	if kind == ofBook || kind == either && ctx.QueryArgs().Has("next_cursor") {
		h.bookMarkets(ctx)
		return
	}
	w := ask(ctx)
	q := w.ofMarkets()
	if w.Refused != nil {
		w.Refused.Send(ctx)
		return
	}
	c := h.o.Catalog()
	page, _ := c.QueryMarkets(q) // without a cursor there is no error
	h.write(ctx, c, func(d *describer, b []byte) []byte {
		b = append(b, '[')
		for _, m := range page.Rows {
			b = d.market(b, m, inName)
		}
		return append(b, ']')
	})
}

// write answers what a describer appends.
func (h *Gamma) write(
	ctx *fasthttp.RequestCtx, c *catalog.Catalog, what func(*describer, []byte) []byte,
) {
	h.writeOr(errCatalog, ctx, c, what)
}

// writeOr is write with another complaint if records cannot be read.
func (h *Gamma) writeOr(
	failed *wire.Refusal, ctx *fasthttp.RequestCtx, c *catalog.Catalog,
	what func(*describer, []byte) []byte,
) {
	d := h.describer(c)
	defer d.done()
	b := what(d, ctx.Response.SwapBody(nil)[:0])
	if d.err != nil {
		h.o.Log.Error("read the catalog", "path", string(ctx.Path()), "err", d.err)
		failed.Send(ctx)
		return
	}
	ctx.SetContentType(wire.JSON)
	tag := appendEntityTag(make([]byte, 0, 64), b)
	ctx.Response.Header.SetBytesV(fasthttp.HeaderETag, tag)
	known := ctx.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)
	if bytes.Contains(known, tag) || string(bytes.TrimSpace(known)) == "*" {
		ctx.Response.SwapBody(b[:0])
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	ctx.Response.SwapBody(b)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendEntityTag appends the entity tag of a body: its length and two checksums. Somebody who
// makes two bodies with one tag harms only himself.
func appendEntityTag(b, body []byte) []byte {
	b = strconv.AppendInt(append(b, '"'), int64(len(body)), 36)
	b = strconv.AppendUint(append(b, '-'), uint64(crc32.Checksum(body, castagnoli)), 36)
	b = strconv.AppendUint(append(b, '-'), uint64(crc32.ChecksumIEEE(body)), 36)
	return append(b, '"')
}

// anyMarket answers GET /markets/{id} by a catalog's id, in the catalog's shape, or by a condition:
// then with an object that has the members of both shapes.
func (h *Gamma) anyMarket(ctx *fasthttp.RequestCtx) {
	id, c, kind := wire.InPath(ctx, "id"), h.o.Catalog(), kindOf(ctx)
	condition, is := engine.ParseCondition(id)
	if !is {
		m := c.MarketByID(id)
		if kind == ofBook || m == nil || !offers(c, ctx, func(q *catalog.PageQuery) int {
			q.IDs = []string{id}
			page, _ := c.QueryMarkets(q)
			return len(page.Rows)
		}) {
			errNoID.Send(ctx)
			return
		}
		h.oneMarket(ctx, c, m)
		return
	}
	h.marketOfCondition(ctx, c, condition, kind)
}

// offers reports whether a row belongs to the creator that the request names. count asks the
// catalog for a list of that one row.
func offers(c *catalog.Catalog, ctx *fasthttp.RequestCtx, count func(*catalog.PageQuery) int) bool {
	creator := ctx.QueryArgs().Peek("creator")
	return len(creator) == 0 ||
		c != nil && count(&catalog.PageQuery{Creator: string(creator), Limit: 1}) > 0
}

// marketOfCondition answers with what is known of a condition.
func (h *Gamma) marketOfCondition(
	ctx *fasthttp.RequestCtx, c *catalog.Catalog, condition engine.Condition, kind kind,
) {
	l := bookMarket{m: c.Market(condition), listed: h.o.Board.Directory.Condition(condition)}
	args := ctx.QueryArgs()
	scoped := len(args.Peek("creator")) > 0
	if kind == either && (scoped || wire.Text(args.Peek("shape")) == "catalog") {
		kind = ofCatalog
	}
	described := l.m != nil && !l.m.BookOnly
	known := l.hasBook() || kind != ofBook && described
	if kind == ofCatalog && l.m == nil || !known ||
		!offers(c, ctx, func(q *catalog.PageQuery) int {
			q.Conditions = []engine.Condition{condition}
			page, _ := c.QueryMarkets(q)
			return len(page.Rows)
		}) {
		errNoID.Send(ctx)
		return
	}
	if described && (kind == ofCatalog || !l.hasBook()) {
		h.oneMarket(ctx, c, l.m)
		return
	}
	h.write(ctx, c, func(d *describer, b []byte) []byte {
		b = append(b, '{')
		if kind == either && described {
			b = d.marketEvents(d.othersOf(b, l.m), l.m, inShort)
		}
		return wire.CloseObject(d.fullEntry(b, &l))
	})
}

// oneMarket answers with a market in the shape that its records are in.
func (h *Gamma) oneMarket(ctx *fasthttp.RequestCtx, c *catalog.Catalog, m *catalog.Market) {
	h.write(ctx, c, func(d *describer, b []byte) []byte {
		if m.BookOnly {
			l := bookMarket{m: m, listed: h.o.Board.Directory.Condition(m.Condition)}
			return wire.CloseObject(d.fullEntry(append(b, '{'), &l))
		}
		return d.market(b, m, inShort)
	})
}

// marketBySlug answers GET /markets/slug/{slug}.
func (h *Gamma) marketBySlug(ctx *fasthttp.RequestCtx) {
	slug, c := wire.InPath(ctx, "slug"), h.o.Catalog()
	m := c.MarketBySlug(slug)
	if m == nil || !offers(c, ctx, func(q *catalog.PageQuery) int {
		q.Slugs = []string{slug}
		page, _ := c.QueryMarkets(q)
		return len(page.Rows)
	}) {
		errNoSlug.Send(ctx)
		return
	}
	h.oneMarket(ctx, c, m)
}

// marketTags answers GET /markets/{id}/tags, by a catalog's id or by a condition.
func (h *Gamma) marketTags(ctx *fasthttp.RequestCtx) {
	id, c := wire.InPath(ctx, "id"), h.o.Catalog()
	m := c.MarketByID(id)
	if condition, is := engine.ParseCondition(id); is {
		m = c.Market(condition)
	}
	if m == nil || !offers(c, ctx, func(q *catalog.PageQuery) int {
		q.IDs = []string{m.ID}
		page, _ := c.QueryMarkets(q)
		return len(page.Rows)
	}) {
		errNoID.Send(ctx)
		return
	}
	h.tagList(ctx, c, c.MarketTags(m))
}

func (h *Gamma) tagList(ctx *fasthttp.RequestCtx, c *catalog.Catalog, tags []*catalog.Tag) {
	h.write(ctx, c, func(d *describer, b []byte) []byte {
		b = append(b, '[')
		for _, t := range tags {
			b = d.tag(b, t)
		}
		return append(b, ']')
	})
}

// events answers GET /events.
func (h *Gamma) events(ctx *fasthttp.RequestCtx) {
	w := ask(ctx)
	q := w.ofEvents()
	if w.Refused != nil {
		w.Refused.Send(ctx)
		return
	}
	c := h.o.Catalog()
	page, _ := c.QueryEvents(q) // without a cursor there is no error
	h.write(ctx, c, func(d *describer, b []byte) []byte {
		b = append(b, '[')
		for _, e := range page.Rows {
			b = d.event(b, e, inList)
		}
		return append(b, ']')
	})
}

// event answers with one event, or says what the path lacks.
func (h *Gamma) event(ctx *fasthttp.RequestCtx, e *catalog.Event, none *wire.Refusal) {
	c := h.o.Catalog()
	if e == nil || !offers(c, ctx, func(q *catalog.PageQuery) int {
		q.IDs = []string{e.ID}
		page, _ := c.QueryEvents(q)
		return len(page.Rows)
	}) {
		none.Send(ctx)
		return
	}
	h.write(ctx, c, func(d *describer, b []byte) []byte { return d.event(b, e, inFull) })
}

// absent is the complaint about an id that nothing has.
func absent(id string) *wire.Refusal {
	if !wire.IsNumber(id) {
		return errBadID
	}
	return errNoID
}

// eventByID answers GET /events/{id}.
func (h *Gamma) eventByID(ctx *fasthttp.RequestCtx) {
	id := wire.InPath(ctx, "id")
	h.event(ctx, h.o.Catalog().EventByID(id), absent(id))
}

// eventBySlug answers GET /events/slug/{slug}.
func (h *Gamma) eventBySlug(ctx *fasthttp.RequestCtx) {
	h.event(ctx, h.o.Catalog().EventBySlug(wire.InPath(ctx, "slug")), errNoSlug)
}

// eventTags answers GET /events/{id}/tags.
func (h *Gamma) eventTags(ctx *fasthttp.RequestCtx) {
	id, c := wire.InPath(ctx, "id"), h.o.Catalog()
	e := c.EventByID(id)
	if e == nil || !offers(c, ctx, func(q *catalog.PageQuery) int {
		q.IDs = []string{id}
		page, _ := c.QueryEvents(q)
		return len(page.Rows)
	}) {
		absent(id).Send(ctx)
		return
	}
	h.tagList(ctx, c, c.TagsOf(e))
}

// maxSeriesEvents is how many bytes of events the series of one answer have in all.
const maxSeriesEvents = 4 << 20

// series answers GET /series.
func (h *Gamma) series(ctx *fasthttp.RequestCtx) {
	w := ask(ctx)
	q, alone := w.ofSeries(), w.flag("exclude_events")
	if w.Refused != nil {
		w.Refused.Send(ctx)
		return
	}
	c := h.o.Catalog()
	page, _ := c.QuerySeries(q) // without a cursor there is no error
	most := 0
	if alone != catalog.Yes {
		most = maxSeriesEvents / max(len(page.Rows), 1)
	}
	h.write(ctx, c, func(d *describer, b []byte) []byte {
		b = append(b, '[')
		for _, s := range page.Rows {
			b = d.series(b, s, most)
		}
		return append(b, ']')
	})
}

// seriesByID answers GET /series/{id}.
func (h *Gamma) seriesByID(ctx *fasthttp.RequestCtx) {
	id, c := wire.InPath(ctx, "id"), h.o.Catalog()
	s := c.SeriesByID(id)
	if s == nil || !offers(c, ctx, func(q *catalog.PageQuery) int {
		q.IDs = []string{id}
		page, _ := c.QuerySeries(q)
		return len(page.Rows)
	}) {
		absent(id).Send(ctx)
		return
	}
	h.write(ctx, c, func(d *describer, b []byte) []byte { return d.series(b, s, maxSeriesEvents) })
}

// tags answers GET /tags.
func (h *Gamma) tags(ctx *fasthttp.RequestCtx) {
	w := ask(ctx)
	q := w.list()
	if w.Refused != nil {
		w.Refused.Send(ctx)
		return
	}
	c := h.o.Catalog()
	page, _ := c.QueryTags(q) // without a cursor there is no error
	h.tagList(ctx, c, page.Rows)
}

// tag answers with one tag, or says what the path lacks.
func (h *Gamma) tag(ctx *fasthttp.RequestCtx, t *catalog.Tag, none *wire.Refusal) {
	c := h.o.Catalog()
	if t == nil || !offers(c, ctx, func(q *catalog.PageQuery) int {
		q.IDs = []string{t.ID}
		page, _ := c.QueryTags(q)
		return len(page.Rows)
	}) {
		none.Send(ctx)
		return
	}
	h.write(ctx, c, func(d *describer, b []byte) []byte { return d.tag(b, t) })
}

// tagByID answers GET /tags/{id}.
func (h *Gamma) tagByID(ctx *fasthttp.RequestCtx) {
	id := wire.InPath(ctx, "id")
	h.tag(ctx, h.o.Catalog().TagByID(id), absent(id))
}

// tagBySlug answers GET /tags/slug/{slug}.
func (h *Gamma) tagBySlug(ctx *fasthttp.RequestCtx) {
	h.tag(ctx, h.o.Catalog().TagBySlug(wire.InPath(ctx, "slug")), errNoSlug)
}

// maxKeyset is how long a page of a list with cursors gets: a page with fewer rows than asked for
// goes on like any other.
const maxKeyset = 4 << 20

// keyset is a list that goes on from a cursor.
type keyset struct {
	name string
	q    *catalog.PageQuery
	// page is a page and how many rows it has; row appends one of them.
	page func() (rows int, next string, err error)
	row  func(d *describer, b []byte, i int) []byte
}

// answer answers a page, which may be shorter than asked for.
func (k *keyset) answer(h *Gamma, ctx *fasthttp.RequestCtx, c *catalog.Catalog) {
	rows, next, err := k.page()
	if err != nil {
		errPlace.Send(ctx)
		return
	}
	h.write(ctx, c, func(d *describer, b []byte) []byte {
		b = append(wire.AppendKey(append(b, '{'), k.name), '[')
		for i := range rows {
			if b = k.row(d, b, i); len(b) > maxKeyset && i+1 < rows {
				k.q.Limit = i + 1
				_, next, err = k.page()
				d.fail(err)
				break
			}
		}
		if b = append(b, ']'); next != "" {
			b = wire.AppendField(b, "next_cursor", next)
		}
		return wire.CloseObject(b)
	})
}

// marketsKeyset answers GET /markets/keyset.
func (h *Gamma) marketsKeyset(ctx *fasthttp.RequestCtx) {
	w := ask(ctx)
	q := w.ofMarkets()
	if w.keyed(q); w.Refused != nil {
		w.Refused.Send(ctx)
		return
	}
	c := h.o.Catalog()
	var page catalog.Page[catalog.Market]
	k := keyset{name: "markets", q: q}
	k.page = func() (int, string, error) {
		var err error
		page, err = c.QueryMarkets(q)
		return len(page.Rows), page.Next, err
	}
	k.row = func(d *describer, b []byte, i int) []byte { return d.market(b, page.Rows[i], inName) }
	k.answer(h, ctx, c)
}

// eventsKeyset answers GET /events/keyset: unlike those of /events its events are whole.
func (h *Gamma) eventsKeyset(ctx *fasthttp.RequestCtx) {
	w := ask(ctx)
	q := w.ofEvents()
	if w.keyed(q); w.Refused != nil {
		w.Refused.Send(ctx)
		return
	}
	c := h.o.Catalog()
	var page catalog.Page[catalog.Event]
	k := keyset{name: "events", q: q}
	k.page = func() (int, string, error) {
		var err error
		page, err = c.QueryEvents(q)
		return len(page.Rows), page.Next, err
	}
	k.row = func(d *describer, b []byte, i int) []byte { return d.event(b, page.Rows[i], inFull) }
	k.answer(h, ctx, c)
}
