package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"clobd/api/wire"
	"clobd/engine"
)

// cursorPage is what the tests of cursors read of a page of any list.
type cursorPage struct {
	Data []json.RawMessage `json:"data"`
	Next string            `json:"next_cursor"`
}

// askPage asks as somebody, or as anybody if who is empty. Lists that need no key get the headers
// of the dialect.
func (n *node) askPage(who, path, cursor string, d wire.Dialect) (p cursorPage, status int) {
	n.t.Helper()
	ctx := ask("GET", path)
	ctx.QueryArgs().Set("next_cursor", cursor)
	if who != "" {
		n.handler.Account(ctx, trader(who), d)
	} else {
		if d != "" {
			ctx.Request.Header.Set(string(d)+"ADDRESS", "0x00")
		}
		n.handler.Public(ctx)
	}
	if status = ctx.Response.StatusCode(); status == 200 {
		n.must(json.Unmarshal(ctx.Response.Body(), &p))
	}
	return p, status
}

// offset is the cursor of plain digits.
func offset(n int) string { return base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(n))) }

func decoded(t *testing.T, cursor string) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatalf("%q: %v", cursor, err)
	}
	return string(text)
}

// manyTrades lists 702 markets, and gives alice 130 resting orders and 240 trades. In every second
// one both orders are of one builder, so a page of his may begin within a trade.
func manyTrades(t *testing.T) *node {
	n, alice, bob := listedNode(t)
	n.do(engine.Command{Kind: engine.List, Listing: listing(2, 100)})
	for i := range 240 {
		m := place(fmt.Sprint("m", i), alice, quote{1, 0, engine.Buy, 500, 5000})
		taker := place(fmt.Sprint("t", i), bob, quote{1, 0, engine.Sell, 500, 5000})
		code := listing(700, 0).Condition
		m.Proof = code[:]
		if i%2 == 0 {
			taker.Proof = code[:]
		}
		n.do(m, taker)
	}
	for i := range 130 {
		n.do(place(fmt.Sprint("o", i), alice, quote{1, 0, engine.Buy, 500, engine.Price(100 + i%40*100)}))
	}
	for i := range 700 {
		n.do(engine.Command{Kind: engine.List, Listing: listing(10+i, 100)})
	}
	return n
}

var cursorLists = []struct {
	who, path, end string
	items          int
}{
	{"alice", "/data/orders", "", 130},
	{"alice", "/data/trades", wire.EndCursor, 240},
	{"bob", "/data/trades?market=" + listing(1, 0).Condition.Hex(), wire.EndCursor, 240},
	{"", "/builder/trades?builder_code=" + listing(700, 0).Condition.Hex(), wire.EndCursor, 360},
	{"", "/markets", wire.EndCursor, 702}, {"", "/simplified-markets", wire.EndCursor, 702},
	{"", "/sampling-markets", wire.EndCursor, 702},
	{"", "/clob/sampling-simplified-markets", wire.EndCursor, 702},
}

// TestOffsets: in every list a cursor of digits is an offset; SVC clients and those without headers
// get such cursors, the others cursors with a position. All take both.
func TestOffsets(t *testing.T) {
	n := manyTrades(t)
	for _, l := range cursorLists {
		var all []json.RawMessage
		for _, d := range []wire.Dialect{wire.POLY, wire.KUEST, wire.SVC, ""} {
			if l.who != "" && d == "" {
				continue
			}
			end := l.end
			if d.Exact() {
				end = wire.EndCursor
			}
			var items []json.RawMessage
			for cursor := "MA=="; cursor != end; {
				p, status := n.askPage(l.who, l.path, cursor, d)
				items = append(items, p.Data...)
				if cursor = p.Next; status != 200 || len(p.Data) == 0 {
					t.Fatalf("%s %s: status %d, %d items", l.path, d, status, len(p.Data))
				}
				if cursor == end {
					break
				}
				count, _, exact := strings.Cut(decoded(t, cursor), ":")
				if exact != d.Exact() || count != strconv.Itoa(len(items)) {
					t.Fatalf("%s %q: cursor %s after %d", l.path, d, decoded(t, cursor), len(items))
				}
				other, _ := n.askPage(l.who, l.path, cursor, wire.SVC) // it is good for others
				if again, _ := n.askPage(l.who, l.path, cursor, wire.KUEST); len(again.Data) == 0 ||
					len(other.Data) != len(again.Data) {
					t.Errorf("%s: %s is not for all", l.path, decoded(t, cursor))
				}
			}
			if len(items) != l.items {
				t.Errorf("%s %q: %d items, want %d", l.path, d, len(items), l.items)
			}
			if d == wire.POLY {
				all = items
			}
		}
		for _, from := range []int{1, 2, 37, 99, 100, 101, 129, l.items - 2, l.items - 1} {
			for _, d := range []wire.Dialect{wire.SVC, wire.POLY} {
				p, _ := n.askPage(l.who, l.path, offset(from), d)
				got, _ := json.Marshal(p.Data)
				want, _ := json.Marshal(all[from:min(from+len(p.Data), l.items)])
				same := string(got) == string(want) || l.who != "" && d == wire.SVC
				if len(p.Data) == 0 || !same {
					t.Fatalf("%s from %d: %d items\n%.300s\nwant\n%.300s", l.path, from, len(p.Data), got, want)
				}
			}
		}
		for _, from := range []int{l.items, l.items + 1, 1 << 40} {
			if p, status := n.askPage(l.who, l.path, offset(from), wire.POLY); status != 200 ||
				len(p.Data) > 0 || p.Next != wire.EndCursor {
				t.Errorf("%s from %d: status %d, %d items, %s", l.path, from, status, len(p.Data), p.Next)
			}
		}
		for _, bad := range []string{"1:", ":1", "1:0", "-1:1", "1:1:1", "1,1"} {
			bad = base64.StdEncoding.EncodeToString([]byte(bad))
			if _, status := n.askPage(l.who, l.path, bad, wire.POLY); status != 400 {
				t.Errorf("%s: %s is %d", l.path, bad, status)
			}
		}
	}
}

// TestExactCursors: an exact cursor leads to the same place while the list changes, an offset to
// as many items behind its start.
func TestExactCursors(t *testing.T) {
	n := manyTrades(t)
	alice, _ := n.board.Directory.Wallet(trader("alice"))
	first, _ := n.askPage("alice", "/data/orders", "MA==", wire.POLY)
	for i := range 50 {
		n.do(engine.Command{Kind: engine.Cancel, ID: orderID(fmt.Sprint("o", i)), Owner: alice})
	}
	exact, _ := n.askPage("alice", "/data/orders", first.Next, wire.POLY)
	if len(exact.Data) != 30 || bytes.Equal(exact.Data[0], first.Data[99]) {
		t.Errorf("%d orders behind the first page, want 30", len(exact.Data))
	}
	if p, _ := n.askPage("alice", "/data/orders", offset(50), wire.SVC); len(p.Data) != 30 {
		t.Errorf("%d orders behind the first 50 of 80", len(p.Data))
	}
}

// TestDeepOffsets: an offset that would take too many reads is refused; what a page answers leads
// on all the same, also for clients that get offsets.
func TestDeepOffsets(t *testing.T) {
	n, alice, bob := listedNode(t)
	pair := func(maker, taker engine.WalletNo, name string) []engine.Command {
		return []engine.Command{place("m"+name, maker, quote{1, 0, engine.Buy, 500, 5000}),
			place("t"+name, taker, quote{1, 0, engine.Sell, 500, 5000})}
	}
	n.do(pair(bob, alice, "first")...)
	for i := range 60 {
		var commands []engine.Command
		for k := range 100 {
			commands = append(commands, pair(alice, bob, fmt.Sprint(i, ".", k))...)
		}
		n.do(commands...)
	}
	path := "/data/trades?taker=" + trader("alice").Hex() // one of 6,001, the oldest
	if _, status := n.askPage("alice", path, offset(1), wire.SVC); status != 400 {
		t.Errorf("a far offset is %d", status)
	}
	found, pages := 0, 0
	for cursor := "MA=="; cursor != wire.EndCursor && pages < 100; pages++ {
		p, status := n.askPage("alice", path, cursor, wire.SVC)
		if status != 200 {
			t.Fatalf("page %d is %d", pages, status)
		}
		found, cursor = found+len(p.Data), p.Next
	}
	if found != 1 || pages < 5 || pages == 100 {
		t.Errorf("%d trades on %d pages", found, pages)
	}
}
