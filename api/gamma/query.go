package gamma

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
)

const (
	// catalogPage and maxCatalogPage are how many rows a page of a catalog's list has.
	catalogPage    = 20
	maxCatalogPage = 100
	// maxNamed is how many values a parameter that takes several may have.
	maxNamed = 500
)

// query reads the parameters of a catalog's list. A parameter that is not read means nothing:
// clients send many that are another service's.
type query struct{ wire.Query }

// ask begins to read a query.
func ask(ctx *fasthttp.RequestCtx) *query { return &query{wire.ReadQuery(ctx, wire.Described)} }

// many are the values under all of the names.
func (w *query) many(names ...string) []string { return w.List(maxNamed, names...) }

// ids are many, each of which must be a whole number.
func (w *query) ids(names ...string) []string {
	values := w.many(names...)
	for _, v := range values {
		if !wire.IsNumber(v) {
			w.Invalid(names[0], "a whole number, or several with commas between them")
			return nil
		}
	}
	return values
}

// flag reads true or false.
func (w *query) flag(name string) catalog.Flag {
	switch yes, given := w.Truth(name); {
	case !given:
		return catalog.Any
	case yes:
		return catalog.Yes
	}
	return catalog.No
}

// times reads the bounds of a moment: NAME_min and NAME_max.
func (w *query) times(name string) (b catalog.Bounds) {
	for _, end := range []struct {
		name string
		at   *int64
		has  *bool
	}{{name + "_min", &b.Min, &b.HasMin}, {name + "_max", &b.Max, &b.HasMax}} {
		v := w.Text(end.name)
		if v == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, v)
		if err != nil {
			at, err = time.Parse(time.DateOnly, v)
		}
		if err != nil {
			w.Invalid(end.name, "a moment like 2026-01-31T12:00:00Z, or a day")
		}
		*end.at, *end.has = at.UnixMilli(), true
	}
	return b
}

// amounts reads the bounds of an amount: NAME_min and NAME_max, and the same of another name.
func (w *query) amounts(names ...string) (b catalog.Bounds) {
	for _, name := range names {
		for _, end := range []struct {
			name  string
			at    *int64
			has   *bool
			round func(float64) float64
		}{{name + "_min", &b.Min, &b.HasMin, math.Ceil}, {name + "_max", &b.Max, &b.HasMax, math.Floor}} {
			v := w.Text(end.name)
			if v == "" {
				continue
			}
			n, err := strconv.ParseFloat(v, 64)
			if err != nil || math.IsNaN(n) {
				w.Invalid(end.name, "a number")
			}
			const most = math.MaxInt64 / 2
			*end.at, *end.has = int64(end.round(min(max(n*engine.Unit, -most), most))), true
		}
	}
	return b
}

// order reads what a list is sorted by. Without one it goes by id, upwards.
func (w *query) order(q *catalog.PageQuery) {
	name := w.Text("order")
	up := w.flag("ascending")
	if name == "" {
		return
	}
	first := true
	for part := range strings.SplitSeq(name, ",") {
		order, ok := catalog.ParseOrder(strings.TrimSpace(part))
		if !ok || strings.TrimSpace(part) == "" {
			w.Invalid("order", "id, slug, title, startDate, endDate, createdAt, updatedAt, volume, "+
				"volume24hr, volume1wk, volume1mo, volume1yr or liquidity")
		}
		if first {
			q.Order, first = order, false
		}
	}
	q.Descending = up != catalog.Yes
}

// list reads what all lists have.
func (w *query) list() *catalog.PageQuery {
	q := &catalog.PageQuery{
		Limit:  w.AtLeast("limit", catalogPage, 1, maxCatalogPage),
		Offset: w.AtLeast("offset", 0, 0, math.MaxInt32),
		Active: w.flag("active"), Closed: w.flag("closed"), Archived: w.flag("archived"),
		IDs: w.many("id", "ids"), Slugs: w.many("slug"),
	}
	q.Creator = w.Text("creator")
	w.order(q)
	return q
}

// tagged reads which tags markets and events must have, and which not.
func (w *query) tagged(q *catalog.PageQuery) {
	q.TagIDs = w.ids("tag_id", "tag_ids")
	q.TagSlugs = w.many("tag_slug", "tag")
	q.ExcludeTagIDs = w.ids("exclude_tag_id", "exclude_tag_ids")
	switch w.Text("tag_match") {
	case "", "any":
	case "all":
		q.AllTags = true
	default:
		w.Invalid("tag_match", "any or all")
	}
}

// ofMarkets reads what a list of markets is asked for.
func (w *query) ofMarkets() *catalog.PageQuery {
	q := w.list()
	w.tagged(q)
	q.EventIDs = w.ids("event_id", "event_ids")
	q.EventSlugs = w.many("event_slug", "eventSlug")
	for _, id := range w.many("conditionId", "condition_id", "condition_ids", "conditionIds") {
		c, ok := engine.ParseCondition(id)
		if !ok {
			w.Invalid("condition_id", "0x and 64 hex digits")
		}
		q.Conditions = append(q.Conditions, c)
	}
	for _, id := range w.many("clob_token_ids") {
		t, ok := engine.ParseToken(id)
		if !ok {
			w.Invalid("clob_token_ids", "a decimal number below 2^256")
		}
		q.Tokens = append(q.Tokens, t)
	}
	q.Volume, q.Liquidity = w.amounts("volume_num", "volume"), w.amounts("liquidity_num", "liquidity")
	q.Start, q.End = w.times("start_date"), w.times("end_date")
	return q
}

// ofEvents reads what a list of events is asked for.
func (w *query) ofEvents() *catalog.PageQuery {
	q := w.list()
	w.tagged(q)
	q.SeriesIDs = w.ids("series_id", "series_ids")
	q.SeriesSlugs = w.many("series_slug", "seriesSlug")
	q.Featured = w.flag("featured")
	q.Recurrence = w.Text("recurrence")
	q.Volume, q.Liquidity = w.amounts("volume"), w.amounts("liquidity")
	q.Start, q.End = w.times("start_date"), w.times("end_date")
	return q
}

// ofSeries reads what a list of series is asked for.
func (w *query) ofSeries() *catalog.PageQuery {
	q := w.list()
	q.Recurrence = w.Text("recurrence")
	return q
}

// keyed reads where a list goes on that has no offset.
func (w *query) keyed(q *catalog.PageQuery) {
	q.Offset = 0
	q.After = w.Text("after_cursor", "cursor", "next_cursor")
}
