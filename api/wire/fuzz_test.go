package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// queried is a request with a query.
func queried(query string) *fasthttp.RequestCtx {
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod("GET")
	ctx.URI().SetQueryString(query)
	return &ctx
}

// FuzzCursor: a cursor that the node has written is read as it was meant, and whatever else is read
// as a cursor is read the same once the node has written it.
func FuzzCursor(f *testing.F) {
	for _, s := range []string{"", "MA==", "MTAw", "MTAwOjU=", "LTE=", "MDA3", "MQ", "M\nQ==", "LTE",
		"MTg0NDY3NDQwNzM3MDk1NTE2MTU=", "MTg0NDY3NDQwNzM3MDk1NTE2MTY=", "KzE=", "MV8w", "%4dQ=="} {
		f.Add(s, uint64(len(s)), uint64(3), len(s)%2 == 0)
	}
	f.Fuzz(func(t *testing.T, text string, offset, from uint64, exact bool) {
		ctx := queried("")
		written := func(next Next) Cursor {
			var page struct {
				Cursor string `json:"next_cursor"`
			}
			b := EndPage(BeginPage(nil), next, EndCursor, PageSize{1, 0})
			if err := json.Unmarshal(b, &page); err != nil {
				t.Fatalf("%s: %v", b, err)
			}
			ctx.QueryArgs().Set("next_cursor", page.Cursor)
			c, ok := ReadCursor(ctx)
			if !ok {
				t.Fatalf("%+v is written as %q, which is no cursor", next, page.Cursor)
			}
			return c
		}
		want := Cursor{Past: true}
		if from != 0 && exact {
			want = Cursor{Offset: offset, From: from}
		} else if from != 0 {
			want = Cursor{Offset: offset}
		}
		if c := written(Next{offset, from, exact}); c != want {
			t.Fatalf("%d:%d is read as %+v, want %+v", offset, from, c, want)
		}
		ctx.QueryArgs().Set("next_cursor", text)
		c, ok := ReadCursor(ctx)
		if !ok || c.Past {
			return
		}
		if again := written(Next{c.Offset, max(c.From, 1), c.From != 0}); again != c {
			t.Fatalf("%q is %+v, then %+v", text, c, again)
		}
	})
}

// FuzzQuery: a parameter is the same however it is looked for, no reader of one leaves its bounds,
// and a refusal is JSON that a client can read.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		"token_id=10", "token_id=10&token_id=11", "tokenId=%31%30", "token_id", "token_id=", "=1",
		"token_id=+10", "a=b&&token_id=1", "%74oken_id=1", "token_id=%zz", "token_id=%", "&", "=",
		"a=1,2,,3&a=4", "a=true", "a=FALSE", "a=-9223372036854775809", "a=1e3", "a=99999999999999999999",
		"token_id=\xff\x00", "A=1&a=2", "a;b=1", strings.Repeat("a=1&", 50),
	} {
		f.Add(s, "token_id")
		f.Add(s, "a")
	}
	f.Fuzz(func(t *testing.T, query, name string) {
		if name == "" {
			t.Skip("every parameter has a name")
		}
		ctx := queried(query)
		args := ctx.QueryArgs()
		if got := Peek(ctx, name); !bytes.Equal(got, args.Peek(name)) {
			t.Fatalf("%q of %q: %q, want %q", name, query, got, args.Peek(name))
		}
		for _, family := range []Family{Trading, Described, Wallets} {
			q := ReadQuery(ctx, family)
			if n := q.Count(name, 7, 100); n < 0 || n > 100 {
				t.Fatalf("%q of %q: %d", name, query, n)
			}
			if n := q.AtLeast(name, 7, 3, 100); n < 3 || n > 100 {
				t.Fatalf("%q of %q: %d", name, query, n)
			}
			if list := q.List(20, name, "other"); len(list) > 20 {
				t.Fatalf("%q of %q: %d values", name, query, len(list))
			}
			q.Truth(name)
			q.Only(name)
			if q.Refused != nil && !json.Valid(q.Refused.Append(nil)) {
				t.Fatalf("%q of %q: %s", name, query, q.Refused.Append(nil))
			}
		}
	})
}
