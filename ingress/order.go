package ingress

import (
	"sync"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/ingress/auth"
	"clobd/ingress/form"
	"clobd/ingress/limits"
)

// rechecks is how often an order is entered again because the engine sent it back to the index.
const rechecks = 3

// placement is the scratch of one order on its way. It has a kilobyte and is pooled.
type placement struct {
	request  form.Request
	market   *view.Market
	outcome  engine.Outcome
	command  engine.Command
	verified auth.Verified
	proof    []byte
	// terms refuses what was asked for beside the signed order. A replay has its result all the
	// same.
	terms *wire.Refusal

	forged   bool  // its signature was checked, and is wrong
	seat     *seat // where it works
	answered bool  // out is the answer
	out      result
	refused  *wire.Refusal // or this is
}

func (p *placement) waits() bool { return p.refused == nil && !p.answered }

func (p *placement) answer(r *engine.Receipt, replay bool) {
	p.out.receipt, p.out.replay, p.answered = *r, replay, true
}

type orders struct {
	*door
	scratch sync.Pool // of *placement, used again once the answer is written
}

func (s *orders) borrow(at *seat) *placement {
	p, ok := s.scratch.Get().(*placement)
	if !ok {
		p = &placement{proof: make([]byte, 0, engine.ProofMax)}
	}
	p.seat = at
	return p
}

func (s *orders) recycle(p *placement) {
	*p = placement{proof: p.proof[:0]}
	s.scratch.Put(p)
}

// postOrder is POST /order, from its bytes to its answer. Cheap steps come first, but the index is
// asked after the signature, which alone tells the exchange and so the id of the order.
func (s *orders) postOrder(ctx *fasthttp.RequestCtx) {
	caller, ok := s.authenticate(ctx)
	if !ok || !s.admitAccount(ctx, &caller, limits.Demand{Scope: limits.OrderScope, N: 1}) {
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
	p := s.borrow(at)
	defer s.recycle(p)
	p.refused = s.judge(p, &caller, string(ctx.Request.Body()))
	s.verified(&claim, p)
	if p.refused == nil {
		p.refused = s.clear(p, &caller)
	}
	for tries := 0; p.waits(); tries++ {
		if tries > rechecks {
			p.refused = refuseRecheck
			break
		}
		if s.look(p); !p.waits() {
			break
		}
		call, err := s.options.Enter(&p.command)
		if err != nil {
			p.refused = s.refuseSubmit(err, &p.command.ID)
			break
		}
		at.leave()
		receipt, displaced, err := call.WaitPlaced() // parks until the Receipt may be told
		at.back()
		p.out.displaced = displaced
		if s.conclude(p, &receipt, err); p.waits() {
			s.await(at, receipt.First)
		}
	}
	refused := p.refused
	if refused == nil && p.out.receipt.Reject != engine.Accepted {
		refused = s.refuseOrder(p)
	}
	if p.out.replay {
		markReplay(ctx)
	}
	if p.answered && (refused == nil || refused.Status < fasthttp.StatusInternalServerError) {
		wire.MarkSequence(ctx, p.out.receipt.Sequence)
	}
	if refused != nil {
		refused.Send(ctx)
		return
	}
	markFees(ctx, &p.out)
	markDisplaced(ctx, p.out.displaced)
	wire.AnswerRaw(ctx, appendResult(make([]byte, 0, 512), &p.out, s.options.JournalID))
}

// look asks the index for an order, and whether the order may enter if it is new.
func (s *orders) look(p *placement) {
	past, known, seen, err := s.options.Past(p.command.ID)
	if p.command.Seen = seen; known || err != nil {
		p.refused = s.replay(p, &past, err)
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
