package wire

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// TestPeek: the same as the list of all parameters has, however the query is written.
func TestPeek(t *testing.T) {
	for _, query := range []string{
		"", "side=BUY&token_id=12", "token_id=12&side=BUY", "token_id=1&token_id=2", "token_id",
		"token_id=&side", "&&token_id=7&", "=5&token_id=6", "token_id=a=b", "xtoken_id=1&token_idx=2",
		"token%5Fid=3", "token_id=%31+2", "side=B%55Y&token_id=9", "token_id=1#token_id=2", "?token_id=4",
		"token_id=1+2", "token+id=1&token_id=2", "token_id=1;token_id=2",
	} {
		var ctx fasthttp.RequestCtx
		ctx.Request.SetRequestURI("/book?" + query)
		for _, name := range []string{"token_id", "side", "tokenId", ""} {
			got, want := Peek(&ctx, name), ctx.QueryArgs().Peek(name)
			if string(got) != string(want) {
				t.Errorf("%s of %q: %q, want %q", name, query, got, want)
			}
		}
	}
}

func BenchmarkQueryToken(b *testing.B) {
	s := "52114319501245915516055106046884209969926127482827954674443846427813813222426"
	for _, query := range []string{"token_id=", "side=BUY&token_id="} {
		b.Run(query, func(b *testing.B) {
			var ctx fasthttp.RequestCtx
			b.ReportAllocs()
			for b.Loop() {
				ctx.Request.SetRequestURI("/price?" + query + s)
				if len(QueryToken(&ctx)) != len(s) {
					b.Fatal(query)
				}
			}
		})
	}
}
