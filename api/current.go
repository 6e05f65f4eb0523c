package api

import (
	"context"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
)

const (
	// currentWait is how long a request waits for this node to show what it asks for. An election is
	// over long before.
	currentWait = time.Second
	// mostWaiting bounds the requests that wait at the same time.
	mostWaiting = 4096
	// boardPause is the pause between two looks at the Board, which is rarely behind the index.
	boardPause = 500 * time.Microsecond
)

// The refusals of requests that this node cannot answer as new as they ask for.
var (
	errMinSequence = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid min_seq",
		"min_seq must be a number as in the header X-Sequence")
	errConsistency = wire.Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid consistency",
		"consistency may only be linearizable")
	errBehind = wire.Refuse(fasthttp.StatusServiceUnavailable, "behind",
		"this node does not show that sequence yet", "ask again, or another node")
	errUnconfirmed = wire.Refuse(fasthttp.StatusServiceUnavailable, "no_leader",
		"no node leads: nobody can tell whether this one is up to date",
		"ask again, or without consistency=linearizable")
	errWaiting = wire.Refuse(fasthttp.StatusServiceUnavailable, "busy",
		"too many requests wait for this node to show more", "")
)

// Current lets a request wait until this node shows what its query asks for: with min_seq a
// Sequence, with consistency=linearizable all that anybody was told of before the request. It
// returns false after it has answered that the node does not, or that the query is wrong. Nearly
// all requests ask for neither. The handlers behind it do not see the two parameters.
func (h *Handler) Current(ctx *fasthttp.RequestCtx) bool {
	if len(ctx.URI().QueryString()) == 0 {
		return true
	}
	args := ctx.QueryArgs()
	least, word := args.Peek(wire.MinSequence), args.Peek(wire.Consistency)
	if least == nil && word == nil {
		return true
	}
	refused := h.current(string(least), string(word))
	args.Del(wire.MinSequence)
	args.Del(wire.Consistency)
	if refused == nil {
		return true
	}
	if refused = refused.In(wire.FamilyFor(ctx)); refused.Status != fasthttp.StatusBadRequest {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, wire.RetrySeconds)
	}
	refused.Send(ctx)
	return false
}

// current waits; "" asks for nothing.
func (h *Handler) current(least, word string) *wire.Refusal {
	seq, err := engine.Sequence(0), error(nil)
	if least != "" {
		n, err := strconv.ParseUint(least, 10, 64)
		if err != nil {
			return errMinSequence
		}
		seq = engine.Sequence(n)
	}
	if word != "" && word != wire.Linearizable {
		return errConsistency
	}
	if word == "" && h.shows(seq) {
		return nil
	}
	defer h.waiting.Add(-1)
	if h.waiting.Add(1) > mostWaiting {
		return errWaiting
	}
	end := time.Now().Add(h.currentWait)
	if word != "" {
		ctx, cancel := context.WithDeadline(context.Background(), end)
		defer cancel()
		var newest engine.Sequence
		if newest, err = h.o.Confirm(ctx); err != nil {
			return errUnconfirmed
		}
		seq = max(seq, newest)
	}
	if !h.o.History.Await(seq, max(0, time.Until(end))) {
		return errBehind
	}
	for !h.shows(seq) {
		if time.Now().After(end) {
			return errBehind
		}
		time.Sleep(boardPause)
	}
	return nil
}

// shows reports whether every answer from now on shows a Sequence.
func (h *Handler) shows(seq engine.Sequence) bool {
	return h.o.Board.Shown() >= seq && h.o.History.Sequence() >= seq
}
