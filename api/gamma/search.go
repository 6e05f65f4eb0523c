package gamma

import (
	"strconv"
	"strings"

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

// searchQuery is what is asked of a search.
type searchQuery struct {
	text    string
	creator string // empty: all sites
	limit   int
	page    int // from 0
	tags    bool
}

// publicSearch answers GET /public-search: events, best first, and tags. Profiles are nobody's
// business here, so none is ever found.
func (h *Gamma) publicSearch(ctx *fasthttp.RequestCtx) {
	w := ask(ctx)
	q := readSearch(w)
	if w.Refused != nil {
		w.Refused.Send(ctx)
		return
	}
	c := h.o.Catalog()
	words := catalog.WordQuery{Text: q.text, Creator: q.creator, Offset: q.page * q.limit,
		Limit: q.limit}
	found := c.FindEvents(&words)
	b := append(make([]byte, 0, 4096), `{"events":[`...)
	for _, e := range found.Rows {
		b = appendFoundEvent(wire.AppendComma(b), e)
	}
	b = append(b, `],"tags":[`...)
	if q.tags {
		for _, t := range c.FindTags(&words).Rows {
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
func readSearch(q *query) (s searchQuery) {
	s.text, s.creator, s.tags = q.Text("q"), q.Text("creator"), true
	if strings.TrimSpace(s.text) == "" {
		q.Missing("q")
	}
	s.limit = q.ordinal("limit_per_type", searchPage, maxSearchPage, "; one above 500 counts as 500")
	s.page = q.ordinal("page", 1, maxSearchPages, "") - 1
	if yes, given := q.Truth("search_tags"); given {
		s.tags = yes
	}
	return s
}

// ordinal reads a whole number from 1 up that is written in digits alone; a number above most
// counts as most.
func (w *query) ordinal(name string, otherwise, most int, more string) int {
	s := w.Text(name)
	if s == "" {
		return otherwise
	}
	if !wire.IsNumber(s) || strings.Trim(s, "0") == "" {
		w.Invalid(name, "a whole number, at least 1"+more)
		return otherwise
	}
	n, _ := strconv.ParseInt(s, 10, 64) // a number that is too large reads as the largest there is
	return int(min(n, int64(most)))
}
