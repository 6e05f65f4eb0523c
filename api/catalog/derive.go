package catalog

// finish is the catalog that the editor has made. It may be called several times.
func (e *editor) finish(live *liveBoard) *Catalog {
	c := &Catalog{
		Markets: e.markets.Rows, Events: e.events.Rows, Series: e.series.Rows, Tags: e.tags.Rows,
		names: e.names.Rows, log: e.log, live: live,
		byCondition: e.byCondition.done(), byToken: e.byToken.done(),
		byMarketID: e.byMarketID.done(), byMarketSlug: e.byMarketSlug.done(),
		byEventID: e.byEventID.done(), byEventSlug: e.byEventSlug.done(),
		bySeriesID: e.bySeriesID.done(), bySeriesSlug: e.bySeriesSlug.done(),
		byTagID: e.byTagID.done(), byTagSlug: e.byTagSlug.done(), byName: e.byName.done(),
	}
	derive(c, e.from, &changes{e.markets.changed, e.events.changed, e.series.changed, e.tags.changed})
	return c
}

// changes are the numbers of the rows that are new or changed.
type changes struct {
	markets, events, series, tags []int32
}

// derive makes what is derived from the rows, sharing with an older catalog what did not change.
func derive(c *Catalog, from *Catalog, d *changes) {
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
	c.seen.Store(viewOf(c, old, d.markets, d.events))
	findable(c, from, d)
}

// clone is the same catalog, to be changed before anybody sees it.
func clone(c *Catalog) *Catalog {
	next := &Catalog{
		Markets: c.Markets, Events: c.Events, Series: c.Series, Tags: c.Tags,
		searchEvents: c.searchEvents, searchTags: c.searchTags, ranks: c.ranks,
		names: c.names, log: c.log,
		byCondition: c.byCondition, byToken: c.byToken, byMarketID: c.byMarketID,
		byMarketSlug: c.byMarketSlug, byEventID: c.byEventID, byEventSlug: c.byEventSlug,
		bySeriesID: c.bySeriesID, bySeriesSlug: c.bySeriesSlug, byTagID: c.byTagID,
		byTagSlug: c.byTagSlug, byName: c.byName,
		markets: c.markets, orders: c.orders, found: c.found, live: c.live,
	}
	next.seen.Store(c.seen.Load())
	return next
}

// warm makes the lists that pages will most likely ask for.
func warm(c *Catalog) {
	view := c.seen.Load()
	for _, o := range c.orders {
		for _, list := range o {
			list.list()
		}
	}
	for i := range liveOrders {
		view.byMarket[i].list()
		view.byEvent[i].list()
	}
}
