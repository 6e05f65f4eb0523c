package api

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
)

// described reads a catalog of records.
func (n *node) described(records ...string) {
	n.t.Helper()
	c, r, err := readCatalog(strings.NewReader(strings.Join(records, "\n")),
		catalog.Options{Live: n.handler.o.Values.Live})
	n.must(err)
	if r.Broken+r.Refused > 0 {
		n.t.Fatal(r.Bad)
	}
	n.catalog = c
}

// marketText is the record of market c, whose tokens are those of listing(c).
func marketText(c int, more string) string {
	return fmt.Sprintf(`{"id":"%d","slug":"m%d","question":"Number %d?","conditionId":%q,`+
		`"outcomes":"[\"Yes\",\"No\"]","clobTokenIds":"[\"%d\",\"%d\"]"%s}`,
		c, c, c, listing(c, 100).Condition.Hex(), 10*c, 10*c+1, more)
}

// get is the answer to a request, which must have a status.
func (n *node) get(path string, status int) []byte {
	n.t.Helper()
	ctx := ask("GET", path)
	n.handler.Public(ctx)
	if ctx.Response.StatusCode() != status {
		n.t.Fatalf("%s: %d %s", path, ctx.Response.StatusCode(), ctx.Response.Body())
	}
	return ctx.Response.Body()
}

// read reads an answer into v.
func (n *node) read(path string, v any) {
	n.t.Helper()
	n.must(json.Unmarshal(n.get(path, fasthttp.StatusOK), v))
}

// TestNotModified: who has an answer is not sent it again, as long as it is the same.
func TestNotModified(t *testing.T) {
	n := newNode(t)
	n.described(marketText(1, ""))
	ctx := ask("GET", "/markets")
	n.handler.Public(ctx)
	tag := string(ctx.Response.Header.Peek("ETag"))
	again := ask("GET", "/markets")
	again.Request.Header.Set("If-None-Match", tag)
	n.handler.Public(again)
	if again.Response.StatusCode() != 304 || len(again.Response.Body()) != 0 || tag == "" {
		t.Errorf("%q: %d %s", tag, again.Response.StatusCode(), again.Response.Body())
	}
	star := ask("GET", "/markets")
	star.Request.Header.Set("If-None-Match", " * ")
	if n.handler.Public(star); star.Response.StatusCode() != 304 {
		t.Errorf("any tag at all: %d", star.Response.StatusCode())
	}
	n.do(engine.Command{Kind: engine.List, Listing: listing(1, 100)})
	again.Response.Reset()
	n.handler.Public(again)
	if again.Response.StatusCode() != 200 {
		t.Errorf("the same tag of another answer: %d", again.Response.StatusCode())
	}
}

// TestTagsOfScope: the tags of what a site does not offer are not told to it.
func TestTagsOfScope(t *testing.T) {
	n := newNode(t)
	n.described(`{"id":"7","slug":"e","title":"E","tags":[{"id":"3","label":"Sky","slug":"sky"}],` +
		`"markets":[` + marketText(1, `,"creator":"site.example"`) + `]}`)
	for _, path := range []string{"/markets/1/tags", "/markets/" + listing(1, 100).Condition.Hex() +
		"/tags", "/events/7/tags"} {
		var tags []struct{ Slug string }
		if n.read(path+"?creator=Site.Example", &tags); len(tags) != 1 || tags[0].Slug != "sky" {
			t.Errorf("%s: %v", path, tags)
		}
		n.get(path+"?creator=other.example", fasthttp.StatusNotFound)
	}
}

// TestHosts: a host's name says which list is meant, unless the path does.
func TestHosts(t *testing.T) {
	n := newNode(t)
	n.described(marketText(1, ""))
	id := listing(1, 100).Condition.Hex()
	for _, c := range []struct{ host, path, want string }{
		{"clob.example:80", "/markets", `{"data":[`},
		{"gamma-api.example", "/markets?next_cursor=MA==", `[{"id":"1"`},
		{"gamma-api.example", "/clob/markets", `{"data":[`},
		{"node.example", "/markets", `[{"id":"1"`},
		{"clob.example", "/markets/" + id, `{"enable_order_book":`},
		{"gamma.example", "/markets/" + id, `{"id":"1","slug":"m1"`},
		{"clob.example", "/gamma/markets/" + id, `{"id":"1","slug":"m1"`},
	} {
		ctx := ask("GET", c.path)
		ctx.Request.SetHost(c.host)
		n.handler.Public(ctx)
		if body := string(ctx.Response.Body()); !strings.HasPrefix(body, c.want) {
			t.Errorf("%s%s: %.60s, want %s", c.host, c.path, body, c.want)
		}
	}
}

// TestWritings: what clients of several languages write is understood: truth in any letters that
// are in use, numbers that are too large as the largest.
func TestWritings(t *testing.T) {
	n := newNode(t)
	n.described(marketText(1, `,"closed":true`), marketText(2, ""))
	for query, want := range map[string]string{
		"closed=True": "1", "closed=TRUE": "1", "closed=true": "1", "closed=1": "1",
		"closed=False": "2", "closed=FALSE": "2", "closed=0": "2", "closed=": "12",
		"limit=1&closed=False&active=True": "2", "limit=99999999999999999999": "12",
		"offset=99999999999999999999": "", "limit=4294967297": "12", "offset=1": "2",
		"order=volume&ascending=True&limit=1": "1",
	} {
		var rows []struct{ ID string }
		n.read("/markets?"+query, &rows)
		got := ""
		for _, m := range rows {
			got += m.ID
		}
		if got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{"closed=yes", "closed=tRUE", "limit=0", "limit=-1", "limit=1e3",
		"limit=-99999999999999999999", "offset=-1", "order=volumes", "order=volume,",
		"order=closedAt", "order=liquidityx", "ascending=up"} {
		n.get("/markets?"+query, fasthttp.StatusBadRequest)
	}
	n.get("/public-search?q=number&search_tags=False", fasthttp.StatusOK)
	n.get("/positions?redeemable=False&user=0x"+strings.Repeat("0", 40), fasthttp.StatusOK)
	n.get("/positions?redeemable=nO&user=0x"+strings.Repeat("0", 40), fasthttp.StatusBadRequest)
}

// TestLongKeyset: a page of a list with cursors ends before it is too long, and the list goes on.
func TestLongKeyset(t *testing.T) {
	n := newNode(t)
	var records []string
	for e := range 12 {
		more := fmt.Sprintf(`,"description":%q`, strings.Repeat("x", 1<<20))
		records = append(records, fmt.Sprintf(`{"id":"%d","slug":"e%d","title":"E","markets":[%s]}`,
			e+1, e+1, marketText(e+1, more)))
	}
	n.described(records...)
	var ids []string
	pages, next := 0, ""
	for more := true; more; pages++ {
		var page struct {
			Events []struct {
				ID      string
				Markets []struct{ ID string }
			}
			Next string `json:"next_cursor"`
		}
		n.read("/events/keyset?limit=100&after_cursor="+next, &page)
		for _, e := range page.Events {
			if len(e.Markets) != 1 || e.Markets[0].ID != e.ID {
				t.Fatalf("event %s: %v", e.ID, e.Markets)
			}
			ids = append(ids, e.ID)
		}
		next, more = page.Next, page.Next != ""
	}
	if strings.Join(ids, " ") != "1 2 3 4 5 6 7 8 9 10 11 12" || pages != 3 {
		t.Errorf("%d pages: %v", pages, ids)
	}
}

// TestLongSeries: of a series with more events than fit the latest are told.
func TestLongSeries(t *testing.T) {
	n := newNode(t)
	var records []string
	for e := range 6 {
		records = append(records, fmt.Sprintf(`{"id":"%d","slug":"e%d","title":"E","description":%q,`+
			`"series":[{"id":"1","title":"S","slug":"s","seriesType":"single"}],"markets":[]}`,
			e+1, e+1, strings.Repeat("x", 1<<20)))
	}
	n.described(records...)
	var one struct{ Events []struct{ ID string } }
	n.read("/series/1", &one)
	if len(one.Events) != 3 || one.Events[0].ID != "6" || one.Events[2].ID != "4" {
		t.Errorf("%v", one.Events)
	}
}

// TestBookOrdinals: the order book's list has what is described and then what only trades, each
// once, whatever a page begins with.
func TestBookOrdinals(t *testing.T) {
	n := newNode(t)
	const all = 2*500 + 7
	var records []string
	for c := 1; c <= all; c++ {
		if c%3 == 0 {
			n.do(engine.Command{Kind: engine.List, Listing: listing(c, 100)})
		}
		if c%3 != 0 || c%2 == 0 {
			records = append(records, marketText(c, ""))
		}
	}
	for range 2 { // once without a catalog
		seen := map[string]int{}
		pages, next := 0, "MA=="
		for ; next != wire.EndCursor; pages++ {
			var page struct {
				Data []struct {
					ID      string `json:"condition_id"`
					Accepts bool   `json:"accepting_orders"`
				}
				Next  string `json:"next_cursor"`
				Count int
			}
			n.read("/simplified-markets?next_cursor="+next, &page)
			for _, m := range page.Data {
				seen[m.ID]++
			}
			if page.Count != len(page.Data) || page.Count == 0 || len(page.Data) > 500 {
				t.Fatalf("page %d: %d of %d", pages, page.Count, len(page.Data))
			}
			next = page.Next
		}
		want := all / 3
		if n.catalog.Markets.Len() > 0 {
			want = all
		}
		if len(seen) != want {
			t.Errorf("%d markets, want %d", len(seen), want)
		}
		for id, times := range seen {
			if times != 1 {
				t.Errorf("%s came %d times", id, times)
			}
		}
		n.described(records...)
	}
}

// TestWithoutCatalog: a node without one answers empty lists and finds nothing.
func TestWithoutCatalog(t *testing.T) {
	n := newNode(t)
	for _, n.catalog = range []*catalog.Catalog{nil, catalog.Empty()} {
		for _, path := range []string{"/markets", "/events", "/series", "/tags"} {
			if got := string(n.get(path, fasthttp.StatusOK)); got != "[]" {
				t.Errorf("%s: %s", path, got)
			}
		}
		for _, list := range []string{"markets", "events"} {
			if got := string(n.get("/"+list+"/keyset", 200)); got != `{"`+list+`":[]}` {
				t.Errorf("%s: %s", list, got)
			}
		}
		for _, path := range []string{"/markets/1", "/markets/1/tags", "/markets/slug/x", "/events/1",
			"/events/slug/x", "/events/1/tags", "/series/1", "/tags/1", "/tags/slug/x"} {
			n.get(path, fasthttp.StatusNotFound)
		}
	}
}

// TestLiveMembers: a market that trades has its figures from the book and the index, an event the
// sums over its markets; what is closed here is closed.
func TestLiveMembers(t *testing.T) {
	n := newNode(t)
	n.run()
	for c := range 2 {
		n.do(engine.Command{Kind: engine.List, Listing: listing(c+1, 100)})
	}
	a, b := n.fund("a", 1, 1000, 1000), n.fund("b", 1, 1000, 1000)
	n.described(`{"id":"5","slug":"e","title":"E","volume":1000,"closed":false,"liquidityAmm":3,` +
		`"markets":[` + marketText(1, `,"volume":"600","bestBid":0.9,"oneDayPriceChange":0.1,`+
		`"volume24hr":7,"volume1wkClob":7,"volumeAmm":"5","volume24hrAmm":6`) + `,` +
		marketText(2, `,"volume":"400","liquidity":3`) + `,` + marketText(3, `,"volume":"5"`) + `]}`)
	n.do(place("buy", a, quote{1, 0, engine.Buy, 2000, 4000}),
		place("sell", a, quote{1, 0, engine.Sell, 1000, 6000}),
		place("take", b, quote{1, 0, engine.Sell, 500, 4000}))
	if !n.index.History.Await(n.head.Sequence, time.Minute) {
		t.Fatal("the index lags")
	}
	want := `"volume":"2","bestBid":0.4,"volume24hr":2,"volume1wkClob":2,"volumeAmm":"0",` +
		`"volume24hrAmm":0,"outcomePrices":"[\"0.5\", \"0.5\"]","bestAsk":0.6,` +
		`"spread":0.2,"lastTradePrice":0.4,"volumeNum":2,"liquidity":"12","liquidityNum":12,` +
		`"closed":false,"acceptingOrders":true,"orderPriceMinTickSize":0.01,"orderMinSize":5,` +
		`"volume1wk":2,"volume1mo":2,"volume1yr":2,"events"`
	if got := string(n.get("/markets/1", 200)); !strings.Contains(got, want) ||
		strings.Contains(got, "oneDay") {
		t.Errorf("%s\nhas no %s", got, want)
	}
	var e struct {
		Volume, Liquidity float64
		Pool              *float64 `json:"liquidityAmm"`
		Closed            bool
	}
	n.read("/events/5", &e)
	if e.Volume != 7 || e.Liquidity != 12 || e.Closed || e.Pool == nil || *e.Pool != 0 {
		t.Errorf("%+v", e)
	}
	n.do(engine.Command{Kind: engine.Resolve, Market: 1, Price: engine.PriceOne, ID: orderID("r")})
	var m struct {
		Prices  string `json:"outcomePrices"`
		Closed  bool
		Accepts bool `json:"acceptingOrders"`
	}
	n.read("/markets/1", &m)
	if m.Prices != `["1", "0"]` || !m.Closed || m.Accepts {
		t.Errorf("%+v", m)
	}
}

// readCatalog is a catalog of the records of a text.
func readCatalog(r io.Reader, o catalog.Options) (*catalog.Catalog, catalog.Report, error) {
	store, err := catalog.Open(o)
	if err != nil {
		return nil, catalog.Report{}, err
	}
	if report, err := store.Begin(); err != nil {
		return nil, report, err
	}
	report, err := store.Read(r)
	return store.Current(), report, err
}
