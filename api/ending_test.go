package api

import (
	"fmt"
	"testing"

	"clobd/engine"
)

// says compares members of an answer with keys and values in turn; nil means absent.
func (n *node) says(path string, want ...any) {
	n.t.Helper()
	var got map[string]any
	n.read(path, &got)
	for i := 0; i < len(want); i += 2 {
		key := want[i].(string)
		value, has := got[key]
		if fmt.Sprint(value) != fmt.Sprint(want[i+1]) || has != (want[i+1] != nil) {
			n.t.Errorf("%s: %s is %v, want %v", path, key, value, want[i+1])
		}
	}
}

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
	const first, second, third = 1_700_000_001_234, 1_700_000_005_678, 1_700_000_009_000
	set(1, engine.Closed, first)
	n.says("/markets/1", "closed", true, "closedTime", "2023-11-14 22:13:21+00", "updatedAt",
		"2023-11-14T22:13:21.234Z", "acceptingOrders", false)
	n.says("/markets/2", "closed", false, "closedTime", nil, "updatedAt", nil)
	n.says("/events/7", "closed", false, "closedTime", nil, "updatedAt", "2020-01-02T03:04:05Z")
	set(1, engine.Open, second)
	n.says("/markets/slug/m1", "closed", false, "updatedAt", "2020-01-02T03:04:05Z")
	set(1, engine.Closed, second)
	set(2, engine.Closed, second)
	set(3, engine.Closed, second)
	n.says("/markets/3", "closed", true, "closedTime", "2020-01-01 00:00:00+00",
		"updatedAt", "2020-01-02T03:04:05Z")
	n.says("/events/7", "closed", true, "closedTime", "2023-11-14T22:13:25.678Z",
		"updatedAt", "2023-11-14T22:13:25.678Z")
	n.now = third
	n.do(engine.Command{Kind: engine.Resolve, Market: 1, Price: engine.PriceOne})
	n.says("/markets/1", "closed", true, "closedTime", "2023-11-14 22:13:25+00",
		"updatedAt", "2023-11-14T22:13:29.000Z", "outcomePrices", `["1", "0"]`)
	n.says("/events/7", "closedTime", "2023-11-14T22:13:25.678Z", "updatedAt", "2023-11-14T22:13:29.000Z")
	n.now += 1000 // as at every start
	n.do(engine.Command{Kind: engine.List, Listing: listing(1, 100)})
	n.says("/markets/1", "closedTime", "2023-11-14 22:13:25+00", "updatedAt", "2023-11-14T22:13:29.000Z")
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
	var inside struct {
		Events []struct {
			Closed    bool
			UpdatedAt string
		}
	}
	if n.read("/markets/1", &inside); len(inside.Events) != 1 || !inside.Events[0].Closed ||
		inside.Events[0].UpdatedAt != "2023-11-14T22:13:29.000Z" {
		t.Errorf("the event of market 1: %+v", inside)
	}
	n.do(engine.Command{Kind: engine.Resolve, Market: 3, Price: 0})
	n.says("/markets/3", "closedTime", "2020-01-01 00:00:00+00", "updatedAt", "2023-11-14T22:13:30.000Z",
		"outcomePrices", `["0", "1"]`)
}
