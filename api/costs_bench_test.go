package api

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/engine"
)

// routeCost is what a public route costs: the time of its handler, without HTTP and the socket.
type routeCost struct {
	route, target string
	miss, hit     time.Duration // after a change of a market's state, and right after that
	gzip          time.Duration // like hit, for a client that takes gzip
	bytes, packed int
}

// BenchmarkRouteCosts tells what every public route costs with dear parameters, and writes the
// table to the file CLOBD_COSTS names. The windows of the routes are weighted by it.
func BenchmarkRouteCosts(b *testing.B) {
	n := newLarge(b)
	n.traded(b)
	var table []routeCost
	for _, t := range n.handler.tables() {
		for _, r := range t.routes {
			table = append(table, n.cost(b, "GET", r.Path))
		}
	}
	table = append(table, n.cost(b, "GET", bookMarkets))
	for _, r := range n.handler.posts() {
		table = append(table, n.cost(b, "POST", r.Path))
	}
	slices.SortStableFunc(table, func(x, y routeCost) int { return cmp.Compare(y.miss, x.miss) })
	var text strings.Builder
	text.WriteString("# route, µs of one core: miss, hit, hit in gzip; bytes: plain, in gzip; asked as\n")
	for _, c := range table {
		fmt.Fprintf(&text, "%s\t%d\t%d\t%d\t%d\t%d\t%.120s\n", c.route, c.miss.Microseconds(),
			c.hit.Microseconds(), c.gzip.Microseconds(), c.bytes, c.packed, c.target)
	}
	b.Logf("\n%s", text.String())
	if name := os.Getenv("CLOBD_COSTS"); name != "" {
		n.must(os.WriteFile(name, []byte(text.String()), 0o600))
	}
	b.ReportMetric(0, "ns/op")
}

// traded makes trades in market 1 and holders of its tokens.
func (n *node) traded(b *testing.B) {
	b.Helper()
	const traders, trades = 100, 2000
	wallets := make([]engine.WalletNo, traders)
	for i := range wallets {
		wallets[i] = n.fund(fmt.Sprintf("%03d", i), 1, 1_000_000, 100_000)
	}
	for i := range trades {
		q := quote{1, 0, engine.Sell, 1000, 9000}
		maker := place(fmt.Sprint("m", i), wallets[i%traders], q)
		q.side = engine.Buy
		n.now += 60_000
		n.do(maker, place(fmt.Sprint("t", i), wallets[(i+1)%traders], q))
	}
	last := time.UnixMilli(int64(n.now))
	n.clock = func() time.Time { return last }
	for i := range 90 { // a deep book
		below := quote{1, 0, engine.Buy, 1000 + i, engine.Price(100 * (i + 1))}
		above := quote{1, 0, engine.Sell, 1000, engine.Price(9100 + 100*(i%9))}
		n.do(place(fmt.Sprint("deep", i), wallets[i%traders], below),
			place(fmt.Sprint("high", i), wallets[i%traders], above))
	}
	if !n.index.History.Await(n.head.Sequence, time.Minute) {
		b.Fatal("the index lags")
	}
}

// rounds is how often each route is asked.
const rounds = 40

// bookMarkets is the order book's list under a path that only it has.
const bookMarkets = "/clob/markets"

// dearest are parameters with which a route has much to do.
func dearest() map[string]string {
	var ids []string
	for t := range 500 {
		ids = append(ids, fmt.Sprint(10+10*t))
	}
	condition := largeListing(1).Condition.Hex()
	user := "?user=" + trader("001").Hex()
	tokens := "?token_ids=" + strings.Join(ids, ",")
	return map[string]string{
		"/markets": "?limit=100&closed=false&order=volume", "/events": "?limit=100&order=volume",
		"/markets/keyset": "?limit=100&order=volume", "/events/keyset": "?limit=100",
		"/series": "?limit=100", "/tags": "?limit=100", "/public-search": "?q=rain&limit_per_type=500",
		"/midpoints": tokens, "/last-trades-prices": tokens,
		"/prices":         tokens + "&sides=" + strings.Repeat("BUY,", 499) + "BUY",
		"/price":          "?token_id=10&side=BUY",
		"/prices-history": "?market=10&interval=max&fidelity=1",
		"/holders":        "?limit=500&market=" + condition, "/oi": "?market=" + condition,
		"/positions": user + "&limit=500&sizeThreshold=0", "/closed-positions": user + "&limit=50",
		"/activity": user + "&limit=500", "/trades": "?limit=500&takerOnly=false",
		"/value": user, "/traded": user, "/live-volume": "?id=1",
		"/v1/market-positions": "?market=" + condition + "&limit=500",
		"/public-profile":      "?address=" + trader("001").Hex(),
		"/builder/trades":      "?builder_code=0x" + strings.Repeat("00", 32),
		"/rebates/current":     "?date=2026-01-01&maker_address=" + trader("001").Hex(),
	}
}

// target is a route with parameters.
func target(route string) string {
	condition := largeListing(1).Condition.Hex()
	kind := "market-1"
	if strings.HasPrefix(route, "/events") {
		kind = "event-1"
	} else if strings.HasPrefix(route, "/tags") {
		kind = "all"
	}
	path := strings.NewReplacer("{id}", "9", "{slug}", kind, "{condition}", condition,
		"{token}", "10", "{code}", "0x"+strings.Repeat("00", 32), "{address}", trader("001").Hex(),
	).Replace(route)
	if more, has := dearest()[route]; has {
		return path + more
	}
	if route == path && !strings.Contains(route, "markets") {
		return path + "?token_id=10"
	}
	return path
}

// postedTo is a body with which a route has much to do.
func postedTo(route string) string {
	if route == "/batch-prices-history" {
		return `{"markets":["10","20","30"],"interval":"max","fidelity":1}`
	}
	var b strings.Builder
	for t := range 500 {
		fmt.Fprintf(&b, `,{"token_id":"%d","side":"BUY"}`, 10+10*t)
	}
	return "[" + b.String()[1:] + "]"
}

// cost measures a route.
func (n *node) cost(b *testing.B, method, route string) routeCost {
	b.Helper()
	c := routeCost{route: method + " " + route, target: target(route)}
	if route == "/markets" {
		c.route += " (catalog)"
	}
	if method == "POST" {
		c.target = route
	}
	var misses, hits, packed []time.Duration
	only := os.Getenv("CLOBD_ROUTE") // to profile one
	for i := range rounds {
		if only != "" && only != route {
			return c
		}
		state := []engine.MarketState{engine.Paused, engine.Open}[i%2]
		n.do(engine.Command{Kind: engine.SetState, Market: 3, State: state})
		for _, q := range []struct {
			took   *[]time.Duration
			bytes  *int
			accept string
		}{{&misses, &c.bytes, ""}, {&hits, &c.bytes, ""}, {nil, &c.packed, "gzip"},
			{&packed, &c.packed, "gzip"}} {
			ctx := ask(method, c.target)
			ctx.Request.Header.Set("Accept-Encoding", q.accept)
			if method == "POST" {
				ctx.Request.SetBodyString(postedTo(route))
			}
			began := time.Now()
			n.handler.Public(ctx)
			if took := time.Since(began); q.took != nil {
				*q.took = append(*q.took, took)
			}
			if status := ctx.Response.StatusCode(); i == 0 && status != fasthttp.StatusOK {
				b.Logf("%s: %d %.200s", c.target, status, ctx.Response.Body())
			}
			*q.bytes = len(ctx.Response.Body())
		}
	}
	c.miss, c.hit, c.gzip = typical(misses), typical(hits), typical(packed)
	return c
}

// typical is the lower quartile: what a call takes when nothing else needs the processor.
func typical(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)/4]
}
