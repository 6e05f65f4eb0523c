package gamma

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/pages"
	"clobd/engine/view"
	"clobd/journal/history"
)

const records = `{"id":"7","slug":"weather","title":"Weather","markets":[` +
	`{"id":"71","slug":"rain","question":"Will it rain?","volumeNum":5,` +
	`"conditionId":"0x0000000000000000000000000000000000000000000000000000000000000001",` +
	`"outcomes":"[\"Yes\",\"No\"]","clobTokenIds":"[\"10\",\"11\"]"},` +
	`{"id":"72","slug":"snow","question":"Will it snow?","volumeNum":9,` +
	`"conditionId":"0x0000000000000000000000000000000000000000000000000000000000000002",` +
	`"outcomes":"[\"Yes\",\"No\"]","clobTokenIds":"[\"20\",\"21\"]"}]}`

// described is a Gamma of one event with two markets, none of which trades here.
func described(t *testing.T) *Gamma {
	t.Helper()
	store, err := catalog.Open(catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Begin(); err != nil {
		t.Fatal(err)
	}
	r, err := store.Read(strings.NewReader(records))
	if err != nil || r.Broken+r.Refused > 0 {
		t.Fatal(err, r.Bad)
	}
	c := store.Current()
	board := view.NewBoard()
	return New(Options{
		Board: board, Catalog: func() *catalog.Catalog { return c },
		Values: NewValues(board, new(history.History), nil), Pages: pages.New(),
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

// TestRendering: a market and an event are told as their source wrote them.
func TestRendering(t *testing.T) {
	g := described(t)
	d := g.describer(g.o.Catalog())
	defer d.done()
	m := string(d.oneMarket(nil, d.c.MarketByID("71")))
	for _, want := range []string{
		`"id":"71"`, `"question":"Will it rain?"`, `"volumeNum":5`, `"events":[{"id":"7",`,
	} {
		if !strings.Contains(m, want) {
			t.Errorf("no %s in the market %s", want, m)
		}
	}
	e := d.c.EventByID("7")
	whole, listed := string(d.wholeEvent(nil, e)), string(d.listedEvent(nil, e))
	for _, want := range []string{`"tags":[]`, `"series":[]`, `"markets":[{"id":"71",`} {
		if !strings.Contains(whole, want) {
			t.Errorf("no %s in the event %s", want, whole)
		}
	}
	if strings.Contains(listed, `"markets"`) || !strings.Contains(listed, `"title":"Weather"`) {
		t.Errorf("the event in a list: %s", listed)
	}
	if d.err != nil {
		t.Error(d.err)
	}
}

// TestOrderAndCursor: a list is sorted as asked, and the cursor of a page begins the next page.
func TestOrderAndCursor(t *testing.T) {
	g := described(t)
	page := func(query string) string {
		var ctx fasthttp.RequestCtx
		ctx.Request.SetRequestURI("/markets/keyset?order=volume&limit=1" + query)
		markets.list(g, (*describer).listedMarket, true)(&ctx)
		return string(ctx.Response.Body())
	}
	first := page("")
	_, after, more := strings.Cut(first, `"next_cursor":"`)
	if !strings.Contains(first, `"markets":[{"id":"72"`) || !more {
		t.Fatalf("the first page: %s", first)
	}
	second := page("&after_cursor=" + strings.TrimSuffix(after, `"}`))
	if !strings.Contains(second, `"markets":[{"id":"71"`) || strings.Contains(second, "next_cursor") {
		t.Errorf("the second page: %s", second)
	}
	if up := page("&ascending=true"); !strings.Contains(up, `"markets":[{"id":"71"`) {
		t.Errorf("the first page upwards: %s", up)
	}
	if wrong := page("&after_cursor=x"); !strings.Contains(wrong, "after_cursor is invalid") {
		t.Errorf("a wrong cursor: %s", wrong)
	}
}
