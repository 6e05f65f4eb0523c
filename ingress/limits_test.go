package ingress

import (
	"net"
	"testing"

	"github.com/valyala/fasthttp"

	"clobd/ingress/limits"
)

// TestCursorGoesElsewhere: where the catalog's list of markets is full, the order book's, which has
// a cursor, is not.
func TestCursorGoesElsewhere(t *testing.T) {
	h := newHouse(t, func(o *Options) { o.Windows = limits.New(o.Now) })
	admitted := func(uri string) bool {
		var ctx fasthttp.RequestCtx
		ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, nil)
		ctx.Request.SetRequestURI(uri)
		return h.server.admit(&ctx)
	}
	for n := 0; admitted("/markets?limit=5"); n++ {
		if n > 5000 {
			t.Fatal("the list is never full")
		}
	}
	if !admitted("/markets?limit=5&next_cursor=LTE=") || !admitted("/markets?next%5Fcursor=") {
		t.Error("a list with a cursor is full, too")
	}
	if admitted("/markets") {
		t.Error("the list is full no more")
	}
	if n := counted(t, h.server.metrics.limited); n != 2 {
		t.Errorf("the metric counts %v refusals", n)
	}
}
