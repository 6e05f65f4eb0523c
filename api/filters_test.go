package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"clobd/engine"
)

// every asks for all rows of a list of the catalog, page by page.
func (n *node) every(t *testing.T, path, query string) (rows []map[string]any) {
	t.Helper()
	for {
		var page []map[string]any
		target := fmt.Sprintf("%s?limit=100&offset=%d&%s", path, len(rows), query)
		d := json.NewDecoder(strings.NewReader(string(n.get(target, 200))))
		d.UseNumber()
		n.must(d.Decode(&page))
		if rows = append(rows, page...); len(page) < 100 {
			return rows
		}
	}
}

func ids(rows []map[string]any, wanted func(map[string]any) bool) (list []string) {
	for _, r := range rows {
		if wanted(r) {
			list = append(list, text1(r, "id"))
		}
	}
	return list
}

func all(map[string]any) bool { return true }

// is says that a member has one of some values, in any letter case.
func is(key string, values ...string) func(map[string]any) bool {
	return func(r map[string]any) bool {
		return r[key] != nil && slices.ContainsFunc(values, func(v string) bool {
			return strings.EqualFold(v, fmt.Sprint(r[key]))
		})
	}
}

// TestRealFilters: each filter selects of the real catalog what the members of the rows say.
func TestRealFilters(t *testing.T) {
	r, _, _, _, _, _ := newReal(t)
	markets, events := r.every(t, "/gamma/markets", ""), r.every(t, "/events", "")
	some := func(rows []map[string]any, key string, n int) string {
		for _, row := range rows {
			if v := row[key]; v != nil && fmt.Sprint(v) != "" {
				if n--; n < 0 {
					return fmt.Sprint(v)
				}
			}
		}
		t.Fatalf("no %s", key)
		return ""
	}
	questions := []string{some(markets, "questionID", 3), some(markets, "questionID", 700)}
	game, maker := some(markets, "gameId", 1), some(markets, "marketMakerAddress", 5)
	day := some(events, "eventDate", 20)
	for query, want := range map[string]func(map[string]any) bool{
		"question_ids=" + strings.Join(questions, ","):                 is("questionID", questions...),
		"question_ids=" + questions[0] + "&question_ids=" + "0xNOBODY": is("questionID", questions[0]),
		"question_ids=" + strings.ToUpper(questions[1]):                is("questionID", questions[1]),
		"game_id=" + game:                                is("gameId", game),
		"sports_market_types=moneyline,Totals":           is("sportsMarketType", "moneyline", "totals"),
		"uma_resolution_status=resolved":                 is("umaResolutionStatus", "resolved"),
		"market_maker_address=" + strings.ToLower(maker): is("marketMakerAddress", maker),
		"cyom=false": is("cyom", "false"), "cyom=true": is("cyom", "true"),
		"rewards_min_size=100": func(m map[string]any) bool {
			n, _ := m["rewardsMinSize"].(json.Number)
			v, _ := n.Float64()
			return v >= 100
		},
	} {
		got, expected := ids(r.every(t, "/gamma/markets", query), all), ids(markets, want)
		if !slices.Equal(got, expected) {
			t.Errorf("%s: %d markets, want %d", query, len(got), len(expected))
		}
		if len(expected) == 0 && query != "cyom=true" || len(expected) == len(markets) &&
			query != "cyom=false" {
			t.Errorf("%s selects %d of %d: nothing is tested", query, len(expected), len(markets))
		}
	}
	for query, want := range map[string]func(map[string]any) bool{
		"cyom=true": is("cyom", "true"), "event_date=" + day: is("eventDate", day),
		"cyom=false": func(e map[string]any) bool { return e["cyom"] != true },
	} {
		got, expected := ids(r.every(t, "/events", query), all), ids(events, want)
		if !slices.Equal(got, expected) || len(expected) == 0 || len(expected) == len(events) {
			t.Errorf("%s: %d events, want %d of %d", query, len(got), len(expected), len(events))
		}
	}
	r.sorted(t, markets, events)
}

// sorted: the orders that only some rows have a value for.
func (r *real) sorted(t *testing.T, markets, events []map[string]any) {
	t.Helper()
	moment := func(row map[string]any) float64 {
		for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07"} {
			if at, err := time.Parse(layout, text1(row, "closedTime")); err == nil {
				return float64(at.UnixMilli())
			}
		}
		return 0
	}
	number := func(key string, none float64) func(map[string]any) float64 {
		return func(row map[string]any) float64 {
			if n, ok := row[key].(json.Number); ok {
				v, _ := n.Float64()
				return v
			}
			return none
		}
	}
	for _, by := range []struct {
		path, name string
		rows       []map[string]any
		of         func(map[string]any) float64
	}{
		{"/gamma/markets", "closedTime", markets, moment}, {"/events", "closedTime", events, moment},
		{"/gamma/markets", "competitive", markets, number("competitive", 0)},
		{"/events", "competitive", events, number("competitive", 0)},
		{"/events", "featuredOrder", events, number("featuredOrder", 1e9)},
	} {
		for _, up := range []bool{true, false} {
			got := r.every(t, by.path, fmt.Sprintf("order=%s&ascending=%v", by.name, up))
			sorted := slices.IsSortedFunc(got, func(a, b map[string]any) int {
				c := cmp.Compare(by.of(a), by.of(b))
				if !up {
					c = -c
				}
				return c
			})
			other := ids(got, func(r map[string]any) bool { return by.of(r) != by.of(by.rows[0]) })
			if !sorted || len(got) != len(by.rows) || len(other) == 0 {
				t.Errorf("%s by %s, %v: %d of %d rows, sorted %v", by.path, by.name, up, len(got),
					len(by.rows), sorted)
			}
		}
	}
}

// TestBadFilters: impossible values are refused with the parameter's name.
func TestBadFilters(t *testing.T) {
	n := newNode(t)
	for target, name := range map[string]string{
		"/gamma/markets?cyom=x": "cyom", "/gamma/markets?rewards_min_size=x": "rewards_min_size",
		"/gamma/markets?rewards_min_size=-1": "rewards_min_size", "/events?live=2": "live",
		"/gamma/markets?related_tags=x": "related_tags", "/gamma/markets?include_tag=x": "include_tag",
		"/events?event_date=2026-13-01": "event_date", "/events?cyom=x": "cyom",
	} {
		if body := string(n.get(target, 400)); !strings.Contains(body, `"`+name+` is invalid"`) {
			t.Errorf("%s: %s", target, body)
		}
	}
}

// TestLiveEvents: live is what the record says, and an event without it is not live.
func TestLiveEvents(t *testing.T) {
	n := newNode(t)
	n.described(`{"id":"1","title":"On","live":true,"markets":[]}`,
		`{"id":"2","title":"Off","live":false,"markets":[]}`, `{"id":"3","title":"None","markets":[]}`)
	for query, want := range map[string]string{
		"live=true": "[1]", "live=false": "[2 3]", "live=": "[1 2 3]"} {
		if got := fmt.Sprint(ids(n.every(t, "/events", query), all)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// TestTagFilters: related tags count as well, and markets of a list tell their tags.
func TestTagFilters(t *testing.T) {
	n := newNode(t)
	event := func(i int, tags string) string {
		return fmt.Sprintf(`{"id":"%d","slug":"e%d","title":"E%d","tags":[%s],"markets":[{"id":"%d",`+
			`"conditionId":"%s","question":"Q%d?","slug":"m%d","outcomes":"[\"Yes\",\"No\"]",`+
			`"clobTokenIds":"[\"%d\",\"%d\"]"}]}`, i, i, i, tags, 100+i,
			listing(i, 100).Condition.Hex(), i, i, 10*i, 10*i+1)
	}
	const sun, rain, snow = `{"id":"1","label":"Sun","slug":"sun"}`,
		`{"id":"2","label":"Rain","slug":"rain"}`, `{"id":"3","label":"Snow","slug":"snow"}`
	n.described(event(1, sun), event(2, sun+","+rain), event(3, rain), event(4, snow))
	for query, want := range map[string]string{
		"tag_id=1": "[101 102]", "tag_id=1&related_tags=true": "[101 102 103]",
		"tag_slug=sun&related_tags=true": "[101 102 103]", "tag_id=3&related_tags=true": "[104]",
		"tag_id=1,3&related_tags=true": "[101 102 103 104]", "related_tags=true": "[101 102 103 104]",
		"tag_id=1&related_tags=false": "[101 102]",
	} {
		if got := fmt.Sprint(ids(n.every(t, "/gamma/markets", query), all)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for _, path := range []string{"/gamma/markets", "/markets/keyset"} {
		plain, tagged := string(n.get(path, 200)), string(n.get(path+"?include_tag=true", 200))
		if strings.Contains(plain, `"tags"`) || strings.Count(tagged, `"tags":[{"id":`) != 4 ||
			!strings.Contains(tagged, `"tags":[`+sun+","+rain+"]") {
			t.Errorf("%s:\n%s\nwith tags:\n%s", path, plain, tagged)
		}
	}
}

// TestCreatorOfBookLists: the order book's lists have only the markets that the creator made, on
// full pages with cursors that lead on.
func TestCreatorOfBookLists(t *testing.T) {
	n := newNode(t)
	var list []string
	for i := range 1200 {
		l := listing(100+i, 100)
		maker := []string{"Site.example", "0xAB"}[i%2]
		list = append(list, fmt.Sprintf(`{"id":"%d","conditionId":"%s","question":"Q?","slug":"m%d",`+
			`"outcomes":"[\"Yes\",\"No\"]","clobTokenIds":"[\"%d\",\"%d\"]","creator":"%s"}`,
			1000+i, l.Condition.Hex(), i, 10*(100+i), 10*(100+i)+1, maker))
		n.do(engine.Command{Kind: engine.List, Listing: l})
	}
	n.described(list...)
	n.do(engine.Command{Kind: engine.List, Listing: listing(5000, 100)}) // nobody's
	for _, path := range []string{"/markets", "/simplified-markets", "/sampling-markets",
		"/sampling-simplified-markets", "/clob/markets"} {
		for creator, want := range map[string]int{"site.EXAMPLE": 600, "0xab": 600, "0xcd": 0, "": 1201} {
			count, pages := 0, 0
			for cursor := "MA=="; cursor != "LTE="; pages++ {
				p, status := n.askPage("", path+"?creator="+url.QueryEscape(creator), cursor, "")
				if count += len(p.Data); status != 200 || pages > 10 {
					t.Fatalf("%s of %s: %d on page %d", path, creator, status, pages)
				}
				cursor = p.Next
			}
			if count != want || pages != want/500+1 {
				t.Errorf("%s of %q: %d markets on %d pages", path, creator, count, pages)
			}
		}
	}
}

// TestOrderIgnoresCase: texts are sorted without letter case, also beyond ASCII.
func TestOrderIgnoresCase(t *testing.T) {
	n := newNode(t)
	titles := []string{"beta", "Alpha", "alpha two", "ALPHA ONE", "Éclair", "eclair", "éclair 2", "Zulu",
		"straße", "STRAND", "\u212Aelvin", "kelvin 2", "abcdefgh Z", "ABCDEFGH a", ""}
	var list []string
	for i, title := range titles {
		text, _ := json.Marshal(title)
		list = append(list, fmt.Sprintf(`{"id":"%d","title":%s,"slug":%s,"markets":[]}`, i+1, text, text))
	}
	n.described(list...)
	for _, by := range []string{"title", "slug", "ticker"} {
		var got []string
		for _, e := range n.every(t, "/events", "order="+by+"&ascending=true") {
			got = append(got, strings.ToLower(text1(e, "title")))
		}
		if len(got) != len(titles) || !slices.IsSorted(got) {
			t.Errorf("by %s: %q", by, got)
		}
	}
}

// TestEventsPagination: the pages have the rows of /events, all of them once, and each counts the
// whole list.
func TestEventsPagination(t *testing.T) {
	r, events, _, _, _, _ := newReal(t)
	for query, counts := range map[string]bool{"": true, "closed=true&order=volume": true,
		"tag_id=1&order=slug": true, "cyom=false&active=true": true, "id=" + text1(events[0], "id"): true, "slug=nobody": false} {
		all := r.every(t, "/events", query)
		var got []any
		for more := true; more; {
			page := r.object(fmt.Sprintf("/events/pagination?limit=40&offset=%d&%s", len(got), query))
			pagination := page["pagination"].(map[string]any)
			got = append(got, page["data"].([]any)...)
			more = pagination["hasMore"].(bool)
			if n := fmt.Sprint(pagination["totalResults"]); n != fmt.Sprint(len(all)) ||
				more != (len(got) < len(all)) || len(got) > len(all) {
				t.Fatalf("%s: %v after %d of %d events", query, pagination, len(got), len(all))
			}
		}
		for i := range got {
			if !reflect.DeepEqual(got[i], any(all[i])) {
				t.Fatalf("%s: event %d differs", query, i)
			}
		}
		if counts && len(all) == 0 {
			t.Errorf("%s has no events: nothing is tested", query)
		}
	}
	past := r.object("/events/pagination?offset=100000")
	if p := past["pagination"].(map[string]any); len(past["data"].([]any)) != 0 || p["hasMore"] != false ||
		fmt.Sprint(p["totalResults"]) == "0" {
		t.Errorf("behind the end: %v", p)
	}
	r.get("/events/pagination?live=x", 400)
	if got := string(r.get("/status", 200)); got != "OK" {
		t.Errorf("status: %q", got)
	}
}
