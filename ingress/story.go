package ingress

import (
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/engine/sequencer"
	"clobd/ingress/answer"
	"clobd/ingress/socket"
)

// opener begins the story of a request of an authenticated caller, or answers the request and
// returns nil. It counts the request in the caller's windows.
type opener func(ctx *fasthttp.RequestCtx, caller *identity) socket.Story

// journey is the clock of a story and the seats that it uses: now until its Commands have entered,
// then after that. Over HTTP both are the seat of the connection. On a socket the second part has
// none, because it computes next to nothing.
type journey struct {
	now, then *seat
	watch     answer.Watch
	began     time.Time     // when all of the request was there
	took      time.Duration // to authenticate; 0 on a socket, whose caller did that at the login
}

// journeyOf returns the journey of a story that checks signatures, nil for any other story.
func journeyOf(t socket.Story) *journey {
	switch t := t.(type) {
	case *placing:
		return &t.journey
	case *bundling:
		return &t.journey
	}
	return nil
}

// ofOne reports whether t is the story of one order.
func ofOne(t socket.Story) bool {
	_, is := t.(*placing)
	return is
}

// callers are identities that no story uses now.
var callers = sync.Pool{New: func() any { return new(identity) }}

// tells returns the handler of a route whose stories open begins.
func (s *Server) tells(open opener) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if err := seatOf(ctx).refusal(); err != nil { // who has no seat need not prove who asks
			s.refusePool(err).Send(ctx)
			return
		}
		watch := answer.WatchOf(ctx, s.options.DebugStages)
		began := watch.Begin()
		caller := callers.Get().(*identity)
		var ok bool
		*caller, ok = s.authenticate(ctx)
		took := watch.End(s.options.Stages.Authenticate, began)
		if !ok {
			return
		}
		t := open(ctx, caller)
		if t == nil {
			return
		}
		if at := journeyOf(t); at != nil {
			*at = journey{seatOf(ctx), seatOf(ctx), watch, arrived(ctx), took}
			if err := at.now.take(s.orders.payer(caller), ofOne(t)); err != nil {
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
