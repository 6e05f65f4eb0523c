package api

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/engine"
	"clobd/scripts/setting"
)

// largeMarkets is how many markets the catalog has: a tenth of the largest one known, or
// CLOBD_SIZE.
func largeMarkets(b *testing.B) int {
	return max(setting.Size(b, 16_500, 16_500), 16_500)
}

// writeLarge writes a catalog of markets in events of ten: records of 4 to 5 kilobytes, as real
// ones are.
func writeLarge(w io.Writer, markets int) error {
	out := bufio.NewWriterSize(w, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("will the price of rain in spain rise above a hundred points before june")
	prose := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(words[random.IntN(len(words))] + " ")
		}
		return b.String()
	}
	for e := range markets / 10 {
		fmt.Fprintf(out, `{"id":"%d","ticker":"event-%d","slug":"event-%d","title":%q,"description":%q,`+
			`"startDate":"2026-01-%02dT00:00:00Z","endDate":"2027-01-01T00:00:00Z","active":true,`+
			`"closed":false,"archived":false,"volume":%d,"liquidity":5,"tags":[{"id":"%d","label":"L",`+
			`"slug":"tag-%d"},{"id":"9","label":"All","slug":"all"}],"markets":[`,
			e+1, e, e, prose(8), prose(250), e%28+1, random.IntN(1e6), 100+e%200, 100+e%200)
		for i := range 10 {
			c := 10*e + i + 1
			if i > 0 {
				out.WriteByte(',')
			}
			fmt.Fprintf(out, `{"id":"%d","question":%q,"slug":"market-%d","conditionId":%q,`+
				`"outcomes":"[\"Yes\", \"No\"]","clobTokenIds":"[\"%d\", \"%d\"]","description":%q,`+
				`"active":true,"closed":%t,"archived":false,"volume":"%d.5","volumeNum":%d.5,`+
				`"outcomePrices":"[\"0.4\", \"0.6\"]","createdAt":"2026-01-01T00:00:00Z",`+
				`"bestBid":0.3,`+
				`"updatedAt":"2026-02-01T00:00:00Z"`, c, prose(9), c, largeListing(c).Condition.Hex(),
				10*c, 10*c+1, prose(500), c%3 == 0, random.IntN(1e6), random.IntN(1e6))
			for f := range 60 {
				fmt.Fprintf(out, `,"field%d":%d`, f, f)
			}
			out.WriteByte('}')
		}
		out.WriteString("]}\n")
	}
	return out.Flush()
}

// largeListing is listing for more conditions than fit into two bytes.
func largeListing(c int) *engine.Listing {
	l := listing(c, 100)
	l.Condition[29] = byte(c >> 16)
	return l
}

// newLarge is a node with that catalog, all markets listed that are not closed, a tenth of them
// with orders.
func newLarge(b *testing.B) *node {
	b.Helper()
	n := newNode(b)
	n.run()
	reader, writer := io.Pipe()
	markets := largeMarkets(b)
	go func() { writer.CloseWithError(writeLarge(writer, markets)) }()
	start := time.Now()
	c, r, err := readCatalog(reader, catalog.Options{Live: n.handler.o.Values.Live,
		List: func(list []engine.Listing) error {
			for part := range slices.Chunk(list, 250) {
				commands := make([]engine.Command, len(part))
				for i := range part {
					commands[i] = engine.Command{Kind: engine.List, Listing: &part[i]}
				}
				n.do(commands...)
			}
			return nil
		}})
	n.must(err)
	n.catalog = c
	w := n.fund("maker", 1, 1_000_000, 1000)
	var orders []engine.Command
	for m := 1; m <= r.Listed; m += 10 {
		orders = append(orders, place(fmt.Sprint("o", m), w,
			quote{engine.MarketNo(m), 0, engine.Buy, 1000, engine.Price(100 * (1 + m%90))}))
	}
	for part := range slices.Chunk(orders, 250) {
		n.do(part...)
	}
	if !n.index.History.Await(n.head.Sequence, time.Minute) {
		b.Fatal("the index lags")
	}
	b.Logf("%s: %v", r, time.Since(start).Round(time.Millisecond))
	return n
}

// BenchmarkCatalogPages asks for pages of the lists: what clients ask for most, in all its forms.
// CLOBD_SIZE=165000 makes the catalog as large as the largest one known.
func BenchmarkCatalogPages(b *testing.B) {
	n := newLarge(b)
	for _, c := range []struct {
		name    string
		targets []string
	}{
		{"markets", []string{"/markets", "/markets?limit=20&offset=8000", "/markets?closed=false",
			"/markets?closed=false&order=volume", "/markets?active=true&order=endDate&ascending=true",
			"/markets?tag_slug=tag-150", "/markets?tag_id=9&closed=false&order=liquidity&offset=1000",
			"/markets?event_slug=event-77", "/markets?slug=market-5000",
			"/markets?volume_num_min=500000&closed=true&order=startDate"}},
		{"markets-100", []string{"/markets?limit=100", "/markets?limit=100&offset=8000",
			"/markets?limit=100&closed=false&order=volume", "/markets?limit=100&tag_id=9",
			"/markets/keyset?limit=100&order=updatedAt"}},
		{"events", []string{"/events", "/events?offset=900", "/events?closed=false&order=volume",
			"/events?tag_slug=tag-150&order=startDate&ascending=true", "/events?tag_id=9&active=true",
			"/events?slug=event-700"}},
		{"events-100", []string{"/events?limit=100", "/events?limit=100&offset=900",
			"/events?limit=100&closed=false&order=volume", "/events?limit=100&tag_id=9"}},
		{"one", []string{"/markets/500", "/markets/slug/market-5000", "/events/50",
			"/events/slug/event-900", "/markets/" + largeListing(77).Condition.Hex(), "/tags/9"}},
		{"book-500", []string{"/markets?next_cursor=MA==", "/simplified-markets?next_cursor=MTAwMA==",
			"/sampling-markets"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			n.pages(b, 300, c.targets)
		})
	}
}

// pages asks for targets in turn and reports the median and the ninth decile. The first round, in
// which lists are made that later ones share, is told apart.
func (n *node) pages(b *testing.B, rounds int, targets []string) {
	var took []time.Duration
	bytes, first := 0, time.Duration(0)
	for round := range rounds {
		for _, target := range targets {
			ctx := ask("GET", target)
			start := time.Now()
			n.handler.Public(ctx)
			spent := time.Since(start)
			if ctx.Response.StatusCode() != fasthttp.StatusOK || len(ctx.Response.Body()) < 30 {
				b.Fatalf("%s: %d %.200s", target, ctx.Response.StatusCode(), ctx.Response.Body())
			}
			bytes += len(ctx.Response.Body())
			ctx.Response.Reset()
			if round == 0 {
				first = max(first, spent)
				continue
			}
			took = append(took, spent)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*9/10].Microseconds()), "p90-us")
	b.ReportMetric(float64(first.Microseconds()), "first-us")
	b.ReportMetric(float64(bytes/rounds/len(targets)), "bytes")
	b.ReportMetric(0, "ns/op")
}
