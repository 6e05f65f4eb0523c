package gamma

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/wire"
)

const (
	searchPage     = 25      // rows of each kind on a page
	maxSearchPage  = 500     // the same, at most
	maxSearchPages = 1 << 30 // more than any catalog has
)

type searchQuery struct {
	text    string
	creator string // empty: all sites
	limit   int
	page    int // from 0
	tags    bool
}

// publicSearch finds events, the best first, and tags. It never finds profiles.
func (g *Gamma) publicSearch(ctx *fasthttp.RequestCtx) {
	w := ask(ctx)
	q := readSearch(w)
	if w.Refused != nil {
		w.Refused.Send(ctx)
		return
	}
	c := g.o.Catalog()
	words := catalog.WordQuery{Text: q.text, Creator: q.creator, Offset: q.page * q.limit,
		Limit: q.limit}
	found := c.FindEvents(&words)
	b := append(make([]byte, 0, 4096), `{"events":[`...)
	for _, e := range found.Rows {
		b = appendName(b, e)
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

func appendFoundTag(b []byte, c *catalog.Catalog, t *catalog.Tag) []byte {
	b = wire.AppendField(append(b, '{'), "id", t.ID)
	b = wire.AppendField(b, "label", t.Label)
	b = wire.AppendField(b, "slug", t.Slug)
	b = strconv.AppendInt(wire.AppendKey(b, "event_count"), int64(c.EventCount(t)), 10)
	return wire.CloseObject(b)
}

// readSearch reads the query of a search. Other parameters, such as search_profiles, are ignored.
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

// ordinal reads a whole number of at least 1, written in digits alone. A number above most counts
// as most.
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
