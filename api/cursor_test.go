package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestCursors: what a page answers as its cursor leads to where it said, and nothing else is one.
func TestCursors(t *testing.T) {
	for _, n := range []uint64{1, 2, 99, 100, 101, 1 << 32, 1<<64 - 1} {
		ctx := ask("GET", "/x")
		ctx.QueryArgs().Set("next_cursor", string(appendCursor(nil, n, "")))
		if c, ok := parseCursor(ctx); !ok || c.past || c.from != n {
			t.Errorf("%d: %+v %v", n, c, ok)
		}
	}
	for query, want := range map[string]cursor{
		"": {}, "next_cursor=MA==": {}, "next_cursor=MA%3D%3D": {}, "next_cursor=MTAw": {from: 100},
		"next_cursor=LTE=": {past: true}, "next_cursor=": {past: true}, "next_cursor": {past: true},
	} {
		if c, ok := parseCursor(ask("GET", "/x?"+query)); !ok || c != want {
			t.Errorf("%q: %+v %v", query, c, ok)
		}
	}
	for _, s := range []string{"MA", "=", "LTI=", "MTA=x", "x", "%2BMQ==", "KzE=", "MS4w",
		"MTg0NDY3NDQwNzM3MDk1NTE2MTY=", "MA==,MA=="} {
		if c, ok := parseCursor(ask("GET", "/x?next_cursor="+s)); ok {
			t.Errorf("%q is taken as %+v", s, c)
		}
	}
	for end, want := range map[string]string{
		endCursor: `{"data":[],"next_cursor":"LTE=","limit":100,"count":0}`,
		"":        `{"data":[],"next_cursor":"","limit":100,"count":0}`,
	} {
		if got := string(endPage(beginPage(nil), 0, end, page{100, 0})); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := string(endPage(beginPage(nil), 100, "", page{100, 0})); got !=
		`{"data":[],"next_cursor":"MTAw","limit":100,"count":0}` {
		t.Error(got)
	}
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
