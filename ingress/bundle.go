package ingress

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/engine/sequencer"
)

// maxBundle bounds the orders of one POST /orders.
const maxBundle = 15

// bundle is the orders of one request, each on its way by itself until they enter together.
type bundle []*placement

// refuseLong refuses a list with too many entries.
func refuseLong(n, most int) *refusal {
	return &refusal{400, "bad_payload",
		fmt.Sprintf("Too many orders in payload: %d, max allowed: %d", n, most), nil}
}

// postOrders is POST /orders: a list of what POST /order takes, with one result for each in the
// same order. What is wrong with one of them is said in its result and keeps no other out; what
// keeps all of them out is the answer to the whole request, and then none has entered.
//
//	accept each ─► verify side by side ─► authorize each ─► enter as one bundle ─► results
func (s *Server) postOrders(ctx *fasthttp.RequestCtx) {
	caller, ok := s.authenticate(ctx)
	if !ok {
		return
	}
	texts, count, ok := splitArray(string(ctx.Request.Body()), maxBundle)
	n := uint32(max(min(count, maxBundle), 1))
	if !s.admitAccount(ctx, caller.Address, demand{orderScope, n}) {
		return
	}
	switch {
	case !ok || count == 0:
		refusePayload.because("the body must be a JSON array of 1 to 15 orders").send(ctx)
		return
	case count > maxBundle:
		refuseLong(count, maxBundle).send(ctx)
		return
	}
	at, no := s.sit(ctx, &caller)
	if no != nil {
		no.send(ctx)
		return
	}
	b := make(bundle, count)
	for i, text := range texts {
		b[i] = s.placements.get()
		defer s.placements.put(b[i])
		b[i].seat = at
		b[i].refused = s.accept(b[i], &caller, text)
		b[i].out.dialect = caller.dialect
	}
	s.verifyAll(b)
	if no = s.authorizeAll(b, &caller); no == nil {
		no = s.placeAll(b, at)
	}
	if no == nil {
		no = b.untold()
	}
	if no != nil {
		no.send(ctx)
		return
	}
	s.replyBundle(ctx, b)
}

// verifyAll checks the signatures side by side: in the place that the request has, and in those
// that nobody waits for.
func (s *Server) verifyAll(b bundle) {
	var next atomic.Int32
	work := func() {
		for i := int(next.Add(1)); i <= len(b); i = int(next.Add(1)) {
			if p := b[i-1]; p.refused == nil {
				p.refused = s.verify(p)
			}
		}
	}
	var joined sync.WaitGroup
	for range len(b) - 1 {
		if !s.pool.try() {
			break
		}
		joined.Go(func() {
			defer s.pool.leave()
			work()
		})
	}
	work()
	joined.Wait()
}

// authorizeAll makes a Command of each order that is left.
func (s *Server) authorizeAll(b bundle, caller *identity) *refusal {
	for _, p := range b {
		if p.refused == nil {
			p.refused = s.authorize(p, caller)
		}
	}
	return b.failed()
}

// failed is the first refusal that is nobody's fault: before anything has entered it is the answer
// to the whole request.
func (b bundle) failed() *refusal {
	for _, p := range b {
		if p.refused != nil && p.refused.status >= fasthttp.StatusInternalServerError &&
			!p.unknown() {
			return p.refused
		}
	}
	return nil
}

// unknown says whether the order has no answer and may be live.
func (p *placement) unknown() bool {
	return p.refused != nil && p.refused.status == fasthttp.StatusGatewayTimeout
}

// untold is the answer to the whole request if some orders may be live and no result of another one
// has to be told: clients take an order that is not placed for a refused one. It lists the ids.
func (b bundle) untold() *refusal {
	ids := []byte{'['}
	for _, p := range b {
		if p.settled {
			return nil
		}
		if p.unknown() {
			if len(ids) > 1 {
				ids = append(ids, ',')
			}
			ids = appendString(ids, p.verified.ID.Hex())
		}
	}
	if len(ids) == 1 {
		return nil
	}
	return &refusal{504, "timeout", "order timed out",
		[]detail{{"orders", string(append(ids, ']'))}}}
}

// placeAll is place for a bundle. It refuses the whole only while none has entered.
func (s *Server) placeAll(b bundle, at *seat) *refusal {
	entered := false
	for range 1 + rechecks {
		for _, p := range b {
			if p.refused == nil && !p.settled {
				p.refused = s.look(p)
			}
			if p.refused == nil && !p.settled && s.quarantined(&p.command) {
				p.refused = &refuseQuarantined
			} else if p.refused == nil && !p.settled && s.crowded(&p.command) {
				p.refused = &refuseCrowded
			}
		}
		open := b.open()
		if len(open) == 0 {
			break
		}
		calls := make([]*sequencer.Call, len(open))
		if err := s.options.Sequencer.EnterAll(open.commands(), calls); err != nil {
			open.refuse(s.refuseSubmit(err, nil))
			break
		}
		receipts, errs := waitAll(at, calls)
		floor := s.takeAll(b, open, receipts, errs)
		if entered = entered || len(b.open()) < len(open); floor == 0 {
			break
		}
		s.await(at, floor)
	}
	b.open().refuse(&refuseRecheck)
	if entered {
		return nil
	}
	return b.failed()
}

// open are the orders without an answer.
func (b bundle) open() bundle {
	var open bundle
	for _, p := range b {
		if p.refused == nil && !p.settled {
			open = append(open, p)
		}
	}
	return open
}

// refuse refuses all of them.
func (b bundle) refuse(no *refusal) {
	for _, p := range b {
		p.refused = no
	}
}

func (b bundle) commands() []engine.Command {
	commands := make([]engine.Command, len(b))
	for i, p := range b {
		commands[i] = p.command
	}
	return commands
}

// waitAll waits for calls, without a place.
func waitAll(at *seat, calls []*sequencer.Call) (receipts []engine.Receipt, errs []error) {
	receipts, errs = make([]engine.Receipt, len(calls)), make([]error, len(calls))
	at.leave()
	defer at.back()
	sequencer.WaitAll(calls, receipts, errs)
	return receipts, errs
}

// takeAll settles or refuses each of the orders that entered. Those that it leaves open must be
// judged again, once the index has reached the Sequence that it returns.
func (s *Server) takeAll(
	b, open bundle, receipts []engine.Receipt, errs []error,
) (floor engine.Sequence) {
	for i, p := range open {
		r := &receipts[i]
		switch {
		case errs[i] != nil && !errors.Is(errs[i], sequencer.ErrClosed):
			p.refused = s.refuseSubmit(errs[i], &p.command.ID)
		case errs[i] != nil:
			p.refused = &refuseClosing
		case r.Reject == engine.RejectDuplicate && b.same(p) != nil:
			p.settle(&b.same(p).out.receipt, true)
		default:
			if p.refused = s.take(p, r); r.Reject == engine.RejectRecheck {
				floor = max(floor, r.First)
			}
		}
	}
	return floor
}

// same is the order of the bundle that bound the id of p, nil if none did.
func (b bundle) same(p *placement) *placement {
	for _, other := range b {
		r := &other.out.receipt
		bound := r.Reject == engine.Accepted || engine.Rejects[r.Reject].Final
		if other != p && other.settled && other.command.ID == p.command.ID && bound {
			return other
		}
	}
	return nil
}

// replyBundle answers with one result for each order.
func (s *Server) replyBundle(ctx *fasthttp.RequestCtx, b bundle) {
	dst, replay := append(make([]byte, 0, 512*len(b)), '['), true
	for i, p := range b {
		if i > 0 {
			dst = append(dst, ',')
		}
		replay = replay && p.settled && p.out.replay
		no, id := p.refused, (*engine.OrderID)(nil)
		if no == nil && p.out.receipt.Reject != engine.Accepted {
			no = s.refuseOrder(p)
		}
		switch {
		case no == nil:
			dst = appendResult(dst, &p.out, s.options.JournalID)
			continue
		case p.unknown():
			id = &p.verified.ID
		}
		dst = appendRefused(dst, no, id, p.out.dialect)
	}
	if replay {
		markReplay(ctx)
	}
	answer(ctx, 200, append(dst, ']'))
}
