package api

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wallets"
	"clobd/scripts/openapi"
)

// breaks makes what answers are made of unreadable: "index" or "catalog".
func (s *script) breaks(what string) {
	switch what {
	case "index":
		if s.broken = true; !s.index.History.Await(s.head.Sequence, time.Minute) {
			s.t.Fatalf("the index does not come to Sequence %d", s.head.Sequence)
		}
		s.must(s.index.Close())
	case "catalog":
		files, err := filepath.Glob(filepath.Join(s.records, "*"))
		s.must(err)
		for _, file := range files {
			s.must(os.Truncate(file, 0))
		}
	default:
		s.t.Fatalf("nobody can break %q", what)
	}
}

// profiles are what the operator says of wallets from now on.
func (s *script) profiles(text string) {
	path := filepath.Join(s.t.TempDir(), "profiles.json")
	s.must(os.WriteFile(path, []byte(s.refer(text)), 0o600))
	p, err := wallets.OpenProfiles(path, s.handler.o.Log)
	s.must(err)
	s.handler = s.again(func(o *Options) { o.Profiles = p })
}

// strangers asks for every route about wallets from a network that the operator did not name.
func strangers(t *testing.T, record *openapi.Record) {
	d, err := promise()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	h := n.again(func(o *Options) {
		o.WalletAllow = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		o.Client = func(*fasthttp.RequestCtx) netip.Addr { return netip.MustParseAddr("192.0.2.1") }
	})
	for _, route := range d.Routes("wallets") {
		_, path, _ := strings.Cut(strings.ReplaceAll(route, "{}", "1"), " ")
		ctx := ask("GET", path)
		h.Public(ctx)
		a := &openapi.Answer{Method: "GET", Target: path, Status: ctx.Response.StatusCode(),
			ContentType: string(ctx.Response.Header.ContentType()), Body: ctx.Response.Body()}
		if err := d.Check(a); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(a.Status, " ", string(a.Body)); got !=
			`401 {"error":"unauthorized: ip_not_allowlisted"}` {
			t.Errorf("%s: %s", route, got)
		}
		record.Note(d, a)
	}
}

// keepsPromises fails for what the document promises of the reads and the scripts do not show.
func keepsPromises(t *testing.T, record *openapi.Record) {
	d, err := promise()
	if err != nil {
		t.Fatal(err)
	}
	promises := d.Promises("account", "books", "markets", "catalog", "wallets", "description")
	promises = append(promises, "code internal") // all others are the door's as well
	for _, problem := range record.Unkept(promises, exceptions(d)) {
		t.Error(problem)
	}
}

// exceptions are what the scripts cannot provoke.
func exceptions(d *openapi.Document) []openapi.Exception {
	const (
		door = "the door refuses so before a read is asked"
		test = "ingress.TestContract"
	)
	list := []openapi.Exception{
		{What: "* 408", Test: test, Why: door},
		{What: "* 413", Test: test, Why: door},
		{What: "* 415", Test: test, Why: door},
		{What: "* 425", Test: test, Why: door},
		{What: "* 429", Test: test, Why: door},
		{What: "* 431", Test: test, Why: door},
		{What: "* 503", Test: test, Why: "lag.txt has what waits for the index; of the others " + door},
		{What: "GET /builder/trades 401", Test: "ingress.TestBuilderTrades",
			Why: "the door reads builder keys"},
	}
	for _, what := range []string{"GET /openapi.json 200", "GET /openapi.json 304",
		"GET /asyncapi.json 200", "GET /asyncapi.json 304"} {
		list = append(list, openapi.Exception{What: what, Test: "api.TestServesDocument",
			Why: "a script with the whole document in it tells nobody more"})
	}
	for _, route := range d.Routes("account") {
		list = append(list, openapi.Exception{What: route + " 401", Test: test, Why: door})
	}
	for _, route := range careless() {
		list = append(list, openapi.Exception{What: route + " 400", Test: test,
			Why: "nothing in such a request can be wrong but its form, which the door reads"})
	}
	for _, route := range unrecorded() {
		list = append(list, openapi.Exception{What: route + " 500", Test: test,
			Why: "such a route reads no records: only a bug, which the door catches, answers so"})
	}
	return list
}

// unrecorded are the routes that read no records from disk, which could be damaged.
func unrecorded() []string {
	return []string{
		"GET /asyncapi.json", "GET /book", "GET /clob-markets/{}", "GET /comments",
		"GET /comments/user_address/{}", "GET /comments/{}", "GET /console/node.json",
		"GET /data/pre-migration-orders",
		"GET /fee-rate", "GET /fee-rate/{}", "GET /fees/builder-fees/{}",
		"GET /last-trade-price", "GET /last-trades-prices", "GET /market-clarifications",
		"GET /markets-by-token/{}", "GET /midpoint", "GET /midpoints", "GET /neg-risk",
		"GET /neg-risk/{}", "GET /openapi.json", "GET /order-scoring",
		"GET /price", "GET /prices", "GET /public-profile", "GET /public-search",
		"GET /rebates/current", "GET /rewards/markets/current", "GET /rewards/markets/{}",
		"GET /rewards/user", "GET /rewards/user/markets", "GET /rewards/user/percentages",
		"GET /rewards/user/total", "GET /rfq/config", "GET /sports", "GET /sports/market-types",
		"GET /spread", "GET /status", "GET /tags/slug/{}/related-tags", "GET /tags/{}/related-tags",
		"GET /teams", "GET /tick-size", "GET /tick-size/{}", "GET /v1/activity/combos",
		"GET /v1/builders/leaderboard", "GET /v1/builders/volume", "GET /v1/leaderboard",
		"GET /v1/positions/combos", "POST /books", "POST /last-trades-prices", "POST /midpoints",
		"POST /orders-scoring", "POST /prices", "POST /spreads",
	}
}

// careless are the routes that refuse no value of any parameter.
func careless() []string {
	return []string{
		"GET /asyncapi.json", "GET /comments", "GET /comments/user_address/{}", "GET /comments/{}",
		"GET /console/node.json", "GET /data/pre-migration-orders", "GET /events/slug/{}", "GET /market-clarifications",
		"GET /markets/slug/{}", "GET /markets/{}", "GET /markets/{}/tags", "GET /notifications",
		"GET /openapi.json", "GET /rebates/current", "GET /rewards/markets/current",
		"GET /rewards/user", "GET /rewards/user/markets", "GET /rewards/user/percentages",
		"GET /rewards/user/total", "GET /rfq/config", "GET /sports", "GET /sports/market-types",
		"GET /status",
		"GET /tags/slug/{}", "GET /teams", "GET /v1/activity/combos", "GET /v1/builders/leaderboard",
		"GET /v1/builders/volume", "GET /v1/leaderboard", "GET /v1/positions/combos",
	}
}
