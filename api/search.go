package api

import (
	"bytes"
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/wire"
)

const (
	// searchPage and maxSearchPage are how many of a kind are on a page of what was found.
	searchPage    = 25
	maxSearchPage = 500
	// maxSearchPages bounds the number of a page: further than any catalog is long.
	maxSearchPages = 1 << 30
)

// The complaints of GET /public-search.
var (
	errNoQuery     = wire.Described.Refuse(fasthttp.StatusBadRequest, "missing_field", "q is required", "")
	errSearchLimit = wire.Described.Refuse(fasthttp.StatusBadRequest, "invalid_field",
		"limit_per_type is invalid",
		"limit_per_type is a whole number, at least 1; one above 500 counts as 500")
	errSearchPage = wire.Described.Refuse(fasthttp.StatusBadRequest, "invalid_field",
		"page is invalid", "page is a whole number, at least 1")
	errSearchTags = wire.Described.Refuse(fasthttp.StatusBadRequest, "invalid_field",
		"search_tags is invalid", "search_tags is true or false")
)

// searched is what is asked of a search.
type searched struct {
	text    string
	creator string // empty: all sites
	limit   int
	page    int // from 0
	tags    bool
}

// publicSearch answers GET /public-search: events, best first, and tags. Profiles are nobody's
// business here, so none is ever found.
func (h *Handler) publicSearch(ctx *fasthttp.RequestCtx) {
	q, f := readSearch(ctx.QueryArgs())
	if f != nil {
		f.Send(ctx)
		return
	}
	c := h.o.Catalog()
	ask := catalog.WordQuery{Text: q.text, Creator: q.creator, Offset: q.page * q.limit,
		Limit: q.limit}
	found := c.FindEvents(&ask)
	b := append(make([]byte, 0, 4096), `{"events":[`...)
	for _, e := range found.Rows {
		b = appendFoundEvent(wire.AppendComma(b), e)
	}
	b = append(b, `],"tags":[`...)
	if q.tags {
		for _, t := range c.FindTags(&ask).Rows {
			b = appendFoundTag(wire.AppendComma(b), c, t)
		}
	}
	b = append(b, `],"pagination":{"hasMore":`...)
	b = strconv.AppendBool(b, (q.page+1)*q.limit < found.Total)
	b = append(b, `,"totalResults":`...)
	b = strconv.AppendInt(b, int64(found.Total), 10)
	wire.AnswerRaw(ctx, append(b, '}', '}'))
}

// appendFoundEvent appends an event as a search tells it.
func appendFoundEvent(b []byte, e *catalog.Event) []byte {
	b = wire.AppendField(append(b, '{'), "id", e.ID)
	b = wire.AppendField(b, "ticker", e.Ticker)
	b = wire.AppendField(b, "slug", e.Slug)
	return wire.CloseObject(wire.AppendField(b, "title", e.Title))
}

// appendFoundTag appends a tag as a search tells it: with the number of its events.
func appendFoundTag(b []byte, c *catalog.Catalog, t *catalog.Tag) []byte {
	b = wire.AppendField(append(b, '{'), "id", t.ID)
	b = wire.AppendField(b, "label", t.Label)
	b = wire.AppendField(b, "slug", t.Slug)
	b = strconv.AppendInt(wire.AppendKey(b, "event_count"), int64(c.EventCount(t)), 10)
	return wire.CloseObject(b)
}

// readSearch reads the query of a search. Other parameters, search_profiles among them, mean
// nothing here.
func readSearch(args *fasthttp.Args) (q searched, f *wire.Refusal) {
	q = searched{text: wire.Text(args.Peek("q")), limit: searchPage, tags: true}
	if len(bytes.TrimSpace(args.Peek("q"))) == 0 {
		return q, errNoQuery
	}
	var ok bool
	if q.limit, ok = ordinal(args.Peek("limit_per_type"), searchPage, maxSearchPage); !ok {
		return q, errSearchLimit
	}
	if q.page, ok = ordinal(args.Peek("page"), 1, maxSearchPages); !ok {
		return q, errSearchPage
	}
	q.page--
	if tags := wire.Text(args.Peek("search_tags")); tags != "" {
		if q.tags, ok = truth(tags); !ok {
			return q, errSearchTags
		}
	}
	q.creator = wire.Text(args.Peek("creator"))
	return q, nil
}

// ordinal reads a whole number from 1 up; one above most counts as that.
func ordinal(value []byte, otherwise, most int) (n int, ok bool) {
	if len(value) == 0 {
		return otherwise, true
	}
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(10*n+int(c-'0'), most)
	}
	return n, n > 0
}
