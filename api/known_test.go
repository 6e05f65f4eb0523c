package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"clobd/api/wire"
	"clobd/engine"
)

// TestKnownParameters: the parameters that the document has for a family are known to it.
func TestKnownParameters(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			Tags       []string
			Parameters []map[string]any
		}
		Components struct{ Parameters map[string]map[string]any }
	}
	if err := json.Unmarshal(description, &doc); err != nil {
		t.Fatal(err)
	}
	book, described := wire.Known(bookParameters), wire.Known(catalogParameters)
	families := map[string]wire.Parameters{"books": book, "markets": book, "account": book,
		"catalog": described}
	checked := 0
	for path, item := range doc.Paths {
		for _, operation := range item {
			known := families[operation.Tags[0]]
			for _, p := range operation.Parameters {
				if ref, is := p["$ref"].(string); is {
					p = doc.Components.Parameters[ref[strings.LastIndexByte(ref, '/')+1:]]
				}
				if _, is := known[text1(p, "name")]; known != nil && p["in"] == "query" {
					if checked++; !is {
						t.Errorf("%s: %s is not known", path, text1(p, "name"))
					}
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d parameters", checked)
	}
}

// TestUnknownQuery: a parameter that no route of the family knows is named in a header, in harmless
// letters and a bounded length; the answer is the same.
func TestUnknownQuery(t *testing.T) {
	n, _, _ := listedNode(t)
	n.described(marketText(1, ""))
	token, long := listing(1, 0).Tokens[0].String(), strings.Repeat("x", 3000)
	for target, want := range map[string]string{
		"/book?token_id=" + token:                                              "",
		"/book?token_id=" + token + "&marekt=1":                                "marekt",
		"/book?token%5Fid=" + token:                                            "",
		"/tick-size?token_id=" + token + "&a=1&b&a=2&=3":                       "a, b, ?",
		"/markets?limit=2&tagid=4&cyom=true":                                   "tagid",
		"/markets?next_cursor=MA==&creator=x&limitt=1":                         "limitt",
		"/clob/markets?limit=2":                                                "limit",
		"/gamma/markets?token_id=1":                                            "token_id",
		"/events?live=true&event%5Fdate=2026-01-01&z%0d%0aSet-Cookie:%20a=1":   "z??Set-Cookie??a",
		"/events?%zz=1&" + url.QueryEscape("ä") + "=1":                         "?zz, ?",
		"/events?" + long + "=1":                                               long[:64],
		"/events?a1&a2&a3&a4&a5&a6&a7&a8&a9&a10":                               "a1, a2, a3, a4, a5, a6, a7, a8",
		"/public-search?q=x&per_page=3":                                        "per_page",
		"/positions?user=0x0000000000000000000000000000000000000001&eventId=1": "",
		"/prices-history?market=" + token + "&interval=1d&foo[bar]=1":          "foo[bar]",
	} {
		ctx := ask("GET", target)
		n.handler.Public(ctx)
		got, named := string(ctx.Response.Header.Peek(wire.UnknownQuery)), false
		for key := range ctx.Response.Header.All() {
			named = named || http.CanonicalHeaderKey(string(key)) == wire.UnknownQuery
		}
		if status := ctx.Response.StatusCode(); got != want || named != (want != "") || status != 200 {
			t.Errorf("%.80s: %d, %q, want %q", target, status, got, want)
		}
	}
	refused := ask("GET", "/positions?usr=1")
	n.handler.Public(refused)
	named := refused.Response.Header.Peek(wire.UnknownQuery)
	if refused.Response.StatusCode() != 400 || len(named) > 0 {
		t.Error("a wallet's route names what it refuses")
	}
	private := ask("GET", "/data/orders?markte=1&id=")
	n.handler.Account(private, trader("alice"), wire.SVC)
	if got := string(private.Response.Header.Peek(wire.UnknownQuery)); got != "markte" {
		t.Errorf("an account's route: %q", got)
	}
	if books := ask("GET", "/book?side=BUY&token_id="+token); testing.AllocsPerRun(100, func() {
		n.handler.known.Tell(books)
	}) != 0 {
		t.Error("known parameters cost an allocation")
	}
}

// TestEscapedPaths: an id in a path means the same with escapes.
func TestEscapedPaths(t *testing.T) {
	n, alice, _ := listedNode(t)
	n.described(marketText(1, ""), `{"id":"7","slug":"a b/ä","title":"E","markets":[]}`)
	n.do(place("o1", alice, quote{1, 0, engine.Buy, 500, 5000}))
	escaped := func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			b.WriteString("%" + string("0123456789abcdef"[s[i]>>4]) + string("0123456789ABCDEF"[s[i]&15]))
		}
		return b.String()
	}
	token, condition := listing(1, 0).Tokens[0].String(), listing(1, 0).Condition.Hex()
	for _, path := range [][2]string{{"/markets/", "1"}, {"/markets/", condition}, {"/events/", "7"},
		{"/events/slug/", "a b/ä"}, {"/markets/slug/", "m1"}, {"/clob-markets/", condition},
		{"/tick-size/", token}, {"/fee-rate/", token}, {"/neg-risk/", token},
		{"/markets-by-token/", token}, {"/live-activity/events/", condition}} {
		want := n.get(path[0]+url.PathEscape(path[1]), 200)
		if got := n.get(path[0]+escaped(path[1]), 200); string(got) != string(want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
		n.get(path[0]+"%zz", n.status(path[0]+"zz"))
	}
	order := ask("GET", orderPath(escaped(orderID("o1").Hex())))
	n.handler.Account(order, trader("alice"), wire.SVC)
	if order.Response.StatusCode() != 200 {
		t.Errorf("%s", order.Response.Body())
	}
}

func orderPath(id string) string { return "/data/order/" + id }

func (n *node) status(path string) int {
	ctx := ask("GET", path)
	n.handler.Public(ctx)
	return ctx.Response.StatusCode()
}
