package wire

import (
	"strings"
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
		for _, exact := range []bool{false, true} {
			next, want := Next{n, n, exact}, Cursor{Offset: n}
			if exact {
				want.From = n
			}
			ctx := asked("/x")
			ctx.QueryArgs().Set("next_cursor", string(next.append(nil, "")))
			if c, ok := ReadCursor(ctx); !ok || c != want {
				t.Errorf("%d: %+v %v", n, c, ok)
			}
		}
	}
	for query, want := range map[string]Cursor{
		"": {}, "next_cursor=MA==": {}, "next_cursor=MA%3D%3D": {}, "next_cursor=MTAw": {Offset: 100},
		"next_cursor=MTAwOjc=": {Offset: 100, From: 7}, "next_cursor=MDox": {From: 1},
		"next_cursor=LTE=": {Past: true}, "next_cursor=": {Past: true}, "next_cursor": {Past: true},
	} {
		if c, ok := ReadCursor(asked("/x?" + query)); !ok || c != want {
			t.Errorf("%q: %+v %v", query, c, ok)
		}
	}
	for _, s := range []string{"MA", "=", "LTI=", "MTA=x", "x", "%2BMQ==", "KzE=", "MS4w",
		"MTg0NDY3NDQwNzM3MDk1NTE2MTY=", "MA==,MA==",
		"MTow", "MTo=", "Ojc=", "Og==", "MToyOjM=", "MTotMQ==", "MTo3IA=="} {
		if c, ok := ReadCursor(asked("/x?next_cursor=" + s)); ok {
			t.Errorf("%q is taken as %+v", s, c)
		}
	}
	for end, want := range map[string]string{
		EndCursor: `{"data":[],"next_cursor":"LTE=","limit":100,"count":0}`,
		"":        `{"data":[],"next_cursor":"","limit":100,"count":0}`,
	} {
		if got := string(EndPage(BeginPage(nil), Next{}, end, PageSize{100, 0})); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	at := Cursor{Offset: 60}
	for exact, want := range map[bool]string{false: "MTAw", true: "MTAwOjc="} {
		got := string(EndPage(BeginPage(nil), at.Next(7, 40, exact), "", PageSize{100, 40}))
		if got != `{"data":[],"next_cursor":"`+want+`","limit":100,"count":40}` {
			t.Error(got)
		}
	}
}

// TestDialectOf: the prefix of any header tells the dialect, in any letter case, and SVC is first.
func TestDialectOf(t *testing.T) {
	for names, want := range map[string]Dialect{"": SVC, "POLY_ADDRESS": POLY, "kuest-api-key": KUEST,
		"Poly-Signature": POLY, "KUEST_NONCE POLY_NONCE": POLY, "POLY_NONCE svc_nonce": SVC,
		"POLYX POL_": SVC, "X-POLY_NONCE": SVC, "KUEST": SVC} {
		ctx := asked("/x")
		ctx.Request.Header.DisableNormalizing()
		for name := range strings.FieldsSeq(names) {
			ctx.Request.Header.Set(name, "1")
		}
		if got := DialectOf(&ctx.Request.Header); got != want {
			t.Errorf("%q: %s, want %s", names, got, want)
		}
	}
}
