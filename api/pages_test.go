package api

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

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

// TestGzipRoutes: large public answers are compressed for those who want that; books, what belongs
// to an account, refusals and small answers never are.
func TestGzipRoutes(t *testing.T) {
	n := newNode(t)
	n.run()
	n.ladder(50)
	asks := func(method, target, body string) *fasthttp.RequestCtx {
		ctx := ask(method, target)
		ctx.Request.Header.Set("Accept-Encoding", "gzip, deflate, br")
		ctx.Request.SetBodyString(body)
		return ctx
	}
	for _, c := range []struct {
		method, target, body string
		packed               bool
	}{
		{"GET", "/clob/markets?next_cursor=MA==", "", true},
		{"HEAD", "/clob/markets", "", true},
		{"GET", "/openapi.json", "", true},
		{"GET", "/book?token_id=10", "", false},
		{"GET", "/clob/book?token_id=10", "", false},
		{"POST", "/books", `[{"token_id":"10"}]`, false},
		{"GET", "/midpoint?token_id=10", "", false},
		{"GET", "/simplified-markets?next_cursor=x", "", false},
	} {
		ctx, plain := asks(c.method, c.target, c.body), ask(c.method, c.target)
		n.handler.Public(ctx)
		plain.Request.SetBodyString(c.body)
		n.handler.Public(plain)
		header := &ctx.Response.Header
		packed := string(header.Peek("Content-Encoding")) == "gzip"
		if varies := len(header.Peek("Vary")) > 0; packed != c.packed || varies != c.packed {
			t.Errorf("%s %s: %s", c.method, c.target, header)
		}
		body := ctx.Response.Body()
		if packed {
			var err error
			body, err = ctx.Response.BodyGunzip()
			n.must(err)
		}
		if !bytes.Equal(body, plain.Response.Body()) {
			t.Errorf("%s %s: other bytes", c.method, c.target)
		}
	}
	ctx := asks("GET", "/data/orders", "")
	if !n.index.History.Await(n.head.Sequence, time.Minute) {
		t.Fatal("the index lags")
	}
	n.handler.Account(ctx, trader("maker"), "POLY_")
	header, size := &ctx.Response.Header, len(ctx.Response.Body())
	if size <= 1024 || len(header.Peek("Vary"))+len(header.Peek("Content-Encoding")) > 0 {
		t.Errorf("%d bytes of an account: %s", size, header)
	}
}

// TestHeadLikeGet: over HTTP the head of an answer to HEAD is that of GET, in either encoding, and
// the next answer of the connection is not disturbed.
func TestHeadLikeGet(t *testing.T) {
	s := newScript(t)
	head := func(raw []byte) string {
		text, _, _ := strings.Cut(string(raw), "\r\n\r\n")
		var kept []string
		for _, line := range strings.Split(text, "\r\n") {
			if !strings.HasPrefix(line, "Date: ") {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "\n")
	}
	for _, accept := range []string{"", "Accept-Encoding: gzip\r\n"} {
		ask := " /openapi.json HTTP/1.1\r\nHost: x\r\n" + accept
		const last = "Connection: close\r\n\r\n"
		s.exchange("GET" + ask + last) // from the second time on the page is kept
		get := head(s.exchange("GET" + ask + last))
		if got := head(s.exchange("HEAD" + ask + last)); got != get {
			t.Errorf("HEAD\n%s\nGET\n%s", got, get)
		}
		if packed := strings.Contains(get, "Content-Encoding: gzip"); packed != (accept != "") {
			t.Errorf("%q: %s", accept, get)
		}
		two := string(s.exchange("HEAD" + ask + "\r\nGET /midpoint HTTP/1.1\r\nHost: x\r\n" + last))
		if n := strings.Count(two, "HTTP/1.1 "); n != 2 || !strings.Contains(two, "Invalid token id") {
			t.Errorf("%d answers: %s", n, two)
		}
	}
}
