package catalog

import (
	"sync/atomic"

	"clobd/api/catalog/search"
	"clobd/engine"
)

// Catalog describes markets: the question of a condition, the labels of its outcomes, its event,
// and that event's series and tags. A Catalog never changes; a newer one replaces it whole and
// shares what did not change. A nil Catalog describes nothing. Any number of goroutines may ask.
type Catalog struct {
	// Markets are all described markets, tradable or not, in the order of their arrival.
	Markets Rows[Market]
	Events  Rows[Event]
	Series  Rows[Series]
	Tags    Rows[Tag]

	log   *recordLog
	names Rows[string] // of the makers of markets, in lower case
	// The searches find numbers of rows.
	searchEvents, searchTags *search.Index
	ranks                    []searchRank // in the search, by the row numbers of events

	tables  [tables]hashTable
	markets marketColumns
	orders  [kinds]*orders
	found   *foundCache
	live    *liveBoard
	seen    *atomic.Pointer[liveView] // the last live values, made for the rows of this catalog
}

// The tables of a Catalog, by their keys.
const (
	byCondition = iota
	byToken
	byMarketID
	byMarketSlug
	byEventID
	byEventSlug
	bySeriesID
	bySeriesSlug
	byTagID
	byTagSlug
	byName
	tables
)

// Empty returns a catalog that describes nothing.
func Empty() *Catalog { return edit(&Catalog{}, nil, 0).finish(nil) }

// orEmpty lets a nil Catalog be asked like an empty one.
func (c *Catalog) orEmpty() *Catalog {
	if c == nil {
		return &Catalog{}
	}
	return c
}

// lookup returns the row that a table has under a hash and that matches; of several rows the one
// with the lowest number, nil if there is none.
func lookup[T any](t *hashTable, rows *Rows[T], hash uint32, matches func(*T) bool) *T {
	best := None
	t.find(hash, func(no int32) bool {
		if row := rows.At(no); row != nil && (best == None || no < best) && matches(row) {
			best = no
		}
		return true
	})
	return rows.At(best)
}

// named is lookup by a text, which of reads from a row; an empty text names nothing.
func named[T any](t *hashTable, rows *Rows[T], key string, of func(*T) string) *T {
	if key == "" {
		return nil
	}
	return lookup(t, rows, hashText(key), func(row *T) bool { return of(row) == key })
}

// Market returns the description of a condition, nil if there is none.
func (c *Catalog) Market(cond engine.Condition) *Market {
	c = c.orEmpty()
	return lookup(&c.tables[byCondition], &c.Markets, hashBytes(cond[:]),
		func(m *Market) bool { return m.Condition == cond })
}

// MarketByID returns the market of a catalog's id, nil if there is none.
func (c *Catalog) MarketByID(id string) *Market {
	c = c.orEmpty()
	return named(&c.tables[byMarketID], &c.Markets, id, func(m *Market) string { return m.ID })
}

// MarketBySlug returns the market of a slug, nil if there is none.
func (c *Catalog) MarketBySlug(slug string) *Market {
	c = c.orEmpty()
	return named(&c.tables[byMarketSlug], &c.Markets, slug, func(m *Market) string { return m.Slug })
}

// MarketByToken returns the market of a token and the outcome that the token stands for, nil if
// there is none.
func (c *Catalog) MarketByToken(t engine.Token) (*Market, engine.Outcome) {
	if t == (engine.Token{}) {
		return nil, 0
	}
	c = c.orEmpty()
	m := lookup(&c.tables[byToken], &c.Markets, hashBytes(t[:]),
		func(m *Market) bool { return m.Tokens[0] == t || m.Tokens[1] == t })
	if m != nil && m.Tokens[1] == t {
		return m, 1
	}
	return m, 0
}

// EventByID returns the event of an id, nil if there is none.
func (c *Catalog) EventByID(id string) *Event {
	c = c.orEmpty()
	return named(&c.tables[byEventID], &c.Events, id, func(e *Event) string { return e.ID })
}

// EventBySlug returns the event of a slug, nil if there is none.
func (c *Catalog) EventBySlug(slug string) *Event {
	c = c.orEmpty()
	return named(&c.tables[byEventSlug], &c.Events, slug, func(e *Event) string { return e.Slug })
}

// SeriesByID returns the series of an id, nil if there is none.
func (c *Catalog) SeriesByID(id string) *Series {
	c = c.orEmpty()
	return named(&c.tables[bySeriesID], &c.Series, id, func(s *Series) string { return s.ID })
}

// SeriesBySlug returns the series of a slug, nil if there is none.
func (c *Catalog) SeriesBySlug(slug string) *Series {
	c = c.orEmpty()
	return named(&c.tables[bySeriesSlug], &c.Series, slug, func(s *Series) string { return s.Slug })
}

// TagByID returns the tag of an id, nil if there is none.
func (c *Catalog) TagByID(id string) *Tag {
	c = c.orEmpty()
	return named(&c.tables[byTagID], &c.Tags, id, func(t *Tag) string { return t.ID })
}

// TagBySlug returns the tag of a slug, nil if there is none.
func (c *Catalog) TagBySlug(slug string) *Tag {
	c = c.orEmpty()
	return named(&c.tables[byTagSlug], &c.Tags, slug, func(t *Tag) string { return t.Slug })
}

// Label returns the catalog's label of an outcome; without one, Yes for outcome 0 and No for 1.
func (c *Catalog) Label(cond engine.Condition, o engine.Outcome) string {
	if m := c.Market(cond); m != nil && int(o) < len(m.Outcomes) {
		return m.Outcomes[o]
	}
	if o == 0 {
		return "Yes"
	}
	return "No"
}

// EventOf returns the event of a market, nil if there is none.
func (c *Catalog) EventOf(m *Market) *Event {
	if c == nil || m == nil {
		return nil
	}
	return c.Events.At(m.EventNo)
}

// MarketsOf returns the markets of an event in the order of their arrival.
func (c *Catalog) MarketsOf(e *Event) []*Market { return rowsOf(&c.Markets, e.markets) }

// TagsOf returns the tags of an event in the order of its record.
func (c *Catalog) TagsOf(e *Event) []*Tag { return rowsOf(&c.Tags, e.tags) }

// MarketTags returns a market's own tags, or those of its event if it has none.
func (c *Catalog) MarketTags(m *Market) []*Tag {
	if e := c.EventOf(m); m.tags == nil && e != nil {
		return c.TagsOf(e)
	}
	return rowsOf(&c.Tags, m.tags)
}

// EventsOfTag returns the events that have a tag.
func (c *Catalog) EventsOfTag(t *Tag) []*Event { return rowsOf(&c.Events, t.events) }

// EventCount counts the events that have a tag.
func (c *Catalog) EventCount(t *Tag) int { return len(t.events) }

// EventsOfSeries returns the events of a series in the order of their ids.
func (c *Catalog) EventsOfSeries(s *Series) []*Event { return rowsOf(&c.Events, s.events) }

func rowsOf[T any](rows *Rows[T], numbers []int32) []*T {
	list := make([]*T, len(numbers))
	for i, no := range numbers {
		list[i] = rows.At(no)
	}
	return list
}

// MarketRecord reads the catalog's record of a market into buf. The errors: a BookOnly market has
// no such record, or the file cannot be read.
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
