package api

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"clobd/api/wire"
	"clobd/engine"
)

// pageOf is what the tests read of a page.
type pageOf struct {
	Data []struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	} `json:"data"`
	Next  string `json:"next_cursor"`
	Limit int    `json:"limit"`
	Count int    `json:"count"`
}

// page asks for one page of a list.
func (n *node) page(who, path, cursor string) (p pageOf) {
	n.t.Helper()
	ctx := ask("GET", path)
	ctx.QueryArgs().Set("next_cursor", cursor)
	n.handler.Account(ctx, trader(who), "POLY_")
	if err := json.Unmarshal(ctx.Response.Body(), &p); err != nil || ctx.Response.StatusCode() != 200 {
		n.t.Fatalf("%s: %d %s %v", path, ctx.Response.StatusCode(), ctx.Response.Body(), err)
	}
	if p.Count != len(p.Data) || p.Limit != wire.PageLimit || p.Count > p.Limit {
		n.t.Fatalf("%s: %d items, count %d, limit %d", path, len(p.Data), p.Count, p.Limit)
	}
	return p
}

// listedNode is a node with a market and two traders in it.
func listedNode(t *testing.T) (n *node, alice, bob engine.WalletNo) {
	n = newNode(t)
	n.run()
	n.do(engine.Command{Kind: engine.List, Listing: listing(1, 100)})
	return n, n.fund("alice", 1, 1_000_000, 1_000_000), n.fund("bob", 1, 1_000_000, 1_000_000)
}

// TestPagesOfOrders: what stays live while a client pages is seen exactly once, whatever comes and
// goes meanwhile.
func TestPagesOfOrders(t *testing.T) {
	n, alice, _ := listedNode(t)
	add := func(i int) {
		n.do(place(fmt.Sprint("o", i), alice, quote{1, 0, engine.Buy, 500, engine.Price(100 + i%40*100)}))
	}
	for i := range 350 {
		add(i)
	}
	seen, gone, cursor, next := map[string]int{}, map[string]bool{}, "MA==", 350
	pages := 0
	for ; cursor != wire.EndCursor; pages++ {
		p := n.page("alice", "/data/orders", cursor)
		for _, o := range p.Data {
			seen[o.ID]++
		}
		for i := pages * 60; i < pages*60+60; i++ { // some that were seen, some that were not
			id := orderID(fmt.Sprint("o", i*11%350))
			if !gone[id.Hex()] {
				gone[id.Hex()] = true
				n.do(engine.Command{Kind: engine.Cancel, ID: id, Owner: alice})
			}
		}
		if next < 380 {
			for range 10 {
				add(next)
				next++
			}
		}
		cursor = p.Next
	}
	for i := range 350 {
		id := orderID(fmt.Sprint("o", i)).Hex()
		if seen[id] > 1 || !gone[id] && seen[id] != 1 {
			t.Errorf("order %d was seen %d times", i, seen[id])
		}
	}
	if pages < 3 || len(gone) < 100 {
		t.Fatalf("%d pages, %d cancelled: nothing was tested", pages, len(gone))
	}
}

// TestPagesOfTrades: newest first, and trades that come meanwhile move nothing.
func TestPagesOfTrades(t *testing.T) {
	n, alice, bob := listedNode(t)
	made := 0
	trade := func() {
		id := fmt.Sprint(made)
		n.do(place("m"+id, alice, quote{1, 0, engine.Buy, 500, 5000}),
			place("t"+id, bob, quote{1, 0, engine.Sell, 500, 5000}))
		made++
	}
	for range 250 {
		trade()
	}
	for _, who := range []string{"alice", "bob"} {
		seen, cursor, at := map[string]bool{}, "MA==", made
		last := ""
		for cursor != wire.EndCursor {
			p := n.page(who, "/data/trades", cursor)
			for _, tr := range p.Data {
				if seen[tr.ID] || last != "" && tr.ID >= last {
					t.Fatalf("%s: trade %s after %s", who, tr.ID, last)
				}
				seen[tr.ID], last = true, tr.ID // ids begin with the Sequence
			}
			cursor = p.Next
			trade()
		}
		if len(seen) != at {
			t.Errorf("%s: %d of %d trades", who, len(seen), at)
		}
	}
}

// TestFeeRateOfItsTime: a trade tells the rate at which it was made, whatever the market's is now.
func TestFeeRateOfItsTime(t *testing.T) {
	n, alice, bob := listedNode(t)
	for i, rate := range []uint16{0, 100, 250} {
		l := listing(1, 100)
		l.Fee = engine.Fee{Rate: rate, Exponent: 1}
		name := fmt.Sprint(i)
		n.do(engine.Command{Kind: engine.Adjust, Market: 1, Listing: l},
			place("m"+name, alice, quote{1, 0, engine.Buy, 500, 5000}),
			place("t"+name, bob, quote{1, 0, engine.Sell, 500, 5000}))
	}
	l := listing(1, 100)
	l.Fee = engine.Fee{Rate: 777, Exponent: 1}
	n.do(engine.Command{Kind: engine.Adjust, Market: 1, Listing: l})
	var list struct {
		Data []struct {
			Rate string `json:"fee_rate_bps"`
		}
	}
	n.page("alice", "/data/trades", "MA==") // waits for the index
	private := ask("GET", "/data/trades")
	n.handler.Account(private, trader("alice"), "POLY_")
	public := ask("GET", "/live-activity/events/"+l.Condition.Hex())
	n.handler.Public(public)
	n.must(json.Unmarshal(private.Response.Body(), &list))
	tape := list
	tape.Data = nil
	n.must(json.Unmarshal(public.Response.Body(), &tape.Data))
	for _, got := range [][]struct {
		Rate string `json:"fee_rate_bps"`
	}{list.Data, tape.Data} {
		if len(got) != 3 || got[0].Rate != "250" || got[1].Rate != "100" || got[2].Rate != "0" {
			t.Errorf("the rates of the trades, newest first: %v", got)
		}
	}
}

// TestReadYourWrites: what was acknowledged is seen by the next read, each time.
func TestReadYourWrites(t *testing.T) {
	n, alice, bob := listedNode(t)
	r := rand.New(rand.NewPCG(4, 2))
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	live := []string{}
	for i := range rounds {
		name := fmt.Sprint("o", i)
		id := orderID(name).Hex()
		switch k := r.IntN(3); {
		case k == 0 && len(live) > 0:
			name, live = live[len(live)-1], live[:len(live)-1]
			n.do(engine.Command{Kind: engine.Cancel, ID: orderID(name), Owner: alice})
			if p := n.page("alice", "/data/orders?id="+orderID(name).Hex(), "MA=="); p.Count != 0 {
				t.Fatalf("round %d: cancelled order is listed", i)
			}
		case k == 1:
			n.do(place(name, alice, quote{1, 0, engine.Buy, 500, 9000}),
				place("t"+name, bob, quote{1, 0, engine.Sell, 500, 9000}))
			for _, who := range []string{"alice", "bob"} {
				p := n.page(who, "/data/trades", "MA==")
				_, seq, _, _ := engine.ParseTradeID(uuid(t, p.Data[0].ID))
				if seq != n.head.Sequence {
					t.Fatalf("round %d: the newest trade of %s is %d of %d", i, who, seq, n.head.Sequence)
				}
			}
		default:
			n.do(place(name, alice, quote{1, 0, engine.Buy, 500, 1000}))
			live = append(live, name)
			p := n.page("alice", "/data/orders?id="+id, "MA==")
			if p.Count != 1 || p.Data[0].ID != id || p.Data[0].Status != "LIVE" {
				t.Fatalf("round %d: new order is not listed: %+v", i, p)
			}
		}
	}
}

func uuid(t *testing.T, s string) [16]byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != 16 {
		t.Fatalf("%q is no id", s)
	}
	return [16]byte(b)
}

// TestPublishedCursors: the cursors of other people's tests are taken by the lists that have them.
func TestPublishedCursors(t *testing.T) {
	var vectors struct {
		Cursors []struct{ Value, Decoded string }
	}
	if err := json.Unmarshal(shared(t, "vectors.json"), &vectors); err != nil {
		t.Fatal(err)
	}
	s := newScript(t)
	s.ladder(3)
	s.run(&datadriven.TestData{Cmd: "index", Input: "run"})
	for _, path := range []string{"/data/orders", "/data/trades"} {
		for _, c := range vectors.Cursors {
			line := "GET " + path + "?next_cursor=" + c.Value + " as maker POLY_"
			got := s.run(&datadriven.TestData{Cmd: "request", Input: line})
			first := path == "/data/orders" && c.Decoded == "0"
			if empty := strings.Contains(got, `"data":[]`); !strings.HasPrefix(got, "HTTP/1.1 200") ||
				empty == first {
				t.Errorf("%s, %s: %s", path, c.Value, got)
			}
		}
	}
}
