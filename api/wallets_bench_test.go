package api

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/engine"
)

// crowd gives tokens of many markets to many wallets, in frames of many Commands: of outcome 0, or
// of both.
func (n *node) crowd(markets, walletCount, outcomes int) {
	n.t.Helper()
	var batch []engine.Command
	flush := func(least int) {
		if len(batch) >= least {
			n.do(batch...)
			batch = batch[:0]
		}
	}
	for m := range markets {
		batch = append(batch, engine.Command{Kind: engine.List, Listing: listing(m+1, 100)})
		flush(200)
	}
	flush(1)
	for w := range walletCount {
		var a engine.Address
		binary.BigEndian.PutUint32(a[:], uint32(w+1))
		for m := range markets {
			for o := range outcomes {
				batch = append(batch, engine.Command{Kind: engine.Deposit, Address: a,
					Market: engine.MarketNo(m + 1), Outcome: engine.Outcome(o),
					Size: engine.Size(1+(w*7919+m*104_729)%100_000) * engine.Unit / 10})
			}
			flush(200)
		}
	}
	flush(1)
	if !n.index.History.Await(n.head.Sequence, 5*time.Minute) {
		n.t.Fatal("the index lags")
	}
}

// quantiles asks for targets in turn and reports the median and the 90th percentile.
func (n *node) quantiles(b *testing.B, rounds int, targets ...string) {
	var took []time.Duration
	for range rounds {
		for _, target := range targets {
			ctx := ask("GET", target)
			start := time.Now()
			n.handler.Public(ctx)
			took = append(took, time.Since(start))
			if ctx.Response.StatusCode() != fasthttp.StatusOK || len(ctx.Response.Body()) < 50_000 {
				b.Fatalf("%d %.200s", ctx.Response.StatusCode(), ctx.Response.Body())
			}
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*9/10].Microseconds()), "p90-us")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkWalletPositions asks for pages of a wallet with 10,000 positions, in every order.
func BenchmarkWalletPositions(b *testing.B) {
	const count = 10_000
	n := newNode(b)
	n.run()
	n.crowd(count, 1, 1)
	var text strings.Builder
	for m := range count {
		fmt.Fprintf(&text, `{"id":"%d","slug":"e%d","title":"E","markets":[{"id":"%d","conditionId":%q,`+
			`"question":"Will number %d be drawn?","slug":"q%d","outcomes":"[\"Yes\",\"No\"]",`+
			`"clobTokenIds":"[\"%d\",\"%d\"]"}]}`+"\n", m+1, m+1, m+1, listing(m+1, 100).Condition.Hex(),
			m*7919%count, m, 10*m+10, 10*m+11)
	}
	c, _, err := readCatalog(strings.NewReader(text.String()), catalog.Options{})
	n.must(err)
	n.catalog = c
	user := "/positions?user=0x00000001" + strings.Repeat("0", 32) + "&sizeThreshold=0&limit="
	for _, sort := range []string{"TOKENS", "CURRENT", "INITIAL", "CASHPNL", "PERCENTPNL", "TITLE",
		"RESOLVING", "PRICE", "AVGPRICE"} {
		b.Run(sort, func(b *testing.B) {
			n.quantiles(b, 20, user+"100&sortBy="+sort, user+"500&offset=9000&sortBy="+sort,
				user+"100&sortDirection=ASC&sortBy="+sort)
		})
	}
}

// BenchmarkWalletHolders asks for the 100 largest holders of each of both tokens of 20 markets. How
// many wallets hold them in all makes no difference (100,000 take half a minute to come).
func BenchmarkWalletHolders(b *testing.B) {
	const markets, walletCount = 20, 5000
	n := newNode(b)
	n.run()
	n.crowd(markets, walletCount, 2)
	ids := make([]string, markets)
	for m := range ids {
		ids[m] = listing(m+1, 100).Condition.Hex()
	}
	n.quantiles(b, 100, "/holders?market="+strings.Join(ids, ","))
}
