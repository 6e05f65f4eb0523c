package ingress

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/scan"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/ingress/limits"
)

// maxBundle bounds the orders of one POST /orders.
const maxBundle = 15

// bundle is the orders of one request, each on its way by itself until they enter together.
type bundle []*placement

func refuseLong(n, most int) *wire.Refusal {
	return wire.Refuse(400, "bad_payload",
		fmt.Sprintf("Too many orders in payload: %d, max allowed: %d", n, most), "")
}

// postOrders is POST /orders: a list of what POST /order takes, with one result for each in the
// same order. The fault of one order stands in its result and keeps no other out. A fault that
// keeps all orders out is the answer to the whole request.
//
//	judge side by side ─► clear each ─► enter as one bundle ─► results
func (s *orders) postOrders(ctx *fasthttp.RequestCtx) {
	caller, ok := s.authenticate(ctx)
	if !ok {
		return
	}
	texts, count, ok := scan.Array(string(ctx.Request.Body()), maxBundle)
	n := uint32(max(min(count, maxBundle), 1))
	if !s.admitAccount(ctx, &caller, limits.Demand{Scope: limits.OrderScope, N: n}) {
		return
	}
	switch {
	case !ok || count == 0:
		refusePayload.Because("the body must be a JSON array of 1 to 15 orders").Send(ctx)
		return
	case count > maxBundle:
		refuseLong(count, maxBundle).Send(ctx)
		return
	}
	at := seatOf(ctx)
	if err := at.take(s.payer(&caller)); err != nil {
		s.refusePool(err).Send(ctx)
		return
	}
	claim, ok := s.mayVerify(ctx, &caller)
	if !ok {
		return
	}
	b := make(bundle, count)
	for i := range b {
		b[i] = s.borrow(at)
		defer s.recycle(b[i])
		b[i].out.dialect = caller.dialect
	}
	s.judgeAll(b, &caller, texts)
	for _, p := range b {
		s.verified(&claim, p)
		if p.refused == nil {
			p.refused = s.clear(p, &caller)
		}
	}
	refused := b.failed()
	if refused == nil {
		refused = s.enterOrders(b, at)
	}
	if refused == nil {
		refused = b.untold()
	}
	if refused != nil {
		refused.Send(ctx)
		return
	}
	s.replyBundle(ctx, b)
}

// judgeAll judges the orders side by side, in the seat of the request and in those that are free.
func (s *orders) judgeAll(b bundle, caller *identity, texts []string) {
	var next atomic.Int32
	var panicked atomic.Pointer[string]
	work := func() {
		defer keep(&panicked)
		for i := int(next.Add(1)); i <= len(b); i = int(next.Add(1)) {
			b[i-1].refused = s.judge(b[i-1], caller, texts[i-1])
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
	joined.Wait() // also after a panic: the orders are used again
	if cause := panicked.Load(); cause != nil {
		panic(*cause)
	}
}

// failed is the first refusal that is not the fault of an order. Before anything has entered, it is
// the answer to the whole request.
func (b bundle) failed() *wire.Refusal {
	for _, p := range b {
		if p.refused != nil && p.refused.Status >= fasthttp.StatusInternalServerError &&
			!p.unknown() {
			return p.refused
		}
	}
	return nil
}

func (p *placement) unknown() bool {
	return p.refused != nil && p.refused.Status == fasthttp.StatusGatewayTimeout
}

// untold answers the whole request if some orders may be live and no order has a result. Clients
// would take such orders for refused; the answer lists their ids.
func (b bundle) untold() *wire.Refusal {
	ids := []byte{'['}
	for _, p := range b {
		if p.answered {
			return nil
		}
		if p.unknown() {
			ids = wire.AppendString(wire.AppendComma(ids), p.verified.ID.Hex())
		}
	}
	if len(ids) == 1 {
		return nil
	}
	return wire.Refuse(504, "timeout", "order timed out", "").
		With(wire.Member{Name: "orders", Value: string(append(ids, ']')), JSON: true})
}

// enterOrders looks each order up, enters the new ones as neighbours and waits for them, again if
// the engine sends some back to the index. It refuses the whole only while no order has entered.
func (s *orders) enterOrders(b bundle, at *seat) *wire.Refusal {
	entered := false
	for range 1 + rechecks {
		for _, p := range b.waiting() {
			s.look(p)
		}
		waiting := b.waiting()
		if len(waiting) == 0 {
			break
		}
		commands, calls := make([]engine.Command, len(waiting)), make([]*sequencer.Call, len(waiting))
		for i, p := range waiting {
			commands[i] = p.command
		}
		if err := s.options.EnterAll(commands, calls); err != nil {
			waiting.refuse(s.refuseSubmit(err, nil))
			break
		}
		receipts, errs := make([]engine.Receipt, len(calls)), make([]error, len(calls))
		at.leave()
		b[0].out.displaced = append(b[0].out.displaced, sequencer.WaitAll(calls, receipts, errs)...)
		at.back()
		floor := s.answerAll(b, waiting, receipts, errs)
		if entered = entered || len(b.waiting()) < len(waiting); floor == 0 {
			break
		}
		s.await(at, floor)
	}
	b.waiting().refuse(refuseRecheck)
	if entered {
		return nil
	}
	return b.failed()
}

func (b bundle) waiting() bundle {
	var waiting bundle
	for _, p := range b {
		if p.waits() {
			waiting = append(waiting, p)
		}
	}
	return waiting
}

func (b bundle) refuse(refused *wire.Refusal) {
	for _, p := range b {
		p.refused = refused
	}
}

// answerAll concludes the orders that entered. Those that still wait must enter again, once the
// index has reached floor.
func (s *orders) answerAll(
	b, entered bundle, receipts []engine.Receipt, errs []error,
) (floor engine.Sequence) {
	for i, p := range entered {
		r := &receipts[i]
		if errs[i] == nil && r.Reject == engine.RejectDuplicate && b.same(p) != nil {
			p.answer(&b.same(p).out.receipt, true)
		} else if s.conclude(p, r, errs[i]); p.waits() {
			floor = max(floor, r.First)
		}
	}
	return floor
}

// same is the order of the bundle that bound the id of p, nil if none did.
func (b bundle) same(p *placement) *placement {
	for _, other := range b {
		r := &other.out.receipt
		bound := r.Reject == engine.Accepted || engine.Rejects[r.Reject].Final
		if other != p && other.answered && other.command.ID == p.command.ID && bound {
			return other
		}
	}
	return nil
}

func (b bundle) results() []*result {
	all := make([]*result, len(b))
	for i, p := range b {
		all[i] = &p.out
	}
	return all
}

// replyBundle answers with one result for each order.
func (s *orders) replyBundle(ctx *fasthttp.RequestCtx, b bundle) {
	dst, replay, last := append(make([]byte, 0, 512*len(b)), '['), true, engine.Sequence(0)
	for _, p := range b {
		dst = wire.AppendComma(dst)
		replay = replay && p.answered && p.out.replay
		last = max(last, p.out.receipt.Sequence)
		refused := p.refused
		if refused == nil && p.out.receipt.Reject != engine.Accepted {
			refused = s.refuseOrder(p)
		}
		if refused == nil {
			dst = appendResult(dst, &p.out, s.options.JournalID)
			continue
		}
		var id *engine.OrderID
		if p.unknown() {
			id = &p.verified.ID
		}
		dst = appendRefused(dst, refused, id, p.out.dialect)
	}
	if replay {
		markReplay(ctx)
	}
	wire.MarkSequence(ctx, last)
	markFees(ctx, b.results()...)
	markDisplaced(ctx, b[0].out.displaced)
	wire.AnswerRaw(ctx, append(dst, ']'))
}
