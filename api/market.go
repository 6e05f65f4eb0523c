package api

import (
	_ "embed" // the OpenAPI document
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/gamma"
	"clobd/api/pages"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// noQuotes is the configuration of quotes on request, which the node does not offer.
var noQuotes = []byte(`{"enabled":false}`)

// description is the OpenAPI document of the whole node, including the routes of ingress. The tests
// of api and ingress hold every answer against it.
//
//go:embed openapi.json
var description []byte

// speech is the AsyncAPI document of all sockets, including those of ingress. The tests check every
// message against it.
//
//go:embed asyncapi.json
var speech []byte

// document returns the handler that answers with one of the two documents.
func (h *Handler) document(name string, text []byte) fasthttp.RequestHandler {
	source := &pages.Source{Key: []byte(name),
		Version: func() pages.Version { return pages.Version{} },
		Append:  func(b []byte) ([]byte, bool) { return append(b, text...), true }}
	return func(ctx *fasthttp.RequestCtx) { h.pages.Answer(ctx, source) }
}

func of(
	find func(*fasthttp.RequestCtx) (*view.Market, *wire.Refusal),
	answer func(*fasthttp.RequestCtx, *view.Market),
) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		m, refused := find(ctx)
		if refused != nil {
			refused.Send(ctx)
			return
		}
		answer(ctx, m)
	}
}

// market finds the market of the token in the path or the query.
func (h *Handler) market(ctx *fasthttp.RequestCtx) (*view.Market, *wire.Refusal) {
	id := wire.InPath(ctx, "token")
	if ctx.UserValue("token") == nil {
		id = wire.QueryToken(ctx)
	}
	token, ok := engine.ParseToken(id)
	if !ok {
		return nil, wire.ErrToken
	}
	m, _, ok := h.o.Board.Directory.Token(token)
	if !ok {
		return nil, wire.ErrNoMarket
	}
	return m, nil
}

func (h *Handler) condition(ctx *fasthttp.RequestCtx) (*view.Market, *wire.Refusal) {
	c, ok := engine.ParseCondition(wire.InPath(ctx, "condition"))
	if !ok {
		return nil, wire.ErrCondition
	}
	m := h.o.Board.Directory.Condition(c)
	if m == nil {
		return nil, wire.ErrNoMarket
	}
	return m, nil
}

func noRewards(ctx *fasthttp.RequestCtx, _ *view.Market) { wire.AnswerRaw(ctx, wire.EmptyPage) }

func tickSize(ctx *fasthttp.RequestCtx, m *view.Market) {
	var room [48]byte
	b := append(room[:0], `{"minimum_tick_size":`...)
	b = engine.AppendDecimal(b, int64(m.Tick), 4)
	wire.Answer(ctx, append(b, '}'))
}

// negRisk tells which of the two exchange contracts orders must be signed for.
func negRisk(ctx *fasthttp.RequestCtx, m *view.Market) {
	var room [32]byte
	b := append(room[:0], `{"neg_risk":`...)
	b = strconv.AppendBool(b, m.NegRisk)
	wire.Answer(ctx, append(b, '}'))
}

// feeRate tells the fees of a token, or without a token those of a market that sets none.
func (h *Handler) feeRate(ctx *fasthttp.RequestCtx) {
	var fee engine.Fee
	if ctx.UserValue("token") != nil || wire.QueryToken(ctx) != "" {
		m, refused := h.market(ctx)
		if refused != nil {
			refused.Send(ctx)
			return
		}
		fee = m.Fee
	}
	var room [256]byte
	wire.Answer(ctx, appendFeeRate(append(room[:0], '{'), fee))
}

// appendFeeRate appends a schedule in three forms. base_fee, in basis points, is the maximum that
// orders of the first version sign; fd and fee_schedule say the same to two kinds of clients.
func appendFeeRate(b []byte, fee engine.Fee) []byte {
	b = strconv.AppendUint(wire.AppendKey(b, "base_fee"), uint64(fee.Rate), 10)
	b = appendFeeDetails(wire.AppendKey(b, "fd"), fee)
	b = append(wire.AppendKey(b, "fee_schedule"), `{"rate":`...)
	b = engine.AppendDecimal(b, int64(fee.Rate), 4)
	b = strconv.AppendUint(wire.AppendKey(b, "exponent"), exponent(fee), 10)
	b = append(b, `,"takerOnly":true,"rebateRate":0,"category":"default",`...)
	return append(b, `"version":1,"source":"default"}}`...)
}

// appendFeeDetails appends the short form of a schedule: rate, exponent, takers only.
func appendFeeDetails(b []byte, fee engine.Fee) []byte {
	b = append(b, `{"r":`...)
	b = engine.AppendDecimal(b, int64(fee.Rate), 4)
	b = strconv.AppendUint(wire.AppendKey(b, "e"), exponent(fee), 10)
	return append(b, `,"to":true}`...)
}

// exponent is the exponent of a schedule; a market without fees has the usual exponent 1.
func exponent(fee engine.Fee) uint64 {
	if fee.Rate == 0 {
		return 1
	}
	return uint64(fee.Exponent)
}

func marketByToken(ctx *fasthttp.RequestCtx, m *view.Market) {
	b := append(make([]byte, 0, 320), '{')
	b = wire.AppendHexField(b, "condition_id", m.Condition[:])
	b = wire.AppendTokenField(b, "primary_token_id", m.Tokens[0])
	b = wire.AppendTokenField(b, "secondary_token_id", m.Tokens[1])
	wire.Answer(ctx, wire.CloseObject(b))
}

// clobMarket tells under short keys what a client must know before it signs an order.
func (h *Handler) clobMarket(ctx *fasthttp.RequestCtx, m *view.Market) {
	b := append(make([]byte, 0, 512), '{')
	b = wire.AppendHexField(b, "c", m.Condition[:])
	b = append(wire.AppendKey(b, "t"), '[')
	for o := range engine.Outcome(2) {
		b = append(wire.AppendComma(b), '{')
		b = wire.AppendTokenField(b, "t", m.Tokens[o])
		b = wire.CloseObject(wire.AppendField(b, "o", h.o.Catalog().Label(m.Condition, o)))
	}
	b = append(b, ']')
	b = engine.AppendDecimal(wire.AppendKey(b, "mts"), int64(m.Tick), 4)
	b = engine.AppendDecimal(wire.AppendKey(b, "mos"), int64(m.MinSize), 6)
	b = strconv.AppendBool(wire.AppendKey(b, "nr"), m.NegRisk)
	b = appendFeeDetails(wire.AppendKey(b, "fd"), m.Fee)
	b = append(b, `,"mbf":0`...) // makers pay nothing
	b = strconv.AppendUint(wire.AppendKey(b, "tbf"), uint64(m.Fee.Rate), 10)
	b = append(b, `,"r":null`...) // no rewards
	b = strconv.AppendBool(wire.AppendKey(b, "ao"), gamma.Accepts(h.o.Board, m))
	// No delay, no quotes on request, no least age of an order. The start of a game (gst) is
	// unknown.
	b = append(b, `,"sd":0,"rfqe":false,"ibce":false,"oas":0`...)
	wire.Answer(ctx, append(b, `,"creator":""}`...))
}
