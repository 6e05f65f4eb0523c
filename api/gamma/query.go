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
	catalogPage    = 20  // rows of a page
	maxCatalogPage = 100 // the same, at most
	maxNamed       = 500 // values of a parameter that takes several
)

// query reads the parameters of a list. Unknown parameters are ignored: clients send many.
type query struct {
	wire.Query
	related bool // tags beside those that are named count as well
}

func ask(ctx *fasthttp.RequestCtx) *query {
	return &query{Query: wire.ReadQuery(ctx, wire.Described)}
}

func (w *query) many(names ...string) []string { return w.List(maxNamed, names...) }

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

func (w *query) flag(name string) catalog.Flag {
	switch yes, given := w.Truth(name); {
	case !given:
		return catalog.Any
	case yes:
		return catalog.Yes
	}
	return catalog.No
}

// bounds reads NAME_min and NAME_max. parse reads one of them; upper says which.
func (w *query) bounds(
	b *catalog.Bounds, name, expected string, parse func(s string, upper bool) (int64, error),
) {
	for _, end := range []struct {
		name string
		at   *int64
		has  *bool
	}{{name + "_min", &b.Min, &b.HasMin}, {name + "_max", &b.Max, &b.HasMax}} {
		s := w.Text(end.name)
		if s == "" {
			continue
		}
		var err error
		if *end.at, err = parse(s, end.has == &b.HasMax); err != nil {
			w.Invalid(end.name, expected)
		}
		*end.has = true
	}
}

func (w *query) times(name string) (b catalog.Bounds) {
	w.bounds(&b, name, "a moment like 2026-01-31T12:00:00Z, or a day",
		func(s string, _ bool) (int64, error) {
			at, err := time.Parse(time.RFC3339, s)
			if err != nil {
				at, err = time.Parse(time.DateOnly, s)
			}
			return at.UnixMilli(), err
		})
	return b
}

// amounts reads the bounds of an amount, in base units, under any of its names.
func (w *query) amounts(names ...string) (b catalog.Bounds) {
	for _, name := range names {
		w.bounds(&b, name, "a number", func(s string, upper bool) (int64, error) {
			n, err := strconv.ParseFloat(s, 64)
			if math.IsNaN(n) {
				err = strconv.ErrSyntax
			}
			const most = math.MaxInt64 / 2
			n = min(max(n*engine.Unit, -most), most)
			if upper {
				return int64(math.Floor(n)), err
			}
			return int64(math.Ceil(n)), err
		})
	}
	return b
}

// order reads the order of a list: by id upwards, unless the query names another.
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
				"volume24hr, volume1wk, volume1mo, volume1yr, liquidity, closedTime, competitive or "+
				"featuredOrder")
		}
		if first {
			q.Order, first = order, false
		}
	}
	q.Descending = up != catalog.Yes
}

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

// tagged reads which tags rows must have and which they must not have.
func (w *query) tagged(q *catalog.PageQuery) {
	q.TagIDs = w.ids("tag_id", "tag_ids")
	q.TagSlugs = w.many("tag_slug", "tag")
	q.ExcludeTagIDs = w.ids("exclude_tag_id", "exclude_tag_ids")
	w.related = w.flag("related_tags") == catalog.Yes
	switch w.Text("tag_match") {
	case "", "any":
	case "all":
		q.AllTags = true
	default:
		w.Invalid("tag_match", "any or all")
	}
}

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
	w.traits(q)
	q.Volume, q.Liquidity = w.amounts("volume_num", "volume"), w.amounts("liquidity_num", "liquidity")
	q.Start, q.End = w.times("start_date"), w.times("end_date")
	return q
}

// traits reads what only markets of some sources have.
func (w *query) traits(q *catalog.PageQuery) {
	q.QuestionIDs, q.GameIDs = w.many("question_ids"), w.many("game_id")
	q.SportsTypes = w.many("sports_market_types")
	q.Resolutions = w.many("uma_resolution_status")
	q.MarketMakers = w.many("market_maker_address")
	q.CYOM = w.flag("cyom")
	if s := w.Text("rewards_min_size"); s != "" {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || !(n >= 0) {
			w.Invalid("rewards_min_size", "a number, at least 0")
		}
		q.LeastRewarded = int64(math.Ceil(min(n, math.MaxInt32) * engine.Unit))
	}
}

func (w *query) ofEvents() *catalog.PageQuery {
	q := w.list()
	w.tagged(q)
	q.SeriesIDs = w.ids("series_id", "series_ids")
	q.SeriesSlugs = w.many("series_slug", "seriesSlug")
	q.Featured = w.flag("featured")
	q.Recurrence = w.Text("recurrence")
	q.Live, q.CYOM, q.EventDate = w.flag("live"), w.flag("cyom"), w.Text("event_date")
	if _, err := time.Parse(time.DateOnly, q.EventDate); q.EventDate != "" && err != nil {
		w.Invalid("event_date", "a day like 2026-01-31")
	}
	q.Volume, q.Liquidity = w.amounts("volume"), w.amounts("liquidity")
	q.Start, q.End = w.times("start_date"), w.times("end_date")
	return q
}

func (w *query) ofSeries() *catalog.PageQuery {
	q := w.list()
	q.Recurrence = w.Text("recurrence")
	return q
}

// keyed reads the cursor of a list, which replaces the offset.
func (w *query) keyed(q *catalog.PageQuery) {
	q.Offset = 0
	q.After = w.Text("after_cursor", "cursor", "next_cursor")
}
