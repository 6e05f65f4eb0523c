package api

import (
	"fmt"
	"testing"

	"clobd/engine"
)

// TestEndings: what an operator closes and resolves says when, and who won, in all shapes; a market
// that is opened again says neither, and one that its source closed says what the source says.
func TestEndings(t *testing.T) {
	n := newNode(t)
	for c := range 3 {
		n.do(engine.Command{Kind: engine.List, Listing: listing(c+1, 100)})
	}
	const told = `,"updatedAt":"2020-01-02T03:04:05Z","closedTime":null`
	n.described(`{"id":"7","slug":"e","title":"E","updatedAt":"2020-01-02T03:04:05Z","markets":[`+
		marketText(1, told)+`,`+marketText(2, ``)+`]}`,
		marketText(3, `,"closed":true,"closedTime":"2020-01-01 00:00:00+00",`+
			`"updatedAt":"2020-01-02T03:04:05Z"`))
	set := func(market engine.MarketNo, s engine.MarketState, at engine.Time) {
		n.now = at
		n.do(engine.Command{Kind: engine.SetState, Market: market, State: s})
	}
	says := func(path string, want ...any) {
		t.Helper()
		var got map[string]any
		n.read(path, &got)
		for i := 0; i < len(want); i += 2 {
			key := want[i].(string)
			if value, has := got[key]; fmt.Sprint(value) != fmt.Sprint(want[i+1]) ||
				has != (want[i+1] != nil) {
				t.Errorf("%s: %s is %v, want %v", path, key, value, want[i+1])
			}
		}
	}
	const first, second, third = 1_700_000_001_234, 1_700_000_005_678, 1_700_000_009_000
	set(1, engine.Closed, first)
	says("/markets/1", "closed", true, "closedTime", "2023-11-14 22:13:21+00", "updatedAt",
		"2023-11-14T22:13:21.234Z", "acceptingOrders", false)
	says("/markets/2", "closed", false, "closedTime", nil, "updatedAt", nil)
	says("/events/7", "closed", false, "closedTime", nil, "updatedAt", "2020-01-02T03:04:05Z")
	set(1, engine.Open, second)
	says("/markets/slug/m1", "closed", false, "updatedAt", "2020-01-02T03:04:05Z")
	set(1, engine.Closed, second)
	set(2, engine.Closed, second)
	set(3, engine.Closed, second)
	says("/markets/3", "closed", true, "closedTime", "2020-01-01 00:00:00+00",
		"updatedAt", "2020-01-02T03:04:05Z")
	says("/events/7", "closed", true, "closedTime", "2023-11-14T22:13:25.678Z",
		"updatedAt", "2023-11-14T22:13:25.678Z")
	n.now = third
	n.do(engine.Command{Kind: engine.Resolve, Market: 1, Price: engine.PriceOne})
	says("/markets/1", "closed", true, "closedTime", "2023-11-14 22:13:25+00",
		"updatedAt", "2023-11-14T22:13:29.000Z", "outcomePrices", `["1", "0"]`)
	says("/events/7", "closedTime", "2023-11-14T22:13:25.678Z", "updatedAt", "2023-11-14T22:13:29.000Z")
	var entry struct {
		Status string
		Closed bool
		Tokens []struct{ Winner bool }
	}
	for _, path := range []string{"/clob/markets/", "/markets/"} {
		n.read(path+listing(1, 0).Condition.Hex(), &entry)
		if !entry.Closed || entry.Status != "resolved" || len(entry.Tokens) != 2 || !entry.Tokens[0].Winner ||
			entry.Tokens[1].Winner {
			t.Errorf("%s: %+v", path, entry)
		}
	}
	n.do(engine.Command{Kind: engine.Resolve, Market: 3, Price: 0})
	says("/markets/3", "closedTime", "2020-01-01 00:00:00+00", "updatedAt", "2023-11-14T22:13:29.000Z",
		"outcomePrices", `["0", "1"]`)
}
