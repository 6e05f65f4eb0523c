package ingress

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress/auth"
)

// How long an order waits for the index: once for each look at it.
const (
	rechecks    = 3
	recheckWait = 250 * time.Millisecond
)

// The refusals of the door, in the peers' words.
var (
	refusePayload   = refusal{400, "bad_payload", "Invalid order payload"}
	refuseOwner     = refusal{400, "owner_mismatch", "the order owner has to be the owner of the API KEY"}
	refuseSigner    = refusal{400, "signer_mismatch", "the order signer address has to be the address of the API KEY"}
	refuseMaker     = refusal{400, "maker_not_allowed", "maker address not allowed, please use the deposit wallet flow"}
	refuseCondition = refusal{400, "condition_mismatch", "tokenId does not belong to conditionId"}
	refuseExpiry    = refusal{400, "expiration", "invalid expiration"}
	refuseVersion   = refusal{400, "order_version_mismatch", "order_version_mismatch"}
	refuseTaker     = refusal{400, "bad_payload", "invalid taker: only public orders are taken"}
	refusePostOnly  = refusal{400, "order_type", "post-only orders are not offered"}
	refuseType      = refusal{400, "order_type", "order type is not offered"}
	refuseMarket    = refusal{404, "not_found", "No orderbook exists for the requested token id"}
	refuseAmount    = refusal{400, "bad_payload", "invalid amount: outside the range this exchange can hold"}
)

// refusal is an answer that does not depend on the order's values.
type refusal struct {
	status     int
	code, text string
}

func (r *refusal) send(ctx *fasthttp.RequestCtx) { fail(ctx, r.status, r.code, r.text) }

// placement is the scratch of one order on its way: pooled, because a Command and its evidence are
// a kilobyte.
type placement struct {
	request  request
	command  engine.Command
	verified auth.Verified
	proof    []byte
	owner    engine.WalletNo
}

// placements are used again once their answer is written.
type placements struct{ pool sync.Pool }

func (p *placements) get() *placement {
	if v, ok := p.pool.Get().(*placement); ok {
		return v
	}
	return &placement{proof: make([]byte, 0, engine.ProofMax)}
}

func (p *placements) put(v *placement) {
	*v = placement{proof: v.proof[:0]}
	p.pool.Put(v)
}

// postOrder is POST /order, from its bytes to its result. The order of the steps is that of their
// cost, except that the index is asked after the signature: which of the known exchanges the order
// was signed for decides its id, and only the signature tells which one that is.
func (s *Server) postOrder(ctx *fasthttp.RequestCtx) {
	caller, ok := s.authenticate(ctx)
	if !ok || !s.admitAccount(ctx, caller.Address, orderScope) {
		return
	}
	p := s.placements.get()
	defer s.placements.put(p)
	if decodeOrder(ctx.Request.Body(), &p.request) != nil {
		refusePayload.send(ctx)
		return
	}
	market, outcome, known := s.options.Board.Directory.Token(p.request.order.Token)
	if r := p.judge(&caller, market, known); r != nil {
		r.send(ctx)
		return
	}
	if r := s.resolve(p, &caller); r != nil {
		r.send(ctx)
		return
	}
	if p.command.Wallet == 0 {
		s.refusePoor(ctx, p)
		return
	}
	if !s.verify(ctx, p, market.NegRisk) {
		return
	}
	if p.verified.Signer != caller.Address {
		refuseSigner.send(ctx)
		return
	}
	if !s.offered(ctx, p, caller.dialect) || !s.open(ctx, p, &caller) {
		return
	}
	p.build(&caller, market, outcome)
	s.place(ctx, p, caller.dialect)
}

// judge checks what needs nothing but the request, its caller and the market.
func (p *placement) judge(caller *identity, market *view.Market, known bool) *refusal {
	r, o := &p.request, &p.request.order
	wallet := o.SignatureType == auth.TypeWallet
	switch {
	case !strings.EqualFold(r.owner, caller.key):
		return &refuseOwner
	case !wallet && o.Signer != caller.Address, wallet && o.Signer != o.Maker:
		return &refuseSigner
	case o.SignatureType == auth.TypeEOA && o.Maker != o.Signer:
		return &refuseMaker
	case o.Version == 1 && o.Taker != engine.Address{}:
		return &refuseTaker
	case !known:
		return &refuseMarket
	case r.hasCondition && r.condition != market.Condition:
		return &refuseCondition
	case !amountFits(o.MakerAmount), !amountFits(o.TakerAmount):
		return &refuseAmount
	}
	return nil
}

// terms checks what was asked for beside the signed order. An order that was placed before has its
// result whatever is asked now, so this comes after the index.
func (p *placement) terms() *refusal {
	r := &p.request
	switch {
	case r.kind != engine.GTD && r.expiration != 0:
		return &refuseExpiry
	case r.kind != engine.GTC:
		return &refuseType
	case r.postOnly:
		return &refusePostOnly
	}
	return nil
}

func amountFits(v uint64) bool { return v >= 1 && v <= engine.MaxAmount }

// resolve numbers the wallet and its owner and checks that one may trade for the other. A wallet
// of 0 has no account; an owner of 0 is to be linked.
func (s *Server) resolve(p *placement, caller *identity) *refusal {
	d := s.options.Board.Directory
	o := &p.request.order
	p.command.Wallet, _ = d.Wallet(o.Maker)
	linked := d.Owner(p.command.Wallet)
	own := o.Maker == caller.Address
	if own && (o.SignatureType == auth.TypeEOA || o.SignatureType > auth.TypeWallet) {
		if linked != 0 || !s.options.LinkOnFirstUse {
			p.owner = p.command.Wallet
		}
		return nil
	}
	if linked == 0 && s.options.LinkOnFirstUse {
		return nil
	}
	if owner, ok := d.Wallet(caller.Address); !ok || owner != linked {
		return &refuseMaker
	}
	p.owner = linked
	return nil
}

// verify finds out which exchange the order was signed for and checks the signature, on the pool.
func (s *Server) verify(ctx *fasthttp.RequestCtx, p *placement, negRisk bool) bool {
	r := &p.request
	var err error
	full := s.pool.do(r.order.Maker, func() {
		p.verified, err = s.options.Verifier.Verify(&r.order, r.signature, negRisk)
	})
	if full != nil {
		s.failPool(ctx, full)
		return false
	}
	if err != nil {
		failSignature(ctx, err)
		return false
	}
	return true
}

// failSignature says which hash and which exchange were tried: nearly always the client signed for
// another one.
func failSignature(ctx *fasthttp.RequestCtx, err error) {
	var e *auth.SignatureError
	if !errors.As(err, &e) {
		fail(ctx, 400, "invalid_signature", "invalid signature")
		return
	}
	if e.Reason == auth.ReasonVersion || e.Reason == auth.ReasonDomain && e.Tried == 0 {
		refuseVersion.send(ctx)
		return
	}
	failWith(ctx, refusal{400, "invalid_signature", "invalid signature"},
		text("reason", e.Reason), text("orderHash", e.Hash.Hex()), text("domain", e.Domain.String()))
}

// refusePoor answers for a wallet that nobody ever paid into what the engine would: strangers make
// nothing durable. It never had an order either, so its signature need not be looked at.
func (s *Server) refusePoor(ctx *fasthttp.RequestCtx, p *placement) {
	amount := int64(p.request.order.MakerAmount)
	poor := engine.Receipt{Reject: engine.RejectBalance, Args: [3]int64{2: amount}}
	s.replyReceipt(ctx, &result{receipt: poor})
}

// offered refuses what is asked for beside the signed order and is not to be had, unless the order
// was placed before: then it has its result, whatever is asked now. The index must have come as far
// as the wallet's last frame to know that it was not.
func (s *Server) offered(ctx *fasthttp.RequestCtx, p *placement, dialect string) bool {
	refused := p.terms()
	if refused == nil {
		return true
	}
	touched := s.options.Board.Directory.Touched(p.command.Wallet)
	caughtUp := s.options.Await(touched, recheckWait)
	past, known, _, err := s.options.Past(p.verified.ID)
	switch {
	case err != nil:
		s.failIndex(ctx, err)
	case known:
		s.replyReceipt(ctx, &result{receipt: past, replay: true, side: p.request.order.Side,
			dialect: dialect, bare: p.request.deferExec})
	case !caughtUp:
		failLater(ctx, "index_lagging", "service not ready")
	default:
		refused.send(ctx)
	}
	return false
}

// open makes sure that the wallet has an owner.
func (s *Server) open(ctx *fasthttp.RequestCtx, p *placement, caller *identity) bool {
	if p.owner != 0 {
		return true
	}
	receipt, err := s.submit(&engine.Command{
		Kind: engine.Link, Address: p.request.order.Maker, Holder: caller.Address,
	})
	if err != nil {
		s.failSubmit(ctx, err, &p.verified.ID)
		return false
	}
	owner, ok := s.options.Board.Directory.Wallet(caller.Address)
	if receipt.Reject != engine.Accepted || !ok {
		refuseMaker.send(ctx)
		return false
	}
	p.owner = owner
	return true
}

// build makes the Command.
func (p *placement) build(caller *identity, market *view.Market, outcome engine.Outcome) {
	r, o, c := &p.request, &p.request.order, &p.command
	c.Kind, c.Type, c.Side, c.Outcome = engine.Place, r.kind, o.Side, outcome
	c.Market, c.Owner, c.Key = market.No, p.owner, caller.Nonce
	c.Cash, c.Size = engine.Cash(o.MakerAmount), engine.Size(o.TakerAmount)
	if o.Side == engine.Sell {
		c.Cash, c.Size = engine.Cash(o.TakerAmount), engine.Size(o.MakerAmount)
	}
	c.ID = p.verified.ID
	p.proof = o.AppendProof(p.proof[:0], &p.verified, r.signature)
	c.Proof = p.proof
}

// place looks for the order in the index, submits it if it is not there, and answers. An order
// that was placed before gets its first result again, with the status of today.
func (s *Server) place(ctx *fasthttp.RequestCtx, p *placement, dialect string) {
	c := &p.command
	out := result{side: c.Side, dialect: dialect, bare: p.request.deferExec}
	for range 1 + rechecks {
		past, known, seen, err := s.options.Past(c.ID)
		if err != nil {
			s.failIndex(ctx, err)
			return
		}
		if known {
			out.receipt, out.replay = past, true
			s.replyReceipt(ctx, &out)
			return
		}
		c.Seen = seen
		out.receipt, err = s.submit(c)
		switch {
		case err != nil:
			s.failSubmit(ctx, err, &c.ID)
			return
		case out.receipt.Reject == engine.RejectDuplicate:
			s.replay(ctx, &out)
			return
		case out.receipt.Reject != engine.RejectRecheck:
			s.replyReceipt(ctx, &out)
			return
		}
		s.options.Await(out.receipt.First, recheckWait)
	}
	failLater(ctx, "recheck", "service not ready")
}

// replay answers an order that the engine had taken before and the index did not know yet. It may
// be live, so what keeps its result from being told is no refusal: 504, and the id to ask for.
func (s *Server) replay(ctx *fasthttp.RequestCtx, out *result) {
	id := out.receipt.Order
	for range rechecks {
		s.options.Await(out.receipt.First, recheckWait)
		past, known, _, err := s.options.Past(id)
		if err != nil {
			s.options.Log.Error("look up an order", "error", err)
			break
		}
		if known {
			out.receipt, out.replay = past, true
			s.replyReceipt(ctx, out)
			return
		}
	}
	failWith(ctx, refusal{504, "index_lagging", "order timed out"}, text("orderID", id.Hex()))
}

// errQuarantined says that a Command once made the engine panic.
var errQuarantined = errors.New("quarantined")

// enter is the only way from here to the engine. It does not wait for the answer.
func (s *Server) enter(c *engine.Command) (*sequencer.Call, error) {
	if s.options.Quarantined != nil && s.options.Quarantined(c) {
		return nil, errQuarantined
	}
	return s.options.Sequencer.Enter(c)
}

// submit is enter and the wait.
func (s *Server) submit(c *engine.Command) (engine.Receipt, error) {
	call, err := s.enter(c)
	if err != nil {
		return engine.Receipt{}, err
	}
	return call.Wait()
}

// failSubmit answers a Command without a Receipt. id is the order's, nil if there is none.
func (s *Server) failSubmit(ctx *fasthttp.RequestCtx, err error, id *engine.OrderID) {
	switch {
	case errors.Is(err, sequencer.ErrBusy):
		s.metrics.busy.Inc()
		failLater(ctx, "busy", "the exchange is busy, nothing was entered, send again")
	case errors.Is(err, sequencer.ErrClosed):
		failLater(ctx, "closed", "the exchange is closing, nothing was entered")
	case errors.Is(err, errQuarantined):
		failLater(ctx, "quarantined", "this request is quarantined")
	case id == nil:
		fail(ctx, 504, "timeout", "request timed out, its outcome is unknown")
	default:
		failWith(ctx, refusal{504, "timeout", "order timed out"}, text("orderID", id.Hex()))
	}
}

// failPool answers a request whose signature was not looked at.
func (s *Server) failPool(ctx *fasthttp.RequestCtx, err error) {
	s.metrics.busy.Inc()
	failLater(ctx, "busy", "the exchange is busy, nothing was entered, send again")
	s.options.Log.Debug("signature not verified", "error", err)
}

// failIndex answers when older orders cannot be looked up.
func (s *Server) failIndex(ctx *fasthttp.RequestCtx, err error) {
	s.options.Log.Error("look up an order", "error", err)
	failLater(ctx, "index", "service not ready")
}
