package api

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
)

const maxTokens = 500

// tokenQuery is one token that a request asks about, and perhaps a side of its book.
type tokenQuery struct {
	token engine.Token
	side  engine.Side
	sided bool
}

type asking func(ctx *fasthttp.RequestCtx, asked []tokenQuery)

// questions reads the tokens that a request asks about, from its body or its query.
type questions func(*fasthttp.RequestCtx) ([]tokenQuery, *wire.Refusal)

func (read questions) then(answer asking) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		asked, refused := read(ctx)
		if refused != nil {
			refused.Send(ctx)
			return
		}
		answer(ctx, asked)
	}
}

// posted reads an array of {token_id, side} from the body. Some clients write tokenId.
func posted(ctx *fasthttp.RequestCtx) ([]tokenQuery, *wire.Refusal) {
	var list []struct {
		Token string `json:"token_id"`
		Camel string `json:"tokenId"`
		Side  string `json:"side"`
	}
	if err := json.Unmarshal(ctx.PostBody(), &list); err != nil || list == nil {
		return nil, errPayload
	}
	if len(list) > maxTokens {
		return nil, errTooMany
	}
	asked := make([]tokenQuery, len(list))
	for i := range list {
		q, ok := &asked[i], false
		if q.token, ok = engine.ParseToken(cmp.Or(list[i].Token, list[i].Camel)); !ok {
			return nil, errPayload
		}
		if q.sided = list[i].Side != ""; !q.sided {
			continue
		}
		if q.side, ok = parseSide(list[i].Side); !ok {
			return nil, errPayloadSide
		}
	}
	return asked, nil
}

// queried reads the lists token_ids and sides from the query. sides is empty or as long as
// token_ids.
func queried(ctx *fasthttp.RequestCtx) ([]tokenQuery, *wire.Refusal) {
	args := ctx.QueryArgs()
	tokens, sides := wire.Text(args.Peek("token_ids")), wire.Text(args.Peek("sides"))
	n := strings.Count(tokens, ",") + 1
	if n > maxTokens {
		return nil, errTooMany
	}
	if sides != "" && strings.Count(sides, ",")+1 != n {
		return nil, errSides
	}
	asked, sided := make([]tokenQuery, n), sides != ""
	for i := range asked {
		q, id, ok := &asked[i], "", false
		id, tokens, _ = strings.Cut(tokens, ",")
		if q.token, ok = engine.ParseToken(id); !ok {
			return nil, errTokens
		}
		if !sided {
			continue
		}
		id, sides, _ = strings.Cut(sides, ",")
		if q.side, ok = parseSide(id); !ok {
			return nil, errSides
		}
		q.sided = true
	}
	return asked, nil
}
