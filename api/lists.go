package api

import (
	"encoding/json"
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
)

// maxTokens is how many tokens one request may ask about.
const maxTokens = 500

// tokenQuery is one token that a request asks about, and perhaps a side of its book.
type tokenQuery struct {
	token engine.Token
	side  engine.Side
	sided bool
}

// asking is what answers questions about many tokens.
type asking func(ctx *fasthttp.RequestCtx, asked []tokenQuery)

// posted reads the questions from the body: an array of objects.
func (h *Handler) posted(next asking) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		asked, refused := readQuestions(ctx.PostBody())
		if refused != nil {
			refused.Send(ctx)
			return
		}
		next(ctx, asked)
	}
}

// readQuestions reads an array of {token_id, side}. Some clients write tokenId.
func readQuestions(body []byte) ([]tokenQuery, *wire.Refusal) {
	var list []struct {
		Token string `json:"token_id"`
		Camel string `json:"tokenId"`
		Side  string `json:"side"`
	}
	if err := json.Unmarshal(body, &list); err != nil || list == nil {
		return nil, errPayload
	}
	if len(list) > maxTokens {
		return nil, errTooMany
	}
	asked := make([]tokenQuery, len(list))
	for i := range list {
		q, id, ok := &asked[i], list[i].Token, false
		if id == "" {
			id = list[i].Camel
		}
		if q.token, ok = engine.ParseToken(id); !ok {
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

// queried reads the questions from the query: token_ids and sides, each a list with commas.
func (h *Handler) queried(next asking) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		args := ctx.QueryArgs()
		asked, refused := parseQuestions(wire.Text(args.Peek("token_ids")), wire.Text(args.Peek("sides")))
		if refused != nil {
			refused.Send(ctx)
			return
		}
		next(ctx, asked)
	}
}

// parseQuestions reads the two lists. There are as many sides as tokens, or none.
func parseQuestions(tokens, sides string) ([]tokenQuery, *wire.Refusal) {
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
