package catalog

import "sync/atomic"

// finish returns the catalog that the editor has made. It is called once.
func (e *editor) finish(live *liveBoard) *Catalog {
	c := e.next
	c.live = live
	for i := range c.tables {
		c.tables[i].settle()
	}
	c.found, c.seen = new(foundCache), new(atomic.Pointer[liveView])
	c.orders = [kinds]*orders{marketOrders(&c.Markets), eventOrders(&c.Events),
		seriesOrders(&c.Series), tagOrders(&c.Tags)}
	for i, changed := range [kinds][]int32{e.markets.changed, e.events.changed, e.series.changed,
		e.tags.changed} {
		c.orders[i].follow(e.from.orders[i], changed)
	}
	var old *liveView
	if e.from.seen != nil {
		old = e.from.seen.Load()
	}
	c.markets.follow(c, e.markets.changed, e.events.changed)
	c.seen.Store(viewOf(c, old, e.markets.changed, e.events.changed))
	e.index()
	return c
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
