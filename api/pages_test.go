package api

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/valyala/fasthttp"

	"clobd/engine"
)

// manyMarkets is a node with so many markets.
func manyMarkets(t *testing.T, markets int) *node {
	n := newNode(t)
	n.run()
	var list []engine.Command
	for m := 1; m <= markets; m++ {
		list = append(list, engine.Command{Kind: engine.List, Listing: listing(m, 100)})
	}
	n.do(list...)
	return n
}

// answer is the answer to a public request.
func (n *node) answer(method, target string) *fasthttp.RequestCtx {
	ctx := ask(method, target)
	n.handler.Public(ctx)
	if ctx.Response.StatusCode() != fasthttp.StatusOK {
		n.t.Fatalf("%s %s: %s", method, target, ctx.Response.Body())
	}
	return ctx
}

// TestSharedPages: all who ask for a page of a list get the same bytes in memory, whatever
// parameters without a meaning they send, until a market in it changes.
func TestSharedPages(t *testing.T) {
	n := manyMarkets(t, 200)
	for _, target := range []string{
		"/clob/markets?next_cursor=MA==", "/simplified-markets", "/sampling-markets",
		"/sampling-simplified-markets", "/markets?next_cursor=MQ==",
	} {
		n.answer("GET", target)
		first := n.answer("GET", target).Response.Body()
		separator := "?"
		if bytes.ContainsRune([]byte(target), '?') {
			separator = "&"
		}
		for i := range 3 {
			again := n.answer("HEAD", fmt.Sprint(target, separator, "x=", i)).Response.Body()
			if &again[0] != &first[0] {
				t.Errorf("%s: a page is made again", target)
			}
		}
		if len(first) < 32<<10 {
			t.Errorf("%s: %d bytes", target, len(first))
		}
		closing := engine.MarketNo(len(first)%200 + 1)
		n.do(engine.Command{Kind: engine.SetState, Market: closing, State: engine.Paused})
		changed := n.answer("GET", target).Response.Body()
		if bytes.Equal(changed, first) {
			t.Errorf("%s: market %d is paused, and the page is the old one", target, closing)
		}
		n.do(engine.Command{Kind: engine.SetState, Market: closing, State: engine.Open})
	}
}

// TestFreshPages: a small page shows every acknowledged change of a book at once.
func TestFreshPages(t *testing.T) {
	n := manyMarkets(t, 3)
	w := n.fund("maker", 1, 1_000_000, 1000)
	for i := range 20 {
		n.answer("GET", "/simplified-markets")
		price := engine.Price(100 + 100*i)
		n.do(place(fmt.Sprint("bid", i), w, quote{1, 0, engine.Buy, 1000, price}))
		n.do(place(fmt.Sprint("ask", i), w, quote{1, 0, engine.Sell, 1000, price + 5000}))
		bid, ask := n.board.Condition(listing(1, 100).Condition).Best(0)
		want := engine.AppendDecimal([]byte(`"price":`), 5*int64(bid+ask), 5)
		if got := n.answer("GET", "/simplified-markets").Response.Body(); !bytes.Contains(got, want) {
			t.Fatalf("no %s in %s", want, got)
		}
	}
}
