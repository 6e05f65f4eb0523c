package api

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/engine/view"
)

// midpoint answers GET /midpoint: halfway between the best prices, exactly. Two prices of four
// digits have a mean of five.
func (h *Handler) midpoint(ctx *fasthttp.RequestCtx) {
	s, o, f := h.snapshot(ctx)
	if f != nil {
		f.send(ctx)
		return
	}
	bid, ask := s.Best(o)
	if bid == 0 || ask == 0 {
		errOneSided.send(ctx)
		return
	}
	var room [32]byte
	b := append(room[:0], `{"mid":"`...)
	b = engine.AppendDecimal(b, (int64(bid)+int64(ask))*5, 5)
	answer(ctx, append(b, '"', '}'))
}

// price answers GET /price: what a taker on that side would pay or get for the next share, "0" if
// nobody rests on the other side.
func (h *Handler) price(ctx *fasthttp.RequestCtx) {
	token, ok := engine.ParseToken(queryToken(ctx))
	if !ok {
		errToken.send(ctx)
		return
	}
	side, ok := parseSide(ctx.QueryArgs().Peek("side"))
	if !ok {
		errSide.send(ctx)
		return
	}
	s, o, ok := h.o.Board.Book(token)
	if !ok {
		errNoBook.send(ctx)
		return
	}
	p, ask := s.Best(o)
	if side == engine.Buy {
		p = ask
	}
	var room [32]byte
	b := append(room[:0], `{"price":"`...)
	b = engine.AppendDecimal(b, int64(p), 4)
	answer(ctx, append(b, '"', '}'))
}

// parseSide reads BUY or SELL, of any letter case.
func parseSide(b []byte) (engine.Side, bool) {
	switch s := text(b); {
	case strings.EqualFold(s, "BUY"):
		return engine.Buy, true
	case strings.EqualFold(s, "SELL"):
		return engine.Sell, true
	}
	return 0, false
}

// market finds the market of the token in the path or the query, or says why there is none.
func (h *Handler) market(ctx *fasthttp.RequestCtx) (*view.Market, *failure) {
	id, inPath := ctx.UserValue("token").(string)
	if !inPath {
		id = queryToken(ctx)
	}
	token, ok := engine.ParseToken(id)
	if !ok {
		return nil, errToken
	}
	m, _, ok := h.o.Board.Directory.Token(token)
	if !ok {
		return nil, errNoMarket
	}
	return m, nil
}

// tickSize answers GET /tick-size: the price step as a JSON number, which clients turn into text.
func (h *Handler) tickSize(ctx *fasthttp.RequestCtx) {
	m, f := h.market(ctx)
	if f != nil {
		f.send(ctx)
		return
	}
	var room [48]byte
	b := append(room[:0], `{"minimum_tick_size":`...)
	b = engine.AppendDecimal(b, int64(m.Tick), 4)
	answer(ctx, append(b, '}'))
}

// negRisk answers GET /neg-risk: which of the two exchange contracts orders must be signed for.
func (h *Handler) negRisk(ctx *fasthttp.RequestCtx) {
	m, f := h.market(ctx)
	if f != nil {
		f.send(ctx)
		return
	}
	var room [32]byte
	b := append(room[:0], `{"neg_risk":`...)
	b = strconv.AppendBool(b, m.NegRisk)
	answer(ctx, append(b, '}'))
}

// noFees is the schedule of every market so far: nobody pays a fee. base_fee is in basis points;
// fd and fee_schedule say the same to clients of two kinds.
var noFees = []byte(`{"base_fee":0,"fd":{"r":0,"e":1,"to":true},` +
	`"fee_schedule":{"rate":0,"exponent":1,"takerOnly":true,"rebateRate":0,` +
	`"category":"default","version":1,"source":"default"}}`)

// feeRate answers GET /fee-rate, of one token or, without one, of the node.
func (h *Handler) feeRate(ctx *fasthttp.RequestCtx) {
	if ctx.UserValue("token") != nil || queryToken(ctx) != "" {
		if _, f := h.market(ctx); f != nil {
			f.send(ctx)
			return
		}
	}
	ctx.SetContentType(jsonType)
	ctx.Response.SetBodyRaw(noFees)
}
