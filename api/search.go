package api

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
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
	errNoQuery     = described.fail(fasthttp.StatusBadRequest, "missing_field", "q is required", "")
	errSearchLimit = described.fail(fasthttp.StatusBadRequest, "invalid_field",
		"limit_per_type is invalid",
		"limit_per_type is a whole number, at least 1; one above 500 counts as 500")
	errSearchPage = described.fail(fasthttp.StatusBadRequest, "invalid_field",
		"page is invalid", "page is a whole number, at least 1")
	errSearchTags = described.fail(fasthttp.StatusBadRequest, "invalid_field",
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
		f.send(ctx)
		return
	}
	c := h.o.Catalog()
	if c == nil {
		c = new(catalog.Catalog)
	}
	query := catalog.Query{Text: q.text, Offset: q.page * q.limit, Limit: q.limit}
	if q.creator != "" {
		query.Marks = []string{"creator:" + q.creator}
	}
	found := c.SearchEvents.Find(query)
	b := append(make([]byte, 0, 4096), `{"events":[`...)
	for _, id := range found.IDs {
		b = appendFoundEvent(appendComma(b), c.Events.At(rowNumber(id)))
	}
	b = append(b, `],"tags":[`...)
	if q.tags {
		for _, id := range foundTags(c, &q) {
			b = appendFoundTag(appendComma(b), c, c.Tags.At(rowNumber(id)))
		}
	}
	b = append(b, `],"pagination":{"hasMore":`...)
	b = strconv.AppendBool(b, (q.page+1)*q.limit < found.Total)
	b = append(b, `,"totalResults":`...)
	b = strconv.AppendInt(b, int64(found.Total), 10)
	ctx.SetContentType(jsonType)
	ctx.Response.SetBodyRaw(append(b, '}', '}'))
}

// rowNumber is the number of a row that a search found.
func rowNumber(id string) int32 {
	no, err := strconv.ParseInt(id, 10, 32)
	if err != nil {
		panic("BUG: a search found " + id)
	}
	return int32(no)
}

// foundTags are the ids of a page of tags: of a site, those that its events have.
func foundTags(c *catalog.Catalog, q *searched) []string {
	if q.creator == "" {
		return c.SearchTags.Find(catalog.Query{
			Text: q.text, Offset: q.page * q.limit, Limit: q.limit,
		}).IDs
	}
	all := c.SearchTags.Find(catalog.Query{Text: q.text, Limit: math.MaxInt}).IDs
	if len(all) == 0 {
		return nil
	}
	ask := catalog.PageQuery{Creator: q.creator, Limit: len(all)}
	for _, id := range all {
		ask.IDs = append(ask.IDs, c.Tags.At(rowNumber(id)).ID)
	}
	scope, err := c.QueryTags(&ask)
	if err != nil {
		panic("BUG: a cursor without a cursor: " + err.Error())
	}
	in := make(map[int32]bool, len(scope.Rows))
	for _, t := range scope.Rows {
		in[t.No] = true
	}
	all = slices.DeleteFunc(all, func(id string) bool { return !in[rowNumber(id)] })
	from := min(q.page*q.limit, len(all))
	return all[from:min(from+q.limit, len(all))]
}

// appendFoundEvent appends an event as a search tells it.
func appendFoundEvent(b []byte, e *catalog.Event) []byte {
	b = appendField(append(b, '{'), "id", e.ID)
	b = appendField(b, "ticker", e.Ticker)
	b = appendField(b, "slug", e.Slug)
	return closeObject(appendField(b, "title", e.Title))
}

// appendFoundTag appends a tag as a search tells it: with the number of its events.
func appendFoundTag(b []byte, c *catalog.Catalog, t *catalog.Tag) []byte {
	b = appendField(append(b, '{'), "id", t.ID)
	b = appendField(b, "label", t.Label)
	b = appendField(b, "slug", t.Slug)
	b = strconv.AppendInt(appendKey(b, "event_count"), int64(c.EventCount(t)), 10)
	return closeObject(b)
}

// readSearch reads the query of a search. Other parameters, search_profiles among them, mean
// nothing here.
func readSearch(args *fasthttp.Args) (q searched, f *failure) {
	q = searched{text: text(args.Peek("q")), limit: searchPage, tags: true}
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
	switch text(args.Peek("search_tags")) {
	case "", "true", "1":
	case "false", "0":
		q.tags = false
	default:
		return q, errSearchTags
	}
	q.creator = strings.ToLower(string(args.Peek("creator")))
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
