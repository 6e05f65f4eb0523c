package api

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clobd/api/catalog"
	"clobd/engine"
)

// sale is a trade of a market: when, and what it cost in units of the collateral.
type sale struct {
	market int
	at     engine.Time
	cash   float64
}

// soldSince adds up what was traded of some markets in a window that ends at now and begins with a
// full hour, in base units.
func soldSince(all []sale, now engine.Time, hours engine.Time, markets ...int) (sum float64) {
	const hour = 3_600_000
	for _, s := range all {
		if slices.Contains(markets, s.market) && s.at >= (now/hour-hours)*hour {
			sum += s.cash
		}
	}
	return sum
}

// volumeWindows are the members of a record that are volumes.
type volumeWindows struct {
	ID     string
	Volume any
	Day    float64 `json:"volume24hr"`
	Week   float64 `json:"volume1wk"`
	Month  float64 `json:"volume1mo"`
	Year   float64 `json:"volume1yr"`
}

// is reports whether the windows are what sums over the trades are, with what was before them
// added.
func (w *volumeWindows) is(all []sale, now engine.Time, extra float64, markets ...int) bool {
	for i, got := range [...]float64{w.Day, w.Week, w.Month, w.Year} {
		if got != extra+soldSince(all, now, [...]engine.Time{24, 168, 720, 8760}[i], markets...) {
			return false
		}
	}
	return true
}

// TestVolumeWindows: random trades of three markets over more than a year; at random times in
// between and later the windows of markets and events, and the lists by them, are what sums over
// all trades say. A market that only the source knows has the source's.
func TestVolumeWindows(t *testing.T) {
	n, r := newNode(t), rand.New(rand.NewPCG(3, 9))
	n.run()
	clock := n.now
	n.clock = func() time.Time { return time.UnixMilli(int64(clock)) }
	for c := range 3 {
		n.do(engine.Command{Kind: engine.List, Listing: listing(c+1, 100)})
	}
	for c := range engine.MarketNo(3) {
		n.fund("a", c+1, 1_000_000, 1_000_000)
		n.fund("b", c+1, 1_000_000, 1_000_000)
	}
	a, b := n.fund("a", 1, 0, 1), n.fund("b", 1, 0, 1)
	other := `,"volume":"1","volume24hr":3,"volume1wk":3,"volume1mo":3,"volume1yr":3`
	records := []string{`{"id":"5","slug":"e","title":"E","markets":[` + marketText(1, other) + `,` +
		marketText(2, "") + `]}`,
		`{"id":"6","slug":"f","title":"F","markets":[` + marketText(3, "") + `,` +
			marketText(4, other) + `]}`}
	// Lists that go by what is traded here are made anew behind the pages, where one could see the
	// clock jump. These do not: pages have their figures from elsewhere.
	c, _, err := readCatalog(strings.NewReader(strings.Join(records, "\n")), catalog.Options{})
	n.must(err)
	n.catalog = c
	var sold []sale
	for i := range 300 {
		n.now += 1 + engine.Time(r.Int64N(3_600_000)*r.Int64N(3)*r.Int64N(150))
		m, lots := 1+r.IntN(3), 100*(5+r.IntN(50))
		n.do(place(fmt.Sprint("s", i), a, quote{engine.MarketNo(m), 0, engine.Sell, lots, 5000}),
			place(fmt.Sprint("b", i), b, quote{engine.MarketNo(m), 0, engine.Buy, lots, 5000}))
		sold = append(sold, sale{m, n.now, float64(lots) / 200})
		if i%9 != 0 {
			continue
		}
		if clock = n.now; i%2 == 0 {
			clock += engine.Time(r.Int64N(40 * 24 * 3_600_000))
		}
		if !n.index.History.Await(n.head.Sequence, time.Minute) {
			t.Fatal("the index lags")
		}
		checkWindows(t, n, sold, clock)
	}
	if days := (n.now - sold[0].at) / (24 * 3_600_000); days < 366 {
		t.Fatalf("only %d days", days)
	}
	if !n.index.History.Await(n.head.Sequence, time.Minute) { // or a list is older than its rows
		t.Fatal("the index lags")
	}
	n.described(records...) // lists look for the first time
	checkOrders(t, n)
}

func checkWindows(t *testing.T, n *node, sold []sale, now engine.Time) {
	t.Helper()
	var markets, events []volumeWindows
	n.read("/markets", &markets)
	n.read("/events", &events)
	for i := range markets {
		m, known := &markets[i], i < 3
		if known && !m.is(sold, now, 0, i+1) || !known && !m.is(nil, now, 3) {
			t.Fatalf("at %d: %+v", now, m)
		}
	}
	if e := &events[0]; !e.is(sold, now, 0, 1, 2) {
		t.Fatalf("at %d: %+v", now, e)
	}
	if e := &events[1]; !e.is(sold, now, 3, 3) {
		t.Fatalf("at %d: %+v", now, e)
	}
}

// checkOrders compares lists in the order of a window with what their rows say.
func checkOrders(t *testing.T, n *node) {
	t.Helper()
	columns := map[string]func(w *volumeWindows) float64{
		"volume24hr":    func(w *volumeWindows) float64 { return w.Day },
		"volume_1wk":    func(w *volumeWindows) float64 { return w.Week },
		"volume1moClob": func(w *volumeWindows) float64 { return w.Month },
		"volume1yr":     func(w *volumeWindows) float64 { return w.Year },
	}
	for name, column := range columns {
		for path, most := range map[string]int{"/markets?": 4, "/events?": 2,
			"/markets?ascending=true&": 4} {
			var rows []volumeWindows
			n.read(path+"order="+name, &rows)
			if strings.Contains(path, "ascending") {
				slices.Reverse(rows)
			}
			if len(rows) != most || !slices.IsSortedFunc(rows, func(a, b volumeWindows) int {
				return cmp.Compare(column(&b), column(&a))
			}) {
				t.Errorf("%s by %s: %+v", path, name, rows)
			}
		}
		var keyed struct{ Markets, Events []volumeWindows }
		n.read("/markets/keyset?limit=1&order="+name, &keyed)
		n.read("/events/keyset?limit=1&order="+name, &keyed)
		var first []volumeWindows
		n.read("/markets?limit=1&order="+name, &first)
		if keyed.Markets[0] != first[0] || len(keyed.Events) != 1 {
			t.Errorf("by %s: %+v, without a cursor %+v", name, keyed, first)
		}
	}
}
