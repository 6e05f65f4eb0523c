package ingress

import (
	"errors"
	"fmt"
	"slices"
	"sync"

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
	claim  limits.Claim
	journey
	refused *wire.Refusal // if not nil, the answer to the whole request

	// The next bundling uses these again.
	texts    []string
	b        bundle
	commands []engine.Command // of the orders in entered, as are those below
	calls
	entered  bundle
	receipts []engine.Receipt
	failures []error
	body     []byte
}

// longestList is how long the answer to a list may be whose bytes are used again.
const longestList = 32 << 10

// bundlings have no orders.
var bundlings = sync.Pool{New: func() any { return new(bundling) }}

// recycleAll takes a bundling back after its end, with its orders.
func (t *bundling) recycleAll() {
	for _, p := range t.b {
		t.recycle(p)
	}
	clear(t.b)
	clear(t.entered)
	clear(t.texts)
	clear(t.commands)
	clear(t.calls)
	clear(t.failures)
	*t = bundling{texts: t.texts[:0], b: t.b[:0], commands: t.commands[:0], calls: t.calls[:0],
		entered: t.entered[:0], receipts: t.receipts[:0], failures: t.failures[:0], body: t.body[:0]}
	bundlings.Put(t)
}

// placeAll begins the story of a list of orders.
func (s *orders) placeAll(ctx *fasthttp.RequestCtx, caller *identity) socket.Story {
	t := bundlings.Get().(*bundling)
	var count int
	var ok bool
	t.texts, count, ok = scan.Array(t.texts[:0], wire.Text(ctx.Request.Body()), maxBundle)
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
	t.orders, t.ctx, t.caller, t.claim = s, ctx, caller, claim
	return t
}

// Judge checks all orders.
func (t *bundling) Judge() {
	for _, text := range t.texts {
		p := t.borrow(t.caller, text)
		p.seat, p.watch = t.now, t.watch
		t.b = append(t.b, p)
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
	n := len(t.calls)
	t.receipts, t.failures = slices.Grow(t.receipts[:0], n)[:n], slices.Grow(t.failures[:0], n)[:n]
	if n == 0 {
		return
	}
	t.then.leave()
	displaced := sequencer.WaitAll(t.calls, t.receipts, t.failures)
	t.b[0].out.Displaced = append(t.b[0].out.Displaced, displaced...)
	t.then.back()
}

// Finish answers the request.
func (t *bundling) Finish() {
	defer t.recycleAll()
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
	t.reply()
}

// judgeAll checks the orders: in the caller's seat, or in equal parts if more seats are free. The
// more a seat checks together, the less each costs, so it checks at least few.
func (s *orders) judgeAll(b bundle) {
	const few = 4
	s.crew.Run(b, s.pool.try((len(b)-1)/few))
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
	t.calls, t.entered, t.commands = t.calls[:0], t.entered[:0], t.commands[:0]
	for _, p := range t.b {
		if !p.waits() || p.found || p.terms != nil {
			continue
		}
		if t.look(p); p.waits() && !p.found {
			t.entered, t.commands = append(t.entered, p), append(t.commands, p.command)
		}
	}
	n := len(t.entered)
	if n == 0 {
		return
	}
	entered := slices.Grow(t.calls, n)[:n]
	if err := t.options.EnterAll(t.commands, entered); err != nil {
		t.entered.refuse(t.refuseSubmit(err, nil))
		return
	}
	t.calls = entered
}

// settle gives each order its result. Orders that the engine sends back to the index enter again,
// once the index has caught up. settle refuses the whole request only while no order has a result.
func (t *bundling) settle() *wire.Refusal {
	if full := new(sequencer.LimitedError); len(t.calls) > 0 && errors.As(t.failures[0], &full) {
		return t.refuseFull(full)
	}
	t.replayKnown()
	entered := false
	for tries := 0; len(t.calls) > 0; tries++ {
		floor := t.answerAll(t.b, t.entered, t.receipts, t.failures)
		if entered = entered || t.b.waiting() < len(t.entered); floor == 0 {
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
	t.b.refuse(refuseRecheck)
	if entered {
		return nil
	}
	return t.b.failed()
}

// replayKnown answers the orders that the index knows, and those with bad terms.
func (t *bundling) replayKnown() {
	for i, p := range t.b {
		prior := t.b[max(i-1, 0)] // one question serves all
		p.told, p.asked = prior.told, prior.asked
		switch {
		case !p.waits():
		case p.terms != nil:
			p.refused = t.replayBeside(p)
		case p.found:
			p.refused = t.replay(p)
		}
	}
}

// waiting counts the orders without an answer.
func (b bundle) waiting() (n int) {
	for _, p := range b {
		if p.waits() {
			n++
		}
	}
	return n
}

// refuse refuses all orders without an answer.
func (b bundle) refuse(refused *wire.Refusal) {
	for _, p := range b {
		if p.waits() {
			p.refused = refused
		}
	}
}

// answerAll concludes orders that entered. The others enter again once the index reaches floor.
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

// reply answers with one result for each order.
func (t *bundling) reply() {
	dst, replay, last := append(t.body[:0], '['), true, engine.Sequence(0)
	var room [maxBundle]*answer.Result
	results := room[:0]
	for _, p := range t.b {
		results = append(results, &p.out)
		dst = wire.AppendComma(dst)
		replay = replay && p.answered && p.out.Replay
		last = max(last, p.out.Receipt.Sequence)
		refused := p.refused
		if refused == nil && p.out.Receipt.Reject != engine.Accepted {
			refused = p.refuseOrder(t.options.Board)
		}
		if refused == nil {
			dst = answer.Append(dst, &p.out, t.options.JournalID)
			continue
		}
		var id *engine.OrderID
		if p.unknown() {
			id = &p.verified.ID
		}
		dst = answer.AppendRefused(dst, refused, id, p.out.Dialect)
	}
	if replay {
		answer.MarkReplay(t.ctx)
	}
	wire.MarkSequence(t.ctx, last)
	answer.MarkFees(t.ctx, results...)
	answer.MarkDisplaced(t.ctx, t.b[0].out.Displaced)
	dst = append(dst, ']')
	if cap(dst) > longestList { // it is not kept
		wire.AnswerRaw(t.ctx, dst)
		return
	}
	t.body = dst
	wire.Answer(t.ctx, dst)
}
