package api

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
)

func TestOptions(t *testing.T) {
	_, err := New(Options{})
	if err == nil {
		t.Fatal("empty Options are taken")
	}
	for _, name := range []string{"Board", "History", "Catalog", "KeyID", "Checksum"} {
		if !strings.Contains(err.Error(), "Options."+name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}

// ask is a request as the server would hand it on.
func ask(method, target string) *fasthttp.RequestCtx {
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.Header.SetMethod(method)
	ctx.Request.SetRequestURI(target)
	ctx.Request.Header.SetHost("localhost")
	return ctx
}

// leastAllocs is how many allocations a run costs: the fewest of some tries, as what else runs in
// the process, such as the journal's goroutines, can only add to one.
func leastAllocs(run func()) float64 {
	least := testing.AllocsPerRun(100, run)
	for try := 1; try < 10 && least > 0; try++ {
		least = min(least, testing.AllocsPerRun(100, run))
	}
	return least
}

// TestNoAllocations: market data costs the collector nothing once a book was rendered.
func TestNoAllocations(t *testing.T) {
	n := newNode(t)
	n.ladder(20)
	for _, target := range []string{
		"/book?token_id=10", "/book?tokenId=11", "/midpoint?token_id=10", "/neg-risk?token_id=10",
		"/price?token_id=11&side=BUY", "/tick-size?token_id=10", "/fee-rate?token_id=10",
		"/spread?token_id=10", "/last-trade-price?token_id=10", "/midpoint?token_id=99",
		"/book?token_id=99", "/price?token_id=11&side=", "/nowhere",
		"/book?token_id=70512916946285526357165287373537570327431985324385225788636160168740471",
	} {
		ctx := ask("GET", target)
		if allocs := leastAllocs(func() {
			ctx.Response.Reset()
			n.handler.Public(ctx)
		}); allocs != 0 {
			t.Errorf("%s: %v allocations", target, allocs)
		}
	}
}

// FuzzQuery: whatever stands in the path and the query, the answer is JSON with a known status.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		"/book?token_id=10", "/book?token_id=10&token_id=11", "/book?tokenId=%31%30", "/price?side=BUY",
		"/price?token_id=10&side=SELL&side=BUY", "/midpoint?token_id=+10", "/tick-size/10?token_id=x",
		"/neg-risk/%00", "/fee-rate?token_id", "/book?%zz=%", "//book", "/../book?token_id=10", "/clob",
		"/book?token_id=999999999999999999999999999999999999999999999999999999999999999999999999999999",
		"/events/7", "/price?token_id=10&side=buy#x", "?token_id=10", "/fee-rate/\xff",
	} {
		f.Add(s)
	}
	n := newNode(f)
	n.ladder(1)
	f.Fuzz(func(t *testing.T, target string) {
		ctx := ask("GET", target)
		n.handler.Public(ctx)
		body := ctx.Response.Body()
		if !json.Valid(body) || !utf8.Valid(body) {
			t.Errorf("%q: %q is not JSON", target, body)
		}
		switch ctx.Response.StatusCode() {
		case 200, 400, 404, 405: // the last for "*", which any route could be
		default:
			t.Errorf("%q: status %d", target, ctx.Response.StatusCode())
		}
	})
}

// FuzzBody: whatever is posted, the answer is JSON with a known status, and without a key error if
// it is a success.
func FuzzBody(f *testing.F) {
	for _, s := range []string{
		`[{"token_id":"10"}]`, `[{"token_id":"10","side":"BUY"},{"tokenId":"11"}]`, `[]`, `null`, `[{}]`,
		`{"markets":["10"],"interval":"1d","fidelity":1}`, `{"markets":["10","10"],"start_ts":0}`,
		`[{"token_id":"10","token_id":"11","TOKEN_ID":"10"}]`, `[null]`, `["10"]`, "[{\"side\":\"\xff\"}]",
	} {
		for route := range uint8(6) {
			f.Add(s, route)
		}
	}
	n := newNode(f)
	n.ladder(1)
	paths := []string{"/books", "/prices", "/midpoints", "/spreads", "/last-trades-prices",
		"/batch-prices-history"}
	f.Fuzz(func(t *testing.T, body string, route uint8) {
		ctx := ask("POST", paths[int(route)%len(paths)])
		ctx.Request.SetBodyString(body)
		n.handler.Public(ctx)
		answer := ctx.Response.Body()
		if !json.Valid(answer) || !utf8.Valid(answer) {
			t.Errorf("%q: %q is not JSON", body, answer)
		}
		failed := strings.HasPrefix(string(answer), `{"error":`)
		if status := ctx.Response.StatusCode(); failed != (status >= 400) || status >= 500 {
			t.Errorf("%q: %d %s", body, status, answer)
		}
	})
}
