package catalog

import (
	"sync/atomic"

	"clobd/api/catalog/search"
	"clobd/engine"
)

// Catalog describes markets: what a condition asks, what its outcomes are called, which event it
// belongs to, what series and tags that has. It never changes once made; a newer one replaces it
// whole and shares what did not change. A nil Catalog describes nothing. Any number of goroutines
// may ask.
type Catalog struct {
	content
	seen atomic.Pointer[liveView] // the last live values, made for the rows of this catalog
}

// content is all of a Catalog that a copy of the catalog shares.
type content struct {
	// Markets are all the described markets, tradable or not, in the order in which they came.
	Markets Rows[Market]
	Events  Rows[Event]
	Series  Rows[Series]
	Tags    Rows[Tag]

	log   *recordLog
	names Rows[string] // of those who made markets, in lower case
	// What they find are numbers of rows.
	searchEvents, searchTags *search.Index
	ranks                    []searchRank // of events by row number: their ranks in the search

	tables

	markets marketColumns
	orders  [kinds]*orders
	found   *foundCache
	live    *liveBoard
}

// Empty is a catalog that describes nothing.
func Empty() *Catalog {
	c := &Catalog{}
	derive(c, nil, nil)
	return c
}

// lookup finds the row whose hash the table holds and that is confirms; of several, the one with
// the lowest number. It returns nil if there is none.
func lookup[T any](t *hashTable, rows *Rows[T], hash uint32, is func(*T) bool) *T {
	return rows.At(lookupNo(t, rows, hash, is))
}

// lookupNo is lookup for the number of the row; None if there is none.
func lookupNo[T any](t *hashTable, rows *Rows[T], hash uint32, is func(*T) bool) int32 {
	best := None
	t.find(hash, func(no int32) bool {
		if row := rows.At(no); row != nil && (best == None || no < best) && is(row) {
			best = no
		}
		return true
	})
	return best
}

// nameNo is the number of a creator's name; None if no row has it.
func nameNo(t *hashTable, names *Rows[string], name string) int32 {
	return lookupNo(t, names, hashText(name), func(s *string) bool { return *s == name })
}

// named is lookup by a text; an empty one names nothing.
func named[T any](t *hashTable, rows *Rows[T], key string, of func(*T) string) *T {
	if key == "" {
		return nil
	}
	return lookup(t, rows, hashText(key), func(row *T) bool { return of(row) == key })
}

// Market is the description of a condition, nil if there is none.
func (c *Catalog) Market(cond engine.Condition) *Market {
	if c == nil {
		return nil
	}
	return lookup(&c.byCondition, &c.Markets, hashBytes(cond[:]),
		func(m *Market) bool { return m.Condition == cond })
}

// MarketByID is the market of a catalog's id, nil if there is none.
func (c *Catalog) MarketByID(id string) *Market {
	if c == nil {
		return nil
	}
	return named(&c.byMarketID, &c.Markets, id, func(m *Market) string { return m.ID })
}

// MarketBySlug is the market of a slug, nil if there is none.
func (c *Catalog) MarketBySlug(slug string) *Market {
	if c == nil {
		return nil
	}
	return named(&c.byMarketSlug, &c.Markets, slug, func(m *Market) string { return m.Slug })
}

// MarketByToken is the market of a token and the outcome that the token stands for, nil if there
// is none.
func (c *Catalog) MarketByToken(t engine.Token) (*Market, engine.Outcome) {
	if c == nil || t == (engine.Token{}) {
		return nil, 0
	}
	m := lookup(&c.byToken, &c.Markets, hashBytes(t[:]),
		func(m *Market) bool { return m.Tokens[0] == t || m.Tokens[1] == t })
	if m != nil && m.Tokens[1] == t {
		return m, 1
	}
	return m, 0
}

// EventByID is the event of an id, nil if there is none.
func (c *Catalog) EventByID(id string) *Event {
	if c == nil {
		return nil
	}
	return named(&c.byEventID, &c.Events, id, func(e *Event) string { return e.ID })
}

// EventBySlug is the event of a slug, nil if there is none.
func (c *Catalog) EventBySlug(slug string) *Event {
	if c == nil {
		return nil
	}
	return named(&c.byEventSlug, &c.Events, slug, func(e *Event) string { return e.Slug })
}

// SeriesByID is the series of an id, nil if there is none.
func (c *Catalog) SeriesByID(id string) *Series {
	if c == nil {
		return nil
	}
	return named(&c.bySeriesID, &c.Series, id, func(s *Series) string { return s.ID })
}

// SeriesBySlug is the series of a slug, nil if there is none.
func (c *Catalog) SeriesBySlug(slug string) *Series {
	if c == nil {
		return nil
	}
	return named(&c.bySeriesSlug, &c.Series, slug, func(s *Series) string { return s.Slug })
}

// TagByID is the tag of an id, nil if there is none.
func (c *Catalog) TagByID(id string) *Tag {
	if c == nil {
		return nil
	}
	return named(&c.byTagID, &c.Tags, id, func(t *Tag) string { return t.ID })
}

// TagBySlug is the tag of a slug, nil if there is none.
func (c *Catalog) TagBySlug(slug string) *Tag {
	if c == nil {
		return nil
	}
	return named(&c.byTagSlug, &c.Tags, slug, func(t *Tag) string { return t.Slug })
}

// Label is what an outcome is called: the catalog's word if there is one, else Yes for outcome 0
// and No for outcome 1.
func (c *Catalog) Label(cond engine.Condition, o engine.Outcome) string {
	if m := c.Market(cond); m != nil && int(o) < len(m.Outcomes) {
		return m.Outcomes[o]
	}
	if o == 0 {
		return "Yes"
	}
	return "No"
}

// EventOf is the event that a market belongs to, nil if there is none.
func (c *Catalog) EventOf(m *Market) *Event {
	if c == nil || m == nil {
		return nil
	}
	return c.Events.At(m.EventNo)
}

// MarketsOf are the markets of an event in the order in which they came.
func (c *Catalog) MarketsOf(e *Event) []*Market { return rowsOf(&c.Markets, e.markets) }

// TagsOf are the tags of an event in the order of its record.
func (c *Catalog) TagsOf(e *Event) []*Tag { return rowsOf(&c.Tags, e.tags) }

// SeriesOf are the series of an event in the order of its record.
func (c *Catalog) SeriesOf(e *Event) []*Series { return rowsOf(&c.Series, e.series) }

// MarketTags are the tags of a market: its own, else those of its event.
func (c *Catalog) MarketTags(m *Market) []*Tag {
	if e := c.EventOf(m); m.tags == nil && e != nil {
		return c.TagsOf(e)
	}
	return rowsOf(&c.Tags, m.tags)
}

// EventsOfTag are the events that have a tag.
func (c *Catalog) EventsOfTag(t *Tag) []*Event { return rowsOf(&c.Events, t.events) }

// EventCount is how many events have a tag.
func (c *Catalog) EventCount(t *Tag) int { return len(t.events) }

// EventsOfSeries are the events of a series in the order of their ids.
func (c *Catalog) EventsOfSeries(s *Series) []*Event { return rowsOf(&c.Events, s.events) }

func rowsOf[T any](rows *Rows[T], numbers []int32) []*T {
	list := make([]*T, len(numbers))
	for i, no := range numbers {
		list[i] = rows.At(no)
	}
	return list
}

// MarketRecord reads the catalog's record of a market into buf. A market that is BookOnly has none,
// which is an error, as is a file that cannot be read.
func (c *Catalog) MarketRecord(m *Market, buf []byte) (Record, error) {
	return c.log.record(m.record, buf)
}

// BookRecord reads the order book's record of a market that has one (HasBook).
func (c *Catalog) BookRecord(m *Market, buf []byte) (Record, error) {
	return c.log.record(m.book, buf)
}

// EventRecord reads the record of an event.
func (c *Catalog) EventRecord(e *Event, buf []byte) (Record, error) {
	return c.log.record(e.record, buf)
}

// SeriesRecord reads the record of a series.
func (c *Catalog) SeriesRecord(s *Series, buf []byte) (Record, error) {
	return c.log.record(s.record, buf)
}

// TagRecord reads the record of a tag.
func (c *Catalog) TagRecord(t *Tag, buf []byte) (Record, error) {
	return c.log.record(t.record, buf)
}
