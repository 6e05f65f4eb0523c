package ingress

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/scan"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/ingress/answer"
	"clobd/ingress/limits"
	"clobd/ingress/socket"
)

// maxBundle bounds the orders of one POST /orders.
const maxBundle = 15

// bundle is the orders of one request, each on its way by itself until they enter together.
type bundle []*placement

func refuseLong(n, most int) *wire.Refusal {
	return wire.Refuse(400, "bad_payload",
		fmt.Sprintf("Too many orders in payload: %d, max allowed: %d", n, most), "")
}

// bundling is the story of POST /orders. The body is a list of orders as POST /order takes them;
// the answer has one result for each, in the same order. If one order has a fault, its result says
// so, and the others are not affected. A fault that keeps all orders out is the answer to the whole
// request.
//
//	judge side by side ─► clear each ─► enter as one bundle ─► results
type bundling struct {
	*orders
	ctx    *fasthttp.RequestCtx
	caller *identity
	texts  []string
	claim  limits.Claim
	journey
	b        bundle
	calls    // of the orders in entered
	entered  bundle
	receipts []engine.Receipt
	failures []error
	refused  *wire.Refusal // if not nil, the answer to the whole request
}

// placeAll begins the story of a list of orders.
func (s *orders) placeAll(ctx *fasthttp.RequestCtx, caller *identity) socket.Story {
	texts, count, ok := scan.Array(wire.Text(ctx.Request.Body()), maxBundle)
	n := uint32(max(min(count, maxBundle), 1))
	if !s.admitAccount(ctx, caller, limits.Demand{Scope: limits.OrderScope, N: n}) {
		return nil
	}
	switch {
	case !ok || count == 0:
		refusePayload.Because("the body must be a JSON array of 1 to 15 orders").Send(ctx)
		return nil
	case count > maxBundle:
		refuseLong(count, maxBundle).Send(ctx)
		return nil
	}
	claim, ok := s.mayVerify(ctx, caller)
	if !ok {
		return nil
	}
	return &bundling{orders: s, ctx: ctx, caller: caller, texts: texts, claim: claim}
}

// Judge checks all orders.
func (t *bundling) Judge() {
	t.b = make(bundle, len(t.texts))
	for i := range t.b {
		t.b[i] = t.borrow(t.caller, t.texts[i])
		t.b[i].seat, t.b[i].watch = t.now, t.watch
	}
	t.judgeAll(t.b)
}

// Enter enters the orders that nothing has refused so far.
func (t *bundling) Enter() {
	for _, p := range t.b {
		t.verified(&t.claim, p)
		if p.refused == nil && p.terms == nil && p.command.Owner == 0 {
			p.refused = t.link(p, t.caller)
		}
	}
	if t.refused = t.b.failed(); t.refused == nil {
		t.enterSome()
	}
	if len(t.calls) == 0 && t.refused == nil {
		t.refused = t.b.failed()
	}
}

// Await waits for the Receipts.
func (t *bundling) Await() {
	for _, p := range t.b {
		p.seat = t.then
	}
	t.wait()
}

// Late reports whether the result of some order depends on the index.
func (t *bundling) Late() bool {
	for i := range t.receipts {
		if t.failures[i] == nil && asksIndex(t.receipts[i].Reject) {
			return true
		}
	}
	return t.refused == nil && slices.ContainsFunc(t.b, func(p *placement) bool {
		return p.waits() && (p.found || p.terms != nil)
	})
}

// wait gives up the seat and waits for the Receipts.
func (t *bundling) wait() {
	t.receipts, t.failures = make([]engine.Receipt, len(t.calls)), make([]error, len(t.calls))
	if len(t.calls) == 0 {
		return
	}
	t.then.leave()
	displaced := sequencer.WaitAll(t.calls, t.receipts, t.failures)
	t.b[0].out.Displaced = append(t.b[0].out.Displaced, displaced...)
	t.then.back()
}

// Finish answers the request.
func (t *bundling) Finish() {
	defer func() {
		for _, p := range t.b {
			t.recycle(p)
		}
	}()
	if t.refused == nil {
		t.refused = t.settle()
	}
	if t.refused == nil {
		t.refused = t.b.untold()
	}
	if t.refused != nil {
		t.refused.Send(t.ctx)
		return
	}
	t.replyBundle(t.ctx, t.b)
}

// judgeAll checks the orders: in the caller's seat, or in equal parts if more seats are free. The
// more a seat checks together, the less each costs, so it checks at least few.
func (s *orders) judgeAll(b bundle) {
	const few = 4
	helpers := s.pool.try((len(b) - 1) / few)
	size := (len(b) + helpers) / (helpers + 1)
	var taken atomic.Int32
	var panicked atomic.Pointer[string]
	take := func() int { return int(taken.Add(int32(size))) - size }
	work := func() {
		defer keep(&panicked)
		for at := take(); at < len(b); at = take() {
			s.judgeSome(b[at:min(at+size, len(b))])
		}
	}
	var joined sync.WaitGroup
	for range helpers {
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

// enterSome looks up the orders with good terms, and enters new ones as neighbours in the journal.
func (t *bundling) enterSome() {
	t.calls, t.entered = nil, nil
	for _, p := range t.b.waiting() {
		if p.found || p.terms != nil {
			continue
		}
		if t.look(p); p.waits() && !p.found {
			t.entered = append(t.entered, p)
		}
	}
	if len(t.entered) == 0 {
		return
	}
	commands, entered := make([]engine.Command, len(t.entered)), make(calls, len(t.entered))
	for i, p := range t.entered {
		commands[i] = p.command
	}
	if err := t.options.EnterAll(commands, entered); err != nil {
		t.entered.refuse(t.refuseSubmit(err, nil))
		return
	}
	t.calls = entered
}

// settle gives each order its result. Orders that the engine sends back to the index enter again,
// once the index has caught up. settle refuses the whole request only while no order has a result.
func (t *bundling) settle() *wire.Refusal {
	t.replayKnown()
	entered := false
	for tries := 0; len(t.calls) > 0; tries++ {
		floor := t.answerAll(t.b, t.entered, t.receipts, t.failures)
		if entered = entered || len(t.b.waiting()) < len(t.entered); floor == 0 {
			break
		}
		t.await(t.then, floor)
		if tries == rechecks {
			break
		}
		t.enterSome()
		t.wait()
		t.replayKnown()
	}
	t.b.waiting().refuse(refuseRecheck)
	if entered {
		return nil
	}
	return t.b.failed()
}

// replayKnown answers the orders that the index knows, and those with bad terms.
func (t *bundling) replayKnown() {
	for _, p := range t.b.waiting() {
		switch {
		case p.terms != nil:
			p.refused = t.replayBeside(p)
		case p.found:
			p.refused = t.replay(p)
		}
	}
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
			p.answer(&b.same(p).out.Receipt, true)
		} else if s.conclude(p, r, errs[i]); p.waits() {
			floor = max(floor, r.First)
		}
	}
	return floor
}

// same is the order of the bundle that bound the id of p, nil if none did.
func (b bundle) same(p *placement) *placement {
	for _, other := range b {
		r := &other.out.Receipt
		bound := r.Reject == engine.Accepted || engine.Rejects[r.Reject].Final
		if other != p && other.answered && other.command.ID == p.command.ID && bound {
			return other
		}
	}
	return nil
}

func (b bundle) results() []*answer.Result {
	all := make([]*answer.Result, len(b))
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
		replay = replay && p.answered && p.out.Replay
		last = max(last, p.out.Receipt.Sequence)
		refused := p.refused
		if refused == nil && p.out.Receipt.Reject != engine.Accepted {
			refused = p.refuseOrder(s.options.Board)
		}
		if refused == nil {
			dst = answer.Append(dst, &p.out, s.options.JournalID)
			continue
		}
		var id *engine.OrderID
		if p.unknown() {
			id = &p.verified.ID
		}
		dst = answer.AppendRefused(dst, refused, id, p.out.Dialect)
	}
	if replay {
		answer.MarkReplay(ctx)
	}
	wire.MarkSequence(ctx, last)
	answer.MarkFees(ctx, b.results()...)
	answer.MarkDisplaced(ctx, b[0].out.Displaced)
	wire.AnswerRaw(ctx, append(dst, ']'))
}
