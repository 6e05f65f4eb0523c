package ingress

import (
	"sync"

	"github.com/valyala/fasthttp"

	"clobd/engine/sequencer"
	"clobd/ingress/answer"
	"clobd/ingress/socket"
)

// opener begins the story of a request of an authenticated caller, or answers the request and
// returns nil. It counts the request in the caller's windows.
type opener func(ctx *fasthttp.RequestCtx, caller *identity) socket.Story

// seats are the seats that a story uses: now until its Commands have entered, then after that. Over
// HTTP both are the seat of the connection. On a socket the second part has none, because it
// computes next to nothing.
type seats struct{ now, then *seat }

// seatsOf returns the seats of a story that checks signatures, nil for any other story.
func seatsOf(t socket.Story) *seats {
	switch t := t.(type) {
	case *placing:
		return &t.seats
	case *bundling:
		return &t.seats
	}
	return nil
}

// callers are identities that no story uses now.
var callers = sync.Pool{New: func() any { return new(identity) }}

// tells returns the handler of a route whose stories open begins.
func (s *Server) tells(open opener) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		watch := answer.WatchOf(ctx, s.options.DebugStages)
		began := watch.Begin()
		caller := callers.Get().(*identity)
		var ok bool
		*caller, ok = s.authenticate(ctx)
		caller.watch, caller.took = watch, watch.End(s.options.Stages.Authenticate, began)
		if !ok {
			return
		}
		t := open(ctx, caller)
		if t == nil {
			return
		}
		if at := seatsOf(t); at != nil {
			at.now, at.then = seatOf(ctx), seatOf(ctx)
			if err := at.now.take(s.orders.payer(caller)); err != nil {
				s.refusePool(err).Send(ctx)
				return
			}
		}
		t.Judge()
		t.Enter()
		t.Await()
		answered := watch.Begin()
		t.Finish()
		watch.End(s.options.Stages.Answer, answered)
		*caller = identity{}
		callers.Put(caller)
	}
}

// calls are the sequencer's calls of a story whose Commands have entered, in the order of answers.
type calls []*sequencer.Call

// Ready reports whether all calls have been answered.
func (c calls) Ready() bool { return len(c) == 0 || c[len(c)-1].Answered() }
