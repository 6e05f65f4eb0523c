package gamma

import (
	"strconv"

	"github.com/valyala/fasthttp"
)

// countedEvents answers with a page of events, and with how many events there are on all pages.
func (g *Gamma) countedEvents(ctx *fasthttp.RequestCtx) {
	w := ask(ctx)
	q := w.ofEvents()
	if w.Refused != nil {
		w.Refused.Send(ctx)
		return
	}
	c := g.o.Catalog()
	w.relate(c, q)
	q.Count = true
	page, _ := c.QueryEvents(q) // only a cursor can be wrong
	more := q.Offset+len(page.Rows) < page.Total
	key := keyOf("events page").with(more).from(uint64(page.Total))
	for _, e := range page.Rows {
		key = key.of(e.No)
	}
	g.write(ctx, c, key, func(d *describer, b []byte) []byte {
		b = append(b, `{"data":[`...)
		for _, e := range page.Rows {
			b = d.listedEvent(b, e)
		}
		b = strconv.AppendBool(append(b, `],"pagination":{"hasMore":`...), more)
		b = strconv.AppendInt(append(b, `,"totalResults":`...), int64(page.Total), 10)
		return append(b, '}', '}')
	})
}
