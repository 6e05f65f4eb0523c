package gamma

import (
	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/wire"
)

type describe[R any] func(*describer, []byte, *R) []byte

type rowKind[R any] struct {
	name   string
	member string // its name in a page with a cursor
	no     func(*R) int32
	read   func(*query) *catalog.PageQuery
	find   func(*catalog.Catalog, *catalog.PageQuery) (catalog.Page[R], error)

	ofID, ofSlug func(*catalog.Catalog, string) *R
}

// The kinds of rows, each with what its routes use.
var (
	markets = rowKind[catalog.Market]{
		name:   "markets",
		member: "markets",
		no:     func(m *catalog.Market) int32 { return m.No },
		read:   (*query).ofMarkets,
		find:   (*catalog.Catalog).QueryMarkets,
		ofSlug: (*catalog.Catalog).MarketBySlug,
	}
	// taggedMarkets are markets that are described with their tags.
	taggedMarkets = rowKind[catalog.Market]{
		name:   "markets with tags",
		member: "markets",
		no:     func(m *catalog.Market) int32 { return m.No },
		read:   (*query).ofMarkets,
		find:   (*catalog.Catalog).QueryMarkets,
	}
	events = rowKind[catalog.Event]{
		name:   "events",
		member: "events",
		no:     func(e *catalog.Event) int32 { return e.No },
		read:   (*query).ofEvents,
		find:   (*catalog.Catalog).QueryEvents,
		ofID:   (*catalog.Catalog).EventByID,
		ofSlug: (*catalog.Catalog).EventBySlug,
	}
	series = rowKind[catalog.Series]{
		no:   func(s *catalog.Series) int32 { return s.No },
		find: (*catalog.Catalog).QuerySeries,
		ofID: (*catalog.Catalog).SeriesByID,
	}
	tags = rowKind[catalog.Tag]{
		name:   "tags",
		no:     func(t *catalog.Tag) int32 { return t.No },
		read:   (*query).list,
		find:   (*catalog.Catalog).QueryTags,
		ofID:   (*catalog.Catalog).TagByID,
		ofSlug: (*catalog.Catalog).TagBySlug,
	}
)

// offers reports whether the row that q names belongs to the creator of the request, if it has one.
func (k *rowKind[R]) offers(
	ctx *fasthttp.RequestCtx, c *catalog.Catalog, q *catalog.PageQuery,
) bool {
	q.Creator, q.Limit = string(ctx.QueryArgs().Peek("creator")), 1
	if q.Creator == "" {
		return true
	}
	page, _ := k.find(c, q)
	return len(page.Rows) > 0
}

// one answers about the row whose id or slug is in the path. form names what row appends.
func (k *rowKind[R]) one(
	g *Gamma, param, form string, row describe[R],
) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		text, c := wire.InPath(ctx, param), g.o.Catalog()
		find, none, q := k.ofSlug, errNoSlug, catalog.PageQuery{Slugs: []string{text}}
		if param == "id" {
			find, none, q = k.ofID, absent(text), catalog.PageQuery{IDs: []string{text}}
		}
		r := find(c, text)
		if r == nil || !k.offers(ctx, c, &q) {
			none.Send(ctx)
			return
		}
		key := keyOf(form).of(k.no(r))
		g.write(ctx, c, key, func(d *describer, b []byte) []byte { return row(d, b, r) })
	}
}

func absent(id string) *wire.Refusal {
	if !wire.IsNumber(id) {
		return errBadID
	}
	return errNoID
}

// maxKeyset bounds the bytes of a page with a cursor. A page that reaches the bound has fewer rows
// than the query asks for, and the list goes on behind them.
const maxKeyset = 4 << 20

// list answers with an array of the rows that the query asks for; if keyed, with an object that
// holds the array and the cursor of the next page.
func (k *rowKind[R]) list(g *Gamma, row describe[R], keyed bool) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		w := ask(ctx)
		q := k.read(w)
		if keyed {
			w.keyed(q)
		}
		if w.Refused != nil {
			w.Refused.Send(ctx)
			return
		}
		c := g.o.Catalog()
		w.relate(c, q)
		page, err := k.find(c, q)
		if err != nil { // only a cursor can be wrong
			errPlace.Send(ctx)
			return
		}
		key := append(keyOf("list of "+k.name).with(keyed), page.Next...)
		for _, r := range page.Rows {
			key = key.of(k.no(r))
		}
		g.write(ctx, c, key, func(d *describer, b []byte) []byte {
			if keyed {
				b = wire.AppendKey(append(b, '{'), k.member)
			}
			b = append(b, '[')
			for i, r := range page.Rows {
				if b = row(d, b, r); keyed && len(b) > maxKeyset && i+1 < len(page.Rows) {
					q.Limit = i + 1
					page, err = k.find(c, q)
					d.fail(err)
					break
				}
			}
			if b = append(b, ']'); !keyed {
				return b
			}
			if page.Next != "" {
				b = wire.AppendField(b, "next_cursor", page.Next)
			}
			return wire.CloseObject(b)
		})
	}
}
