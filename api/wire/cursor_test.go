package wire

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// asked is a request for a target.
func asked(target string) *fasthttp.RequestCtx {
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI(target)
	return &ctx
}

// TestCursors: what a page answers as its cursor leads to where it said, and nothing else is one.
func TestCursors(t *testing.T) {
	for _, n := range []uint64{1, 2, 99, 100, 101, 1 << 32, 1<<64 - 1} {
		ctx := asked("/x")
		ctx.QueryArgs().Set("next_cursor", string(appendCursor(nil, n, "")))
		if c, ok := ReadCursor(ctx); !ok || c.Past || c.From != n {
			t.Errorf("%d: %+v %v", n, c, ok)
		}
	}
	for query, want := range map[string]Cursor{
		"": {}, "next_cursor=MA==": {}, "next_cursor=MA%3D%3D": {}, "next_cursor=MTAw": {From: 100},
		"next_cursor=LTE=": {Past: true}, "next_cursor=": {Past: true}, "next_cursor": {Past: true},
	} {
		if c, ok := ReadCursor(asked("/x?" + query)); !ok || c != want {
			t.Errorf("%q: %+v %v", query, c, ok)
		}
	}
	for _, s := range []string{"MA", "=", "LTI=", "MTA=x", "x", "%2BMQ==", "KzE=", "MS4w",
		"MTg0NDY3NDQwNzM3MDk1NTE2MTY=", "MA==,MA=="} {
		if c, ok := ReadCursor(asked("/x?next_cursor=" + s)); ok {
			t.Errorf("%q is taken as %+v", s, c)
		}
	}
	for end, want := range map[string]string{
		EndCursor: `{"data":[],"next_cursor":"LTE=","limit":100,"count":0}`,
		"":        `{"data":[],"next_cursor":"","limit":100,"count":0}`,
	} {
		if got := string(EndPage(BeginPage(nil), 0, end, PageSize{100, 0})); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := string(EndPage(BeginPage(nil), 100, "", PageSize{100, 0})); got !=
		`{"data":[],"next_cursor":"MTAw","limit":100,"count":0}` {
		t.Error(got)
	}
}
