package api

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

// What a query is divided at.
var (
	ampersand = []byte("&")
	equals    = []byte("=")
)

// peek is the first parameter of this name of the query as it came, empty if there is none. It is
// good as long as the request is. Where nothing is escaped, as in all that most clients send, it is
// read in place, without a list of all parameters.
func peek(ctx *fasthttp.RequestCtx, name string) []byte {
	query := ctx.URI().QueryString()
	if bytes.IndexByte(query, '%') >= 0 || bytes.IndexByte(query, '+') >= 0 {
		return ctx.QueryArgs().Peek(name)
	}
	for len(query) > 0 {
		var parameter []byte
		parameter, query, _ = bytes.Cut(query, ampersand)
		if key, value, _ := bytes.Cut(parameter, equals); string(key) == name {
			return value
		}
	}
	return nil
}

// queryToken is the token id of the query, "" if it names none. Some clients write tokenId.
func queryToken(ctx *fasthttp.RequestCtx) string {
	if id := peek(ctx, "token_id"); len(id) > 0 {
		return wire.Text(id)
	}
	return wire.Text(peek(ctx, "tokenId"))
}
