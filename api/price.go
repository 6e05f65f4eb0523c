package api

import (
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// tokenBytes is room for a token id, a price and the JSON around them.
const tokenBytes = 112

// ofBest computes a figure from the best prices of a book: v / 10^digits.
type ofBest func(bid, ask engine.Price) (v int64, digits int)

// midpoint is exact: the mean of two prices of four digits has five.
func midpoint(bid, ask engine.Price) (v int64, digits int) {
	return (int64(bid) + int64(ask)) * 5, 5
}

func spread(bid, ask engine.Price) (v int64, digits int) { return int64(ask) - int64(bid), 4 }

// best answers with a figure of one book under a key, or with none if a side of the book is empty.
func (h *Handler) best(key string, figure ofBest, none *wire.Refusal) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		s, o, refused := h.snapshot(ctx)
		if refused != nil {
			refused.Send(ctx)
			return
		}
		bid, ask := s.Best(o)
		if bid == 0 || ask == 0 {
			none.Send(ctx)
			return
		}
		var room [32]byte
		v, digits := figure(bid, ask)
		wire.Answer(ctx, wire.CloseObject(
			wire.AppendDecimalField(append(room[:0], '{'), key, v, digits)))
	}
}

// bests answers with a figure by token id, for the tokens with orders on both sides of their books.
func (h *Handler) bests(figure ofBest) asking {
	return func(ctx *fasthttp.RequestCtx, asked []tokenQuery) {
		b := append(make([]byte, 0, 2+tokenBytes*len(asked)), '{')
		h.eachBook(asked, func(token engine.Token, s *view.Snapshot, o engine.Outcome) bool {
			if bid, ask := s.Best(o); bid != 0 && ask != 0 {
				v, digits := figure(bid, ask)
				b = append(wire.AppendTokenKey(b, token), '"')
				b = append(engine.AppendDecimal(b, v, digits), '"')
			}
			return true
		})
		wire.Answer(ctx, wire.CloseObject(b))
	}
}

// eachBook calls each once with the book of every token that has one, until each returns false.
func (h *Handler) eachBook(
	asked []tokenQuery, each func(engine.Token, *view.Snapshot, engine.Outcome) bool,
) {
	seen := make(map[engine.Token]struct{}, len(asked))
	for i := range asked {
		token := asked[i].token
		s, o, known := h.o.Board.Book(token)
		if _, twice := seen[token]; twice || !known {
			continue
		}
		seen[token] = struct{}{}
		if !each(token, s, o) {
			return
		}
	}
}

// price tells the price that a taker on that side meets, "0" if no order rests on the other side.
func (h *Handler) price(ctx *fasthttp.RequestCtx) {
	token, ok := engine.ParseToken(wire.QueryToken(ctx))
	if !ok {
		wire.ErrToken.Send(ctx)
		return
	}
	side, ok := parseSide(wire.Text(wire.Peek(ctx, "side")))
	if !ok {
		errSide.Send(ctx)
		return
	}
	s, o, ok := h.o.Board.Book(token)
	if !ok {
		errNoBook.Send(ctx)
		return
	}
	var room [32]byte
	b := append(room[:0], `{"price":"`...)
	b = engine.AppendDecimal(b, int64(takerPrice(s, o, side)), 4)
	wire.Answer(ctx, append(b, '"', '}'))
}

func takerPrice(s *view.Snapshot, o engine.Outcome, side engine.Side) engine.Price {
	bid, ask := s.Best(o)
	if side == engine.Buy {
		return ask
	}
	return bid
}

// prices answers with the prices by token id and side: both sides if a question names none.
func (h *Handler) prices(ctx *fasthttp.RequestCtx, asked []tokenQuery) {
	sides := make(map[engine.Token][2]bool, len(asked))
	for i := range asked {
		q := &asked[i]
		want := sides[q.token]
		want[engine.Buy] = want[engine.Buy] || !q.sided || q.side == engine.Buy
		want[engine.Sell] = want[engine.Sell] || !q.sided || q.side == engine.Sell
		sides[q.token] = want
	}
	b := append(make([]byte, 0, 2+tokenBytes*len(asked)), '{')
	for i := range asked {
		token := asked[i].token
		want, first := sides[token]
		s, o, known := h.o.Board.Book(token)
		if !first || !known {
			continue
		}
		delete(sides, token) // each token is answered once
		b = append(wire.AppendTokenKey(b, token), '{')
		for side := engine.Buy; side <= engine.Sell; side++ {
			if want[side] {
				b = wire.AppendDecimalField(b, wire.SideText(side), int64(takerPrice(s, o, side)), 4)
			}
		}
		b = wire.CloseObject(b)
	}
	wire.Answer(ctx, wire.CloseObject(b))
}

func (h *Handler) lastTrade(ctx *fasthttp.RequestCtx) {
	s, o, refused := h.snapshot(ctx)
	if refused != nil {
		refused.Send(ctx)
		return
	}
	p, side, traded := s.Last(o)
	if !traded {
		errNoTrade.Send(ctx)
		return
	}
	var room [48]byte
	wire.Answer(ctx, wire.CloseObject(appendLast(append(room[:0], '{'), p, side)))
}

func appendLast(b []byte, p engine.Price, side engine.Side) []byte {
	b = wire.AppendDecimalField(b, "price", int64(p), 4)
	return wire.AppendField(b, "side", wire.SideText(side))
}

// lastTrades answers with an array without tokens that never traded.
func (h *Handler) lastTrades(ctx *fasthttp.RequestCtx, asked []tokenQuery) {
	b := append(make([]byte, 0, 2+2*tokenBytes*len(asked)), '[')
	for i := range asked {
		s, o, known := h.o.Board.Book(asked[i].token)
		if !known {
			continue
		}
		if p, side, traded := s.Last(o); traded {
			b = append(wire.AppendComma(b), '{')
			b = wire.AppendTokenField(b, "token_id", asked[i].token)
			b = wire.CloseObject(appendLast(b, p, side))
		}
	}
	wire.Answer(ctx, append(b, ']'))
}

func parseSide(s string) (engine.Side, bool) {
	switch {
	case strings.EqualFold(s, "BUY"):
		return engine.Buy, true
	case strings.EqualFold(s, "SELL"):
		return engine.Sell, true
	}
	return 0, false
}
