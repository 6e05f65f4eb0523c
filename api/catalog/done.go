package catalog

import (
	"math"
	"slices"
	"strconv"
)

// done is the catalog that the editor has made. It may be called several times.
func (e *editor) done(live *liveBoard) *Catalog {
	c := &Catalog{
		Markets: e.markets.Rows, Events: e.events.Rows, Series: e.series.Rows, Tags: e.tags.Rows,
		names: e.names.Rows, log: e.log, live: live,
		byCondition: e.byCondition.done(), byToken: e.byToken.done(),
		byMarketID: e.byMarketID.done(), byMarketSlug: e.byMarketSlug.done(),
		byEventID: e.byEventID.done(), byEventSlug: e.byEventSlug.done(),
		bySeriesID: e.bySeriesID.done(), bySeriesSlug: e.bySeriesSlug.done(),
		byTagID: e.byTagID.done(), byTagSlug: e.byTagSlug.done(), byName: e.byName.done(),
	}
	c.ready(e.from, &changes{e.markets.changed, e.events.changed, e.series.changed, e.tags.changed})
	return c
}

// changes are the numbers of the rows that are new or changed.
type changes struct {
	markets, events, series, tags []int32
}

// ready makes what is derived from the rows, sharing with an older catalog what did not change.
func (c *Catalog) ready(from *Catalog, d *changes) {
	if d == nil {
		d = new(changes)
	}
	c.found = new(foundCache)
	c.orders = [kinds]*orders{marketOrders(&c.Markets), eventOrders(&c.Events),
		seriesOrders(&c.Series), tagOrders(&c.Tags)}
	var old *liveView
	if from != nil {
		for i, changed := range [kinds][]int32{d.markets, d.events, d.series, d.tags} {
			c.orders[i].follow(from.orders[i], changed)
		}
		c.markets = from.markets
		old = from.seen.Load()
	}
	c.markets.follow(c, d.markets, d.events)
	c.seen.Store(c.look(old, d.markets, d.events))
	c.findable(from, d)
}

// clone is the same catalog, to be changed before anybody sees it.
func (c *Catalog) clone() *Catalog {
	next := &Catalog{
		Markets: c.Markets, Events: c.Events, Series: c.Series, Tags: c.Tags,
		SearchEvents: c.SearchEvents, SearchTags: c.SearchTags, names: c.names, log: c.log,
		byCondition: c.byCondition, byToken: c.byToken, byMarketID: c.byMarketID,
		byMarketSlug: c.byMarketSlug, byEventID: c.byEventID, byEventSlug: c.byEventSlug,
		bySeriesID: c.bySeriesID, bySeriesSlug: c.bySeriesSlug, byTagID: c.byTagID,
		byTagSlug: c.byTagSlug, byName: c.byName,
		markets: c.markets, orders: c.orders, found: c.found, live: c.live,
	}
	next.seen.Store(c.seen.Load())
	return next
}

// gathered is the same catalog with a search in one piece.
func (c *Catalog) gathered() *Catalog {
	next := c.clone()
	events := make([]Document, 0, c.Events.Len())
	for e := range c.Events.All() {
		events = append(events, c.eventDocument(e))
	}
	next.SearchEvents = NewSearch(events)
	return next
}

// warm makes the lists that pages will most likely ask for.
func (c *Catalog) warm() {
	view := c.seen.Load()
	for _, o := range c.orders {
		for _, list := range o {
			list.list()
		}
	}
	for i := range view.byMarket {
		view.byMarket[i].list()
		view.byEvent[i].list()
	}
}

// findable makes the searches.
func (c *Catalog) findable(from *Catalog, d *changes) {
	var events, tags []Document
	for _, no := range d.events {
		e := c.Events.At(no) // made for this catalog, which nobody sees yet
		document := c.eventDocument(e)
		if from != nil && int(no) < from.Events.Len() {
			before := from.eventDocument(from.Events.At(no))
			if before.Volume = e.ranked; document.foundAs(&before) {
				continue
			}
		}
		e.ranked = document.Volume
		events = append(events, document)
	}
	switch {
	case from == nil || from.SearchEvents == nil || from.SearchEvents.Len() == 0:
		c.SearchEvents = NewSearch(events)
	case len(events) == 0:
		c.SearchEvents = from.SearchEvents
	default:
		c.SearchEvents = from.SearchEvents.With(events, nil)
	}
	if from != nil && len(d.tags) == 0 {
		c.SearchTags = from.SearchTags
		return
	}
	for t := range c.Tags.All() {
		tags = append(tags, Document{ID: strconv.Itoa(int(t.No)), Title: t.Label,
			Texts: []string{t.Slug}, Active: true, Volume: float64(len(t.events))})
	}
	c.SearchTags = NewSearch(tags)
}

// foundAs says whether a document is found as another one is: by the same words, and in about the
// same place. Volumes change all the time, and few of them by so much that it matters.
func (d *Document) foundAs(other *Document) bool {
	const much = 0.1
	return d.Title == other.Title && d.Active == other.Active &&
		slices.Equal(d.Texts, other.Texts) && slices.Equal(d.Marks, other.Marks) &&
		math.Abs(d.Volume-other.Volume) <= much*math.Abs(other.Volume)
}

// eventDocument is what an event is found by.
func (c *Catalog) eventDocument(e *Event) Document {
	d := Document{ID: strconv.Itoa(int(e.No)), Title: e.Title, Texts: []string{e.Slug},
		Active: e.Active && !e.Closed && !e.Archived, Volume: float64(e.Volume) / 1e6}
	sum := int64(0)
	for _, no := range e.markets {
		m := c.Markets.At(no)
		d.Texts = append(d.Texts, m.Question, m.Slug)
		sum += m.Volume
		for _, name := range c.Creators(m) {
			if mark := "creator:" + name; !slices.Contains(d.Marks, mark) {
				d.Marks = append(d.Marks, mark)
			}
		}
	}
	if e.Volume == 0 {
		d.Volume = float64(sum) / 1e6
	}
	for _, no := range e.tags {
		d.Texts = append(d.Texts, c.Tags.At(no).Label)
	}
	return d
}
