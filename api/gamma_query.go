package api

import (
	"errors"
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

// wants reads the parameters of a catalog's list and keeps the first complaint. A parameter that is
// not read means nothing: clients send many that are another service's.
type wants struct {
	args *fasthttp.Args
	bad  *wire.Refusal
}

// invalid complains about a parameter.
func (w *wants) invalid(name, expected string) {
	if w.bad == nil {
		w.bad = wire.Described.Refuse(fasthttp.StatusBadRequest, "invalid_field", name+" is invalid",
			name+" is "+expected)
	}
}

// one is the parameter under the first of its names that is there.
func (w *wants) one(names ...string) (name, value string) {
	for _, name := range names {
		if v := w.args.Peek(name); len(v) > 0 {
			return name, wire.Text(v)
		}
	}
	return names[0], ""
}

// many are the values under all of the names: with commas between them, or each on its own.
func (w *wants) many(names ...string) (values []string) {
	for _, name := range names {
		for _, v := range w.args.PeekMulti(name) {
			for part := range strings.SplitSeq(wire.Text(v), ",") {
				if part = strings.TrimSpace(part); part != "" {
					values = append(values, part)
				}
			}
		}
		if len(values) > maxNamed {
			w.invalid(name, "at most "+strconv.Itoa(maxNamed)+" values")
			return nil
		}
	}
	return values
}

// ids are many, each of which must be a whole number.
func (w *wants) ids(names ...string) []string {
	values := w.many(names...)
	for _, v := range values {
		if !isNumber(v) {
			w.invalid(names[0], "a whole number, or several with commas between them")
			return nil
		}
	}
	return values
}

// isNumber says whether s is made of digits.
func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// count reads a whole number of at least least; one above most counts as that.
func (w *wants) count(name string, otherwise, least, most int) int {
	_, v := w.one(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 10, 64) // of one that is too large the largest there is
	if err != nil && !errors.Is(err, strconv.ErrRange) || n < int64(least) {
		w.invalid(name, "a whole number, at least "+strconv.Itoa(least))
		return otherwise
	}
	return int(min(n, int64(most)))
}

// flag reads true or false.
func (w *wants) flag(name string) catalog.Flag {
	_, v := w.one(name)
	if v == "" {
		return catalog.Any
	}
	switch yes, ok := truth(v); {
	case !ok:
		w.invalid(name, "true or false")
		return catalog.Any
	case yes:
		return catalog.Yes
	}
	return catalog.No
}

// truth reads true or false as clients of several languages write them, or 1 or 0.
func truth(s string) (yes, ok bool) {
	switch s {
	case "true", "True", "TRUE", "1":
		return true, true
	case "false", "False", "FALSE", "0":
		return false, true
	}
	return false, false
}

// times reads the bounds of a moment: NAME_min and NAME_max.
func (w *wants) times(name string) (b catalog.Bounds) {
	for _, end := range []struct {
		name string
		at   *int64
		has  *bool
	}{{name + "_min", &b.Min, &b.HasMin}, {name + "_max", &b.Max, &b.HasMax}} {
		_, v := w.one(end.name)
		if v == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, v)
		if err != nil {
			at, err = time.Parse(time.DateOnly, v)
		}
		if err != nil {
			w.invalid(end.name, "a moment like 2026-01-31T12:00:00Z, or a day")
		}
		*end.at, *end.has = at.UnixMilli(), true
	}
	return b
}

// amounts reads the bounds of an amount: NAME_min and NAME_max, and the same of another name.
func (w *wants) amounts(names ...string) (b catalog.Bounds) {
	for _, name := range names {
		for _, end := range []struct {
			name  string
			at    *int64
			has   *bool
			round func(float64) float64
		}{{name + "_min", &b.Min, &b.HasMin, math.Ceil}, {name + "_max", &b.Max, &b.HasMax, math.Floor}} {
			_, v := w.one(end.name)
			if v == "" {
				continue
			}
			n, err := strconv.ParseFloat(v, 64)
			if err != nil || math.IsNaN(n) {
				w.invalid(end.name, "a number")
			}
			const most = math.MaxInt64 / 2
			*end.at, *end.has = int64(end.round(min(max(n*engine.Unit, -most), most))), true
		}
	}
	return b
}

// order reads what a list is sorted by. Without one it goes by id, upwards.
func (w *wants) order(q *catalog.PageQuery) {
	_, name := w.one("order")
	up := w.flag("ascending")
	if name == "" {
		return
	}
	first := true
	for part := range strings.SplitSeq(name, ",") {
		order, ok := catalog.ParseOrder(strings.TrimSpace(part))
		if !ok || strings.TrimSpace(part) == "" {
			w.invalid("order", "id, slug, title, startDate, endDate, createdAt, updatedAt, volume, "+
				"volume24hr, volume1wk, volume1mo, volume1yr or liquidity")
		}
		if first {
			q.Order, first = order, false
		}
	}
	q.Descending = up != catalog.Yes
}

// list reads what all lists have.
func (w *wants) list() *catalog.PageQuery {
	q := &catalog.PageQuery{
		Limit:  w.count("limit", catalogPage, 1, maxCatalogPage),
		Offset: w.count("offset", 0, 0, math.MaxInt32),
		Active: w.flag("active"), Closed: w.flag("closed"), Archived: w.flag("archived"),
		IDs: w.many("id", "ids"), Slugs: w.many("slug"),
	}
	_, q.Creator = w.one("creator")
	w.order(q)
	return q
}

// tagged reads which tags markets and events must have, and which not.
func (w *wants) tagged(q *catalog.PageQuery) {
	q.TagIDs = w.ids("tag_id", "tag_ids")
	q.TagSlugs = w.many("tag_slug", "tag")
	q.ExcludeTagIDs = w.ids("exclude_tag_id", "exclude_tag_ids")
	switch _, v := w.one("tag_match"); v {
	case "", "any":
	case "all":
		q.AllTags = true
	default:
		w.invalid("tag_match", "any or all")
	}
}

// ofMarkets reads what a list of markets is asked for.
func (w *wants) ofMarkets() *catalog.PageQuery {
	q := w.list()
	w.tagged(q)
	q.EventIDs = w.ids("event_id", "event_ids")
	q.EventSlugs = w.many("event_slug", "eventSlug")
	for _, id := range w.many("conditionId", "condition_id", "condition_ids", "conditionIds") {
		c, ok := engine.ParseCondition(id)
		if !ok {
			w.invalid("condition_id", "0x and 64 hex digits")
		}
		q.Conditions = append(q.Conditions, c)
	}
	for _, id := range w.many("clob_token_ids") {
		t, ok := engine.ParseToken(id)
		if !ok {
			w.invalid("clob_token_ids", "a decimal number below 2^256")
		}
		q.Tokens = append(q.Tokens, t)
	}
	q.Volume, q.Liquidity = w.amounts("volume_num", "volume"), w.amounts("liquidity_num", "liquidity")
	q.Start, q.End = w.times("start_date"), w.times("end_date")
	return q
}

// ofEvents reads what a list of events is asked for.
func (w *wants) ofEvents() *catalog.PageQuery {
	q := w.list()
	w.tagged(q)
	q.SeriesIDs = w.ids("series_id", "series_ids")
	q.SeriesSlugs = w.many("series_slug", "seriesSlug")
	q.Featured = w.flag("featured")
	_, q.Recurrence = w.one("recurrence")
	q.Volume, q.Liquidity = w.amounts("volume"), w.amounts("liquidity")
	q.Start, q.End = w.times("start_date"), w.times("end_date")
	return q
}

// ofSeries reads what a list of series is asked for.
func (w *wants) ofSeries() *catalog.PageQuery {
	q := w.list()
	_, q.Recurrence = w.one("recurrence")
	return q
}

// keyed reads where a list goes on that has no offset.
func (w *wants) keyed(q *catalog.PageQuery) {
	q.Offset = 0
	_, q.After = w.one("after_cursor", "cursor", "next_cursor")
}
