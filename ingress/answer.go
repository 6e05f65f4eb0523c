package ingress

import (
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

// Answers in memory. A client that asks for a large answer and does not read holds all of it.
const (
	largeAnswer    = 32 << 10 // answers below are not counted
	answerBudget   = 64 << 20 // of all callers
	answerBudgetOf = 8 << 20  // of one address
	// socketBytes is what the system keeps of an answer for each connection, in its own memory; it
	// takes twice as much. Without a limit that grows to some megabytes.
	socketBytes = 64 << 10
)

// holdAnswer makes room for a large answer of a read, or answers that there is none. Answers of
// writes always go out: their Commands are entered.
func (s *Server) holdAnswer(ctx *fasthttp.RequestCtx, c *orderConn) {
	body := ctx.Response.Body()
	n := len(body)
	if n < largeAnswer {
		return
	}
	// The HTTP server keeps a body's buffer for the next answer of the connection, unless the body is
	// raw: a thousand idle connections would hold a gigabyte.
	ctx.Response.SwapBody(nil)
	ctx.Response.SetBodyRaw(body)
	if ctx.IsHead() || !ctx.IsGet() && owned(ctx.Path()) {
		return
	}
	n = min(n, answerBudgetOf) // one answer is always possible
	from := s.ClientAddress(ctx)
	ok, crowded := s.answers.Take(from, n, c.Known())
	if ok {
		c.answer.Add(from, n)
		return
	}
	ctx.Response.Reset()
	if crowded {
		send(ctx, refuseAnswers)
		return
	}
	ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, wire.RetrySeconds)
	send(ctx, refuseAnswerOf)
}

// The refusals of a large answer that there is no room for.
var (
	refuseAnswers  = wire.Refuse(503, "overloaded", "too many large answers on their way", "")
	refuseAnswerOf = wire.Refuse(429, "rate_limited", "too many large answers to this address",
		"read the answers that you have asked for")
)
