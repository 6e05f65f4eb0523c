package api

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clobd/api/catalog"
	"clobd/engine"
)

// recorded reads the records of a file of ../shared/data/catalog beside the repository, or skips.
func recorded(t *testing.T, name string) (text []byte, records []map[string]any) {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(dir, "..", "shared", "data", "catalog", name)
	text, err = os.ReadFile(path)
	if err != nil {
		t.Skipf("no %s: skipped", path)
	}
	lines, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(lines)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		records = append(records, object(t, scan.Bytes()))
	}
	if scan.Err() != nil || len(records) == 0 {
		t.Fatal(name, scan.Err())
	}
	return text, records
}

// object reads a JSON object and keeps its numbers as written.
func object(t *testing.T, text []byte) (o map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		t.Fatalf("%.300s: %v", text, err)
	}
	return o
}

// real is a node with the real catalog, every tradable market of it listed.
type real struct {
	*node
	// mapped counts the members that are not compared as they are, by kind and key.
	mapped map[string]int
	// own are the events with a record of their own, by id.
	own   map[string]map[string]any
	asked int
}

func newReal(t *testing.T) (r *real, events, markets, books, series, tags []map[string]any) {
	var texts [5][]byte
	texts[0], tags = recorded(t, "tags.jsonl.gz")
	texts[1], series = recorded(t, "series.jsonl.gz")
	texts[2], events = recorded(t, "gamma_events_full.jsonl.gz")
	texts[3], markets = recorded(t, "gamma_markets.jsonl.gz")
	texts[4], books = recorded(t, "clob_markets.jsonl.gz")
	r = &real{node: newNode(t), mapped: map[string]int{}, own: map[string]map[string]any{}}
	store, err := catalog.Open(catalog.Options{Live: r.handler.o.Values.Live,
		List: func(list []engine.Listing) error {
			for part := range slices.Chunk(list, 200) {
				commands := make([]engine.Command, len(part))
				for i := range part {
					commands[i] = engine.Command{Kind: engine.List, Listing: &part[i]}
				}
				r.do(commands...)
			}
			return nil
		}})
	r.must(err)
	_, err = store.Begin()
	r.must(err)
	for _, text := range texts {
		report, err := store.Read(bytes.NewReader(text))
		r.must(err)
		t.Log(report)
		if report.Broken+report.Refused > 0 {
			t.Errorf("lost: %v", report.Bad)
		}
	}
	r.must(store.Close())
	for _, e := range events {
		r.own[text1(e, "id")] = e
	}
	r.catalog = store.Current()
	return r, events, markets, books, series, tags
}

// object asks for an object.
func (r *real) object(path string) map[string]any {
	r.t.Helper()
	ctx := ask("GET", path)
	r.handler.Public(ctx)
	r.asked++
	if ctx.Response.StatusCode() != 200 {
		r.t.Fatalf("%s: %d %s", path, ctx.Response.StatusCode(), ctx.Response.Body())
	}
	return object(r.t.(*testing.T), ctx.Response.Body())
}

// liveNames are the members that come from the books of markets that trade here; compare skips
// them, in the answer and in the source.
var liveNames = map[string][]string{
	"market": {"outcomePrices", "bestBid", "bestAsk", "spread", "lastTradePrice", "volume",
		"volumeNum", "volumeClob", "liquidity", "liquidityNum", "liquidityClob", "closed",
		"acceptingOrders", "orderPriceMinTickSize", "orderMinSize", "volume24hr", "volume1wk",
		"volume1mo", "volume1yr", "volume24hrClob", "volume1wkClob", "volume1moClob", "volume1yrClob",
		// of a pool, which there is none of here: 0
		"volumeAmm", "volume24hrAmm", "volume1wkAmm", "volume1moAmm", "volume1yrAmm", "liquidityAmm",
		// not kept here: left out of a market that trades
		"oneHourPriceChange", "oneDayPriceChange", "oneWeekPriceChange", "oneMonthPriceChange",
		"oneYearPriceChange"},
	"event": {"volume", "liquidity", "liquidityClob", "liquidityAmm", "closed", "volume24hr",
		"volume1wk", "volume1mo", "volume1yr",
		// not kept here: left out of an event of which a market trades
		"openInterest"},
	"book": {"closed", "accepting_orders", "tokens", "minimum_tick_size", "minimum_order_size",
		"taker_base_fee", "is_50_50_outcome"},
}

// added are the members of an answer that its source need not have.
var added = map[string][]string{
	"market": {"events"},
	"event":  {"tags", "series"},
	"series": {"events"},
	"book":   {"status", "market_id", "slug", "assets_ids", "outcomes", "event", "raw_metadata"},
}

// pair is an answer and its source.
type pair struct {
	kind, name string
	got, want  map[string]any
	trades     bool
	// apart compares the members that are not equal as they are.
	apart map[string]func(got, want any)
}

// compare holds an answer against its source: each member of the one is in the other and equal, but
// for the live ones of what trades here and those that apart compares.
func (r *real) compare(p pair) {
	r.t.Helper()
	kind, name, got, want, trades, apart := p.kind, p.name, p.got, p.want, p.trades, p.apart
	for key, value := range want {
		switch answer, has := got[key]; {
		case trades && slices.Contains(liveNames[kind], key):
			r.mapped[kind+" "+key+": live"]++
		case apart[key] != nil:
			r.mapped[kind+" "+key+": by its members"]++
			apart[key](answer, value)
		case !has:
			r.t.Errorf("%s %s: no %s", kind, name, key)
		case !reflect.DeepEqual(answer, value):
			r.t.Errorf("%s %s: %s is %v, want %v", kind, name, key, answer, value)
		}
	}
	for key := range got {
		if _, has := want[key]; !has && !slices.Contains(added[kind], key) &&
			!(trades && slices.Contains(liveNames[kind], key)) {
			r.t.Errorf("%s %s: %s is not in its source", kind, name, key)
		}
	}
}

func text1(record map[string]any, key string) string { s, _ := record[key].(string); return s }

// trades reports whether a condition is listed.
func (r *real) trades(id string) bool {
	c, ok := engine.ParseCondition(id)
	return ok && r.board.Directory.Condition(c) != nil
}

// summaries compares the events inside a market: of each the members that a summary has, as in the
// event's own record if it has one. The copy of it in a market's record may be an older one.
func (r *real) summaries(name string) func(got, want any) {
	return func(got, want any) {
		events, sources := got.([]any), want.([]any)
		if len(events) != len(sources) {
			r.t.Errorf("market %s: %d events, want %d", name, len(events), len(sources))
			return
		}
		for i := range events {
			event, source := events[i].(map[string]any), sources[i].(map[string]any)
			if own := r.own[text1(source, "id")]; own != nil {
				for _, key := range strings.Fields("id ticker slug title") {
					if own[key] != source[key] {
						r.t.Errorf("market %s: another event", name)
					}
				}
				source = own
				r.mapped["market events: as in the event's own record"]++
			}
			for key, value := range event {
				if key != "closed" && !reflect.DeepEqual(source[key], value) {
					r.t.Errorf("market %s: event: %s is %v, want %v", name, key, value, source[key])
				}
			}
			for _, key := range strings.Fields("id ticker slug title description resolutionSource " +
				"startDate creationDate endDate image icon active closed archived createdAt updatedAt") {
				_, has := event[key]
				if _, in := source[key]; in && !has {
					r.t.Errorf("market %s: event without %s", name, key)
				}
			}
		}
	}
}

func (r *real) eventsEqual(events []map[string]any) {
	for _, e := range events {
		trading := false
		for _, m := range e["markets"].([]any) {
			trading = trading || r.trades(text1(m.(map[string]any), "conditionId"))
		}
		name := text1(e, "id")
		byID := r.object("/events/" + name)
		if bySlug := r.object("/events/slug/" + text1(e, "slug")); !reflect.DeepEqual(byID, bySlug) {
			r.t.Errorf("event %s is another by its slug", name)
		}
		r.compare(pair{"event", name, byID, e, trading, map[string]func(got, want any){
			"closed": func(got, want any) {
				if got != want {
					r.mapped["event closed: all of its markets are"]++
				}
			},
			"markets": func(got, want any) {
				markets, sources := got.([]any), want.([]any)
				if len(markets) != len(sources) {
					r.t.Errorf("event %s: %d markets, want %d", name, len(markets), len(sources))
					return
				}
				for i := range markets {
					source := sources[i].(map[string]any)
					r.compare(pair{"market", text1(source, "id"), markets[i].(map[string]any), source,
						r.trades(text1(source, "conditionId")), nil})
				}
			}}})
	}
}

func (r *real) marketsEqual(markets []map[string]any) {
	for _, m := range markets {
		name := text1(m, "id")
		byID := r.object("/markets/" + name)
		for _, path := range []string{"/markets/slug/" + text1(m, "slug"),
			"/gamma/markets/" + text1(m, "conditionId")} {
			if again := r.object(path); !reflect.DeepEqual(byID, again) {
				r.t.Errorf("market %s is another at %s", name, path)
			}
		}
		r.compare(pair{"market", name, byID, m, r.trades(text1(m, "conditionId")),
			map[string]func(got, want any){"events": r.summaries(name)}})
	}
}

// emptyLists writes the lists of a record that are null as the node answers them: empty. Dates stay
// null.
func (r *real) emptyLists(book map[string]any) {
	rewards := book["rewards"].(map[string]any)
	for name, of := range map[string]map[string]any{"rates": rewards, "tags": book} {
		if of[name] == nil {
			of[name] = []any{}
			r.mapped["book "+name+": empty, not null"]++
		}
	}
}

func (r *real) booksEqual(books []map[string]any) (only int) {
	for _, b := range books {
		id := text1(b, "condition_id")
		r.emptyLists(b)
		r.compare(pair{"book", id, r.object("/clob/markets/" + id), b, r.trades(id), nil})
		c, _ := engine.ParseCondition(id)
		if !r.catalog.Market(c).BookOnly {
			continue
		}
		only++
		for _, path := range []string{"/gamma/markets/" + id, "/markets/" + id,
			"/markets/slug/" + text1(b, "market_slug")} {
			r.compare(pair{"book", id, r.object(path), b, r.trades(id), nil})
		}
	}
	return only
}

// TestRealRoutes: each real record comes back by its id, its slug and its condition, equal to its
// source wherever that has a member.
func TestRealRoutes(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and one goroutine but while it reads, which the catalog's tests do as well")
	}
	r, events, markets, books, series, tags := newReal(t)
	r.eventsEqual(events)
	r.marketsEqual(markets)
	only := r.booksEqual(books)
	for _, s := range series {
		r.compare(pair{"series", text1(s, "id"), r.object("/series/" + text1(s, "id")), s, false, nil})
	}
	for _, tag := range tags {
		id := text1(tag, "id")
		byID := r.object("/tags/" + id)
		if bySlug := r.object("/tags/slug/" + text1(tag, "slug")); !reflect.DeepEqual(byID, bySlug) {
			t.Errorf("tag %s is another by its slug", id)
		}
		r.compare(pair{"tag", id, byID, tag, false, nil})
	}
	t.Logf("%d events, %d markets, %d order-book markets (%d of them alone), %d series, %d tags: "+
		"%d answers", len(events), len(markets), len(books), only, len(series), len(tags), r.asked)
	lines := make([]string, 0, len(r.mapped))
	for what, n := range r.mapped {
		lines = append(lines, fmt.Sprintf("%6d %s", n, what))
	}
	slices.Sort(lines)
	t.Logf("not compared as they are:\n%s", strings.Join(lines, "\n"))
}

// TestRealMarketIDs: in all lists of the order book market_id is the catalog's number, which leads
// to the same condition, or null where the catalog has none.
func TestRealMarketIDs(t *testing.T) {
	r, _, _, _, _, _ := newReal(t)
	r.do(engine.Command{Kind: engine.List, Listing: listing(99, 100)}) // unknown to the catalog
	numbers, nulls := 0, 0
	for next := "MA=="; next != "LTE="; {
		page := r.object("/clob/markets?next_cursor=" + next)
		next = text1(page, "next_cursor")
		for _, row := range page["data"].([]any) {
			row := row.(map[string]any)
			id := text1(row, "condition_id")
			c, _ := engine.ParseCondition(id)
			want := any(nil)
			if m := r.catalog.Market(c); m != nil && m.ID != "" {
				want = json.Number(m.ID)
			}
			for _, row := range []map[string]any{row, r.object("/markets/" + id),
				r.object("/clob/markets/" + id)} {
				if row["market_id"] != want {
					t.Fatalf("%s: market_id is %v, want %v", id, row["market_id"], want)
				}
			}
			if want == nil {
				nulls++
				continue
			}
			numbers++
			named := r.object("/markets/" + string(want.(json.Number)))
			if text1(named, "conditionId") != id {
				t.Fatalf("%s: market_id names %v", id, named["conditionId"])
			}
		}
	}
	if t.Logf("%d numbers, %d null", numbers, nulls); numbers == 0 || nulls == 0 {
		t.Error("a kind is not tested")
	}
}
