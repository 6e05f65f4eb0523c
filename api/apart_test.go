package api

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"clobd/api/wire"
	"clobd/engine"
)

// way is one of the ways to ask for a page.
type way struct {
	target, host string
	dialect      wire.Dialect
}

// send is the answer of a Handler.
func (w *way) send(h *Handler) []byte {
	ctx := ask("GET", w.target)
	if w.host != "" {
		ctx.Request.Header.SetHost(w.host)
	}
	if w.dialect != "" {
		ctx.Request.Header.Set(string(w.dialect)+"ADDRESS", "0x00")
	}
	h.Public(ctx)
	return ctx.Response.Body()
}

// bookWays are the ways to ask for pages of one of the order book's lists.
func bookWays(path string) (ways []way) {
	exact := func(n, from int) string {
		return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%d:%d", n, from))
	}
	cursors := []string{offset(0), offset(1), offset(2), offset(500), exact(1, 2), exact(2, 2),
		exact(2, 1), exact(1, 501), wire.EndCursor}
	for _, cursor := range cursors {
		for _, creator := range []string{"", "site", "0xab", "nobody"} {
			for _, d := range []wire.Dialect{"", wire.SVC, wire.POLY, wire.KUEST} {
				target := path + "?next_cursor=" + cursor
				if creator != "" {
					target += "&creator=" + creator
				}
				ways = append(ways, way{target: target, dialect: d})
			}
		}
	}
	return ways
}

// catalogWays are the ways to ask for pages of the catalog.
func catalogWays() (ways []way) {
	condition := listing(1, 100).Condition.Hex()
	for _, target := range []string{
		"/markets?limit=2", "/markets?limit=2&creator=site", "/markets?limit=2&include_tag=true",
		"/markets?limit=2&offset=1", "/markets?limit=2&order=id&ascending=false",
		"/markets?limit=2&tag_id=9", "/markets?id=1", "/markets/1", "/markets/1/tags",
		"/markets/slug/m1", "/markets/" + condition, "/markets/" + condition + "?creator=site",
		"/markets/" + condition + "?shape=catalog", "/markets/keyset?limit=2",
		"/markets/keyset?limit=2&order=question", "/markets/keyset?limit=2&include_tag=true",
		"/markets/keyset?limit=2&creator=0xab", "/events?limit=1", "/events?limit=1&creator=0xab",
		"/events/keyset?limit=1", "/events/keyset?limit=1&order=title",
		"/events/keyset?limit=1&order=title&ascending=true",
		"/events/pagination?limit=1&order=title",
		"/events/pagination?limit=1&order=title&ascending=true&offset=2",
		"/events/keyset?limit=2", "/events/pagination?limit=1", "/events/pagination?limit=2",
		"/events/1", "/events/slug/e1", "/events/pagination?limit=1&creator=site",
		"/events/pagination?limit=1&title_search=E1", "/events/1/tags", "/series",
		"/series?exclude_events=true", "/series/1", "/tags", "/tags/9", "/tags?limit=1",
		"/tags/9/related-tags/tags", "/tags/9/related-tags",
	} {
		for _, host := range []string{"localhost", "clob.localhost", "gamma.localhost"} {
			ways = append(ways, way{target: target, host: host})
		}
	}
	return ways
}

// eventText is the record of an event with its markets.
func eventText(no int, markets []string) string {
	return fmt.Sprintf(`{"id":"%d","slug":"e%d","title":"E%d",`+
		`"tags":[{"id":"9","label":"Nine","slug":"nine"},{"id":"1%d","label":"T%d","slug":"t%d"}],`+
		`"series":[{"id":"1","slug":"s","title":"S"}],"markets":[%s]}`,
		no, no, no, no, no, no, strings.Join(markets, ","))
}

// TestPagesApart: requests whose answers differ in anything never share a page. Each way to ask is
// held against a Handler that nobody else has asked.
func TestPagesApart(t *testing.T) {
	n := newNode(t)
	var records, event []string
	for c := 1; c <= 510; c++ {
		n.do(engine.Command{Kind: engine.List, Listing: listing(c, 100)})
		creator := `,"creator":"0xab"`
		if c == 1 || c > 505 {
			creator = `,"creator":"site"`
		}
		if event = append(event, marketText(c, creator)); c == 1 || c == 505 || c == 510 {
			records = append(records, eventText(len(records)+1, event))
			event = nil
		}
	}
	n.described(records...)
	n.do(engine.Command{Kind: engine.SetState, Market: 2, State: engine.Paused})
	for _, ways := range [][]way{catalogWays(), slices.Concat(bookWays("/clob/markets"),
		bookWays("/sampling-markets"), bookWays("/simplified-markets"),
		bookWays("/sampling-simplified-markets"))} {
		shared, different := n.another(), map[string]bool{}
		for i := range ways {
			want := ways[i].send(n.another())
			different[string(want)] = true
			for range 3 { // a page is kept from the second time on
				if got := ways[i].send(shared); !bytes.Equal(got, want) {
					t.Fatalf("%+v: the page of another request:\n%.300s … %s\nwant:\n%.300s … %s", ways[i],
						got, got[max(len(got)-80, 0):], want, want[max(len(want)-80, 0):])
				}
			}
		}
		if len(different) < len(ways)/9 {
			t.Errorf("%+v and others: %d different pages of %d", ways[0], len(different), len(ways))
		}
	}
}

// another is a Handler like the node's, with pages of its own.
func (n *node) another() *Handler {
	n.t.Helper()
	h, err := New(n.handler.o)
	n.must(err)
	return h
}
