package api

import (
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// ofBest appends what is made of the best prices of a book.
type ofBest func(b []byte, bid, ask engine.Price) []byte

// midpoint answers GET /midpoint.
func (h *Handler) midpoint(ctx *fasthttp.RequestCtx) {
	if bid, ask, ok := h.best(ctx, errOneSided); ok {
		var room [32]byte
		b := appendMidpoint(append(room[:0], `{"mid":"`...), bid, ask)
		wire.Answer(ctx, append(b, '"', '}'))
	}
}

// midpoints answers GET and POST /midpoints: an object by token id, without those that have none.
func (h *Handler) midpoints(ctx *fasthttp.RequestCtx, asked []tokenQuery) {
	h.bestOf(ctx, asked, appendMidpoint)
}

// appendMidpoint appends what is halfway between the best prices, exactly: two prices of four
// digits have a mean of five.
func appendMidpoint(b []byte, bid, ask engine.Price) []byte {
	return engine.AppendDecimal(b, (int64(bid)+int64(ask))*5, 5)
}

// spread answers GET /spread.
func (h *Handler) spread(ctx *fasthttp.RequestCtx) {
	if bid, ask, ok := h.best(ctx, errNoSpread); ok {
		var room [32]byte
		b := appendSpread(append(room[:0], `{"spread":"`...), bid, ask)
		wire.Answer(ctx, append(b, '"', '}'))
	}
}

// spreads answers POST /spreads: an object by token id, without those that have none.
func (h *Handler) spreads(ctx *fasthttp.RequestCtx, asked []tokenQuery) {
	h.bestOf(ctx, asked, appendSpread)
}

// appendSpread appends how far the best prices are from each other.
func appendSpread(b []byte, bid, ask engine.Price) []byte {
	return engine.AppendDecimal(b, int64(ask)-int64(bid), 4)
}

// best finds the best prices of the book that is asked for. It answers itself if there are none.
func (h *Handler) best(
	ctx *fasthttp.RequestCtx, none *wire.Refusal,
) (bid, ask engine.Price, ok bool) {
	s, o, refused := h.snapshot(ctx)
	if refused == nil {
		if bid, ask = s.Best(o); bid != 0 && ask != 0 {
			return bid, ask, true
		}
		refused = none
	}
	refused.Send(ctx)
	return 0, 0, false
}

// bestOf answers with an object that holds, for each token with orders on both sides of its book,
// what is made of its best prices. A token that is asked for twice is there once.
func (h *Handler) bestOf(ctx *fasthttp.RequestCtx, asked []tokenQuery, value ofBest) {
	seen := make(map[engine.Token]struct{}, len(asked))
	b := append(make([]byte, 0, 2+tokenBytes*len(asked)), '{')
	for i := range asked {
		token := asked[i].token
		s, o, known := h.o.Board.Book(token)
		if _, twice := seen[token]; twice || !known {
			continue
		}
		seen[token] = struct{}{}
		if bid, ask := s.Best(o); bid != 0 && ask != 0 {
			b = append(wire.AppendTokenKey(b, token), '"')
			b = append(value(b, bid, ask), '"')
		}
	}
	wire.Answer(ctx, wire.CloseObject(b))
}

// price answers GET /price: what a taker on that side would pay or get for the next share, "0" if
// nobody rests on the other side.
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

// takerPrice is the best price that a taker on that side meets, 0 if nobody rests there.
func takerPrice(s *view.Snapshot, o engine.Outcome, side engine.Side) engine.Price {
	bid, ask := s.Best(o)
	if side == engine.Buy {
		return ask
	}
	return bid
}

// prices answers GET and POST /prices: an object by token id of the prices by side, of both sides
// where none was named. Tokens without a book are left out.
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
		delete(sides, token) // what was answered is not answered again
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

// lastTrade answers GET /last-trade-price: price and taker's side of the last trade.
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

// lastTrades answers GET and POST /last-trades-prices: an array, without tokens that never traded.
func (h *Handler) lastTrades(ctx *fasthttp.RequestCtx, asked []tokenQuery) {
	b := append(make([]byte, 0, 2+2*tokenBytes*len(asked)), '[')
	for i := range asked {
		s, o, known := h.o.Board.Book(asked[i].token)
		if !known {
			continue
		}
		if p, side, traded := s.Last(o); traded {
			b = append(wire.AppendComma(b), '{')
			b = append(wire.AppendKey(b, "token_id"), '"')
			b = append(asked[i].token.AppendDecimal(b), '"')
			b = wire.CloseObject(appendLast(b, p, side))
		}
	}
	wire.Answer(ctx, append(b, ']'))
}

// parseSide reads BUY or SELL, of any letter case.
func parseSide(s string) (engine.Side, bool) {
	switch {
	case strings.EqualFold(s, "BUY"):
		return engine.Buy, true
	case strings.EqualFold(s, "SELL"):
		return engine.Sell, true
	}
	return 0, false
}
