package catalog

// finish is the catalog that the editor has made. It may be called several times.
func (e *editor) finish(live *liveBoard) *Catalog {
	c := &Catalog{content: content{
		Markets: e.markets.Rows, Events: e.events.Rows, Series: e.series.Rows, Tags: e.tags.Rows,
		names: e.names.Rows, log: e.log, live: live, tables: e.tables,
	}}
	c.tables.done()
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
	next := &Catalog{content: c.content}
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
