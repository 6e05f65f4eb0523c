package ingress

import (
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress/answer"
	"clobd/ingress/auth"
	"clobd/ingress/form"
	"clobd/ingress/limits"
	"clobd/ingress/party"
	"clobd/ingress/socket"
)

// rechecks is how often an order is entered again because the engine sent it back to the index.
const rechecks = 3

// placement is the scratch of one order on its way. It has a kilobyte and is pooled.
type placement struct {
	caller   *identity
	body     string
	request  form.Request
	market   *view.Market
	outcome  engine.Outcome
	command  engine.Command
	verified auth.Verified
	proof    []byte
	// terms refuses what was asked for beside the signed order; a replay has its result all the same.
	terms *wire.Refusal

	watch         answer.Watch
	parse, verify time.Duration   // how long these stages took
	spent         sequencer.Spent // in the stages behind the ring

	forged   bool            // its signature is wrong
	found    bool            // the index knows the order, or cannot tell
	past     engine.Receipt  // what the index knows
	unread   error           // why the index cannot tell
	told     engine.Sequence // Confirm's answer, once asked
	asked    error           // Confirm's error
	seat     *seat           // the seat that the order uses
	answered bool            // out holds the answer
	out      answer.Result
	refused  *wire.Refusal // if not nil, this is the answer

	story placing // of a single order
}

func (p *placement) waits() bool { return p.refused == nil && !p.answered }

func (p *placement) answer(r *engine.Receipt, replay bool) {
	p.out.Receipt, p.out.Replay, p.answered = *r, replay, true
}

// refuseOrder returns the refusal of an order that the engine refused.
func (p *placement) refuseOrder(b *view.Board) *wire.Refusal {
	asked := answer.Asked{Command: &p.command, Market: p.market, Board: b}
	return asked.Refuse(&p.out)
}

type orders struct {
	*door
	scratch sync.Pool // of *placement, used again once the answer is written
	lists   sync.Pool // of *[]auth.Submission, whose signatures are checked
	crew    party.Crew[*placement]
}

func (s *orders) borrow(caller *identity, body string) *placement {
	p, ok := s.scratch.Get().(*placement)
	if !ok {
		p = &placement{proof: make([]byte, 0, engine.ProofMax)}
	}
	p.caller, p.body, p.out.Dialect = caller, body, caller.dialect
	return p
}

func (s *orders) recycle(p *placement) {
	signature := p.request.Signature[:0]
	*p = placement{proof: p.proof[:0]}
	p.request.Signature = signature
	s.scratch.Put(p)
}

// placing is the story of POST /order, from its bytes to its answer. Cheap steps come first. The
// index is asked after the signature is checked, because only the signature tells for which
// exchange the order was signed, and so which id the order has.
type placing struct {
	*orders
	ctx   *fasthttp.RequestCtx
	claim limits.Claim
	journey
	p       *placement
	call    *sequencer.Call // nil: the order did not enter
	receipt engine.Receipt  // of call, unless failed is set
	failed  error
	// replaced is the order that this one replaces, or nil. The engine does both, or neither.
	replaced *engine.OrderID
}

// place begins the story of an order.
func (s *orders) place(ctx *fasthttp.RequestCtx, caller *identity) socket.Story {
	return s.admitted(ctx, caller, wire.Text(ctx.Request.Body()), nil)
}

// admitted returns the story of an order with this body if the caller's windows allow it. Otherwise
// it answers the request and returns nil.
func (s *orders) admitted(ctx *fasthttp.RequestCtx, caller *identity, body string,
	replaced *engine.OrderID) socket.Story {
	if !s.admitAccount(ctx, caller, limits.Demand{Scope: limits.OrderScope, N: 1}) {
		return nil
	}
	claim, ok := s.mayVerify(ctx, caller)
	if !ok {
		return nil
	}
	p := s.borrow(caller, body)
	p.story = placing{orders: s, ctx: ctx, claim: claim, p: p, replaced: replaced}
	return &p.story
}

var refuseReplace = wire.Refuse(400, "bad_payload", "Invalid order payload",
	`params must be like {"cancel":{"orderID":"0x and 64 hex digits"},"place":{a body of POST /order}}`)

// replace begins the story of an order that replaces another order of the same wallet.
func (s *orders) replace(ctx *fasthttp.RequestCtx, caller *identity) socket.Story {
	old, body, refused := form.Replace(ctx.Request.Body())
	if refused != nil {
		refuseKeys(refused, refuseReplace).Send(ctx)
		return nil
	}
	id, ok := engine.ParseOrderID(old)
	if !ok {
		refuseOrderID.Send(ctx)
		return nil
	}
	if !s.admitAccount(ctx, caller, limits.Demand{Scope: limits.CancelScope, N: 1}) {
		return nil // a replacement counts as a cancel and as an order
	}
	return s.admitted(ctx, caller, body, &id)
}

// Judge checks the order, its signature last.
func (t *placing) Judge() {
	t.p.seat, t.p.watch = t.now, t.watch
	if g := t.now.held.Load(); g == nil || g == alone {
		t.judge(t.p)
	} else {
		t.judgeWith(g, t.p)
	}
}

// Enter enters the order, unless a check has refused it.
func (t *placing) Enter() {
	p := t.p
	t.verified(&t.claim, p)
	if t.replaced != nil {
		p.command.Replace(*t.replaced)
	}
	if p.refused == nil && p.terms == nil && p.command.Owner == 0 {
		p.refused = t.link(p, t.p.caller)
	}
	if p.refused == nil && p.terms == nil {
		t.call = t.enterOne(p)
	}
}

// enterOne enters an order, unless the index knows it. It returns nil if the order did not enter.
func (s *orders) enterOne(p *placement) *sequencer.Call {
	if s.look(p); p.found || p.refused != nil {
		return nil
	}
	call, err := s.options.Enter(&p.command)
	if err != nil {
		p.refused = s.refuseSubmit(err, &p.command.ID)
		return nil
	}
	return call
}

// Ready reports whether Await would return at once.
func (t *placing) Ready() bool { return t.call == nil || t.call.Answered() }

// Await waits for the Receipt.
func (t *placing) Await() {
	if t.call != nil {
		t.wait()
	}
}

// Late reports whether the result depends on the index, which may have to catch up first.
func (t *placing) Late() bool {
	if t.call == nil {
		return t.p.refused == nil
	}
	return t.failed == nil && asksIndex(t.receipt.Reject)
}

// asksIndex reports whether the answer to a Reject is in the index.
func asksIndex(why engine.Reject) bool {
	return why == engine.RejectDuplicate || why == engine.RejectRecheck ||
		why == engine.RejectReplaced
}

// wait gives up the seat and waits for the Receipt.
func (t *placing) wait() {
	p := t.p
	p.seat = t.then
	p.seat.leave()
	began := t.watch.Begin()
	receipt, placed, err := t.call.WaitPlaced()
	t.receipt, p.out.Displaced, p.spent, t.failed = receipt, placed.Canceled, placed.Spent, err
	if err != nil { // nobody says which stage it waited for
		p.spent.Wait = t.watch.End(nil, began)
	}
	p.seat.back()
}

// Finish answers the request.
func (t *placing) Finish() {
	p, ctx := t.p, t.ctx
	defer t.recycle(p)
	defer t.tellStages(t.watch.Begin())
	p.seat = t.then
	if p.refused == nil && p.terms != nil {
		p.refused = t.replayBeside(p)
	}
	t.settle()
	refused := p.refused
	switch {
	case refused != nil:
	case p.out.Receipt.Reject == engine.RejectReplaced:
		refused = t.refuseReplacement()
	case p.out.Receipt.Reject != engine.Accepted:
		refused = p.refuseOrder(t.options.Board)
	case t.replaced != nil && len(p.out.Displaced) > 0:
		p.out.Displaced = p.out.Displaced[1:] // the first is the replaced order itself
	}
	if p.out.Replay {
		answer.MarkReplay(ctx)
	}
	if p.answered && (refused == nil || refused.Status < fasthttp.StatusInternalServerError) {
		wire.MarkSequence(ctx, p.out.Receipt.Sequence)
	}
	if refused != nil {
		refused.Send(ctx)
		return
	}
	answer.MarkFees(ctx, &p.out)
	answer.MarkDisplaced(ctx, p.out.Displaced)
	t.reply()
}

// tellStages tells the stages of a timed order, and answers with them if the request wants that.
// The last stage began at finish.
func (t *placing) tellStages(finish time.Time) {
	if p, s := t.p, &t.p.spent; t.watch {
		took := answer.Took{t.took, p.parse, p.verify, s.Wait, s.Match, s.Append, s.Sync,
			s.Publish, time.Since(finish)}
		t.options.Stages.Tell(t.ctx, t.began, &took, uint64(p.out.Receipt.Sequence))
		answer.MarkStages(t.ctx, &took, t.options.DebugStages)
	}
}

// settle finds the result of an order: in its Receipt, or in the index if the order was taken
// before. If the engine sends the order back, because the index may have missed it, settle lets the
// index catch up and enters the order again.
func (t *placing) settle() {
	p := t.p
	for tries := 1; p.waits(); tries++ {
		if p.found {
			p.refused = t.replay(p)
			return
		}
		if t.conclude(p, &t.receipt, t.failed); !p.waits() {
			return
		}
		t.await(p.seat, t.receipt.First)
		if tries > rechecks {
			p.refused = refuseRecheck
		} else if t.call = t.enterOne(p); t.call != nil {
			t.wait()
		}
	}
}

// reply answers with the result of an accepted order.
func (t *placing) reply() {
	body := make([]byte, 0, 640)
	if t.replaced == nil {
		wire.Answer(t.ctx, answer.Append(body, &t.p.out, t.options.JournalID))
		return
	}
	body = append(body, `{"canceled":`...)
	if t.madeWay() {
		body = append(engine.AppendHex(append(body, '"'), t.replaced[:]), '"')
	} else {
		body = append(body, "null"...)
	}
	body = answer.Append(append(body, `,"order":`...), &t.p.out, t.options.JournalID)
	wire.Answer(t.ctx, append(body, '}'))
}

// madeWay reports whether the replaced order was canceled. If the new order was taken before, it
// may have been sent without a replacement at that time.
func (t *placing) madeWay() bool {
	if !t.p.out.Replay {
		return true
	}
	past, known, _, err := t.options.Past(*t.replaced)
	return err == nil && known && past.Wallet == t.p.out.Receipt.Wallet &&
		past.Status == engine.Canceled
}

// refuseReplacement returns the refusal of an order that cannot replace the other one, because that
// one is over, never existed, or belongs to another wallet.
func (t *placing) refuseReplacement() *wire.Refusal {
	c := &t.p.command
	caughtUp := t.options.Await(t.receipt.Sequence, recheckWait)
	reason, refused := (&cancels{t.door}).missed(*t.replaced, c.Owner, caughtUp)
	if refused != nil {
		return refused
	}
	detail := "the order to be replaced is not live: nothing was placed"
	past, known, _, err := t.options.Past(*t.replaced)
	if err == nil && known && reason == reasonDone && past.Wallet != c.Wallet {
		reason = reasonUnknown
		detail = "the order to be replaced is one of another wallet: nothing was placed"
	}
	return wire.Refuse(400, engine.Rejects[engine.RejectReplaced].Code, reason, detail)
}

// look asks the index for an order, and whether the order may enter if it is new.
func (s *orders) look(p *placement) {
	past, known, seen, err := s.options.Past(p.command.ID)
	if p.command.Seen = seen; known || err != nil {
		p.found, p.past, p.unread = true, past, err
	} else if err = s.barred(&p.command); err != nil {
		p.refused = s.refuseSubmit(err, &p.command.ID)
	}
}

// conclude answers or refuses an order that entered and got this Receipt or err. If the engine sent
// the order back, it still waits: for the index to reach r.First.
func (s *orders) conclude(p *placement, r *engine.Receipt, err error) {
	switch {
	case err != nil:
		p.refused = s.refuseSubmit(err, &p.command.ID)
	case r.Reject == engine.RejectDuplicate:
		p.refused = s.replayUnseen(p, r.First)
	case r.Reject != engine.RejectRecheck:
		p.answer(r, false)
	}
}

// payer is whose share of the pool's queue an order takes. All strangers have one share together.
func (s *orders) payer(caller *identity) (payer engine.Address) {
	if _, known := s.options.Board.Directory.Wallet(caller.Address); known {
		payer = caller.Address
	}
	return payer
}
