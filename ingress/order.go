package ingress

import (
	"encoding/hex"
	"errors"
	"math"
	"strconv"
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
	refusePayload   = refusal{400, "bad_payload", "Invalid order payload", nil}
	refuseOwner     = refusal{400, "owner_mismatch", "the order owner has to be the owner of the API KEY", nil}
	refuseSigner    = refusal{400, "signer_mismatch", "the order signer address has to be the address of the API KEY", nil}
	refuseMaker     = refusal{400, "maker_not_allowed", "maker address not allowed, please use the deposit wallet flow", nil}
	refuseCondition = refusal{400, "condition_mismatch", "tokenId does not belong to conditionId", nil}
	refuseExpiry    = refusal{400, "expiration", "invalid expiration", nil}
	refuseVersion   = refusal{400, "order_version_mismatch", "order_version_mismatch", nil}
	refuseTaker     = refuse(400, "bad_payload", "invalid taker: only public orders are taken",
		"taker must be 0x and 40 zeros")
	refusePostOnly = refuse(400, "order_type", "postOnly requires GTC or GTD",
		"leave postOnly out, or send the order as GTC or GTD")
	refuseMarket = refuse(404, "not_found", "No orderbook exists for the requested token id",
		"tokenId must be that of a listed market's outcome")
	refuseAmount  = refusal{400, "bad_payload", "invalid amount: outside the range this exchange can hold", nil}
	refuseAge     = refusal{400, "bad_max_age", "MAX_AGE_MS is not a number of milliseconds", nil}
	refuseUndated = refuse(400, "bad_max_age", "MAX_AGE_MS needs an order that was signed with a timestamp",
		"leave the header out, or sign an order of the second struct")
)

// The refusals of what may be sent again as it is: nothing was entered.
var (
	refuseBusy    = refusal{503, "busy", "the exchange is busy, nothing was entered, send again", nil}
	refuseClosing = refuse(503, "closed", "the exchange is closing, nothing was entered",
		"send it again once the node is back")
	refuseQuarantined = refuse(503, "quarantined", "this request is quarantined",
		"it stopped the node once: it is taken when the operator has looked at it")
	refuseLagging = refuse(503, "index_lagging", "service not ready", waitForIndex)
	refuseRecheck = refuse(503, "recheck", "service not ready", waitForIndex)
	refuseIndexed = refuse(503, "index", "service not ready", waitForIndex)
)

// waitForIndex is what to do while nobody can tell whether an order was placed before.
const waitForIndex = "the index has not yet seen the latest writes; nothing was entered, send again"

// refuseUnknown is the answer to what was entered and has no result yet.
var refuseUnknown = refusal{504, "timeout", "request timed out, its outcome is unknown", nil}

// placement is the scratch of one order on its way: pooled, because a Command and its evidence are
// a kilobyte.
type placement struct {
	request  request
	market   *view.Market
	outcome  engine.Outcome
	command  engine.Command
	verified auth.Verified
	proof    []byte
	owner    engine.WalletNo

	seat    *seat // where it works
	settled bool  // out is the answer
	out     result
	refused *refusal // or this is: of an order of a bundle
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
	if !ok || !s.admitAccount(ctx, caller.Address, demand{orderScope, 1}) {
		return
	}
	seat, no := s.sit(ctx, &caller)
	if no != nil {
		no.send(ctx)
		return
	}
	p := s.placements.get()
	defer s.placements.put(p)
	p.seat = seat
	if no = s.accept(p, &caller, string(ctx.Request.Body())); no == nil {
		no = s.verify(p)
	}
	if no == nil {
		no = s.authorize(p, &caller)
	}
	if no == nil && !p.settled {
		no = s.place(p)
	}
	if no != nil {
		no.send(ctx)
		return
	}
	s.replyOrder(ctx, p)
}

// accept reads an order request and judges what can be judged without its signature.
func (s *Server) accept(p *placement, caller *identity, body string) *refusal {
	if err := decodeText(body, &p.request); err != nil {
		return refusePayload.because(err.Error())
	}
	p.out.dialect, p.out.bare = caller.dialect, p.request.deferExec
	known := false
	p.market, p.outcome, known = s.options.Board.Directory.Token(p.request.order.Token)
	if no := p.judge(caller, known); no != nil {
		return no
	}
	if no := s.resolve(p, caller); no != nil {
		return no
	}
	if p.command.Wallet == 0 {
		return p.poor()
	}
	return nil
}

// authorize is what follows a good signature: whose it is, what is asked for, and whether the
// wallet has an owner. It makes the Command, or finds the answer of an order that was placed
// before.
func (s *Server) authorize(p *placement, caller *identity) *refusal {
	if p.verified.Signer != caller.Address {
		return refuseSigner.because("signed by " + auth.Checksum(p.verified.Signer) +
			", the API key is that of " + auth.Checksum(caller.Address))
	}
	if no := s.offered(p, caller); no != nil || p.settled {
		return no
	}
	if no := s.open(p, caller); no != nil {
		return no
	}
	p.build(caller)
	return nil
}

// judge checks what needs nothing but the request, its caller and the market.
func (p *placement) judge(caller *identity, known bool) *refusal {
	r, o := &p.request, &p.request.order
	wallet := o.SignatureType == auth.TypeWallet
	switch {
	case !strings.EqualFold(r.owner, caller.key):
		return refuseOwner.because("owner must be " + caller.key)
	case !wallet && o.Signer != caller.Address:
		return refuseSigner.because("signer must be " + auth.Checksum(caller.Address))
	case wallet && o.Signer != o.Maker:
		return refuseSigner.because("with signatureType 3 signer must be maker, " +
			auth.Checksum(o.Maker))
	case o.SignatureType == auth.TypeEOA && o.Maker != o.Signer:
		return refuseMaker.because("with signatureType 0 maker must be signer, " +
			auth.Checksum(o.Signer))
	case o.Version == 1 && o.Taker != engine.Address{}:
		return &refuseTaker
	case !known:
		return &refuseMarket
	case !amountFits(o.MakerAmount), !amountFits(o.TakerAmount):
		return refuseAmount.because("makerAmount and takerAmount must be from 1 to " +
			strconv.FormatUint(engine.MaxAmount, 10))
	}
	return nil
}

// terms checks what was asked for beside the signed order. An order that was placed before has its
// result whatever is asked now, so this comes after the index. Whether an expiration lies in the
// future is for the engine to say: its Time decides.
func (p *placement) terms(maxAge string) *refusal {
	r := &p.request
	switch {
	case r.hasCondition && r.condition != p.market.Condition:
		return refuseCondition.because("the token's conditionId is 0x" +
			hex.EncodeToString(p.market.Condition[:]))
	case (r.kind == engine.GTD) != (r.expiration != 0), r.expiration > lastInstant:
		return refuseExpiry.because("a GTD order needs an expiration later than now, in unix " +
			"seconds, and no other type may have one")
	case r.postOnly && r.kind != engine.GTC && r.kind != engine.GTD:
		return &refusePostOnly
	}
	return p.expire(maxAge)
}

// lastInstant bounds the instants that are taken in, in milliseconds: beyond it is no date.
const lastInstant = 1 << 62

// expire sets the last instant at which the order is wanted: so long after it was signed.
func (p *placement) expire(maxAge string) *refusal {
	if maxAge == "" {
		return nil
	}
	age, ok := parseAge(maxAge)
	switch {
	case !ok:
		return refuseAge.because("it must be an unsigned integer, got " +
			maxAge[:min(len(maxAge), gotBytes)])
	case p.request.order.Version == 1:
		return &refuseUndated
	}
	signed, ok := p.request.order.Timestamp.Uint64()
	if !ok || signed > lastInstant {
		signed = lastInstant // it will never be too old
	}
	p.command.Deadline = engine.Time(max(min(signed+age, lastInstant), 1))
	return nil
}

// parseAge reads a number of milliseconds; none is 0.
func parseAge(s string) (uint64, bool) {
	if s == "" {
		return 0, true
	}
	age, ok := parseAmount(s)
	return age, ok && age <= lastInstant
}

func amountFits(v uint64) bool { return v >= 1 && v <= engine.MaxAmount }

// resolve numbers the wallet and its owner and checks that one may trade for the other. A wallet
// of 0 has no account; an owner of 0 is to be linked. An owner is one for good, so whoever may not
// trade for the wallet now has no order there.
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
		return refuseMaker.because("the wallet must be linked to " + auth.Checksum(caller.Address) +
			" by the operator")
	}
	p.owner = linked
	return nil
}

// verify finds out which exchange the order was signed for and checks the signature.
func (s *Server) verify(p *placement) *refusal {
	r := &p.request
	var err error
	p.verified, err = s.options.Verifier.Verify(&r.order, r.signature, p.market.NegRisk)
	return refuseSignature(err, r.order.Version)
}

// refuseSignature says which hash and which exchange were tried: nearly always the client signed
// for another one.
func refuseSignature(err error, version uint8) *refusal {
	if err == nil {
		return nil
	}
	no := &refusal{status: 400, code: "invalid_signature", text: "invalid signature"}
	var e *auth.SignatureError
	if !errors.As(err, &e) {
		return no
	}
	if e.Reason == auth.ReasonVersion || e.Reason == auth.ReasonDomain && e.Tried == 0 {
		return refuseVersion.because("no exchange of this node takes struct " +
			strconv.Itoa(int(version)) + ", whose members the order has: sign that of GET /version")
	}
	no.more = []detail{text("reason", e.Reason), text("orderHash", e.Hash.Hex()),
		text("domain", e.Domain.String())}
	return no.because("sign what has this orderHash, by the key that the order names as its signer, " +
		"for the exchange in domain")
}

// poor is for a wallet that nobody ever paid into what the engine would answer: strangers make
// nothing durable. It never had an order either, so its signature need not be looked at.
func (p *placement) poor() *refusal {
	r := engine.Receipt{Reject: engine.RejectBalance,
		Args: [3]int64{2: int64(p.request.order.MakerAmount)}}
	return refuseReceipt(&r).because(lacking(&r, p.request.order.Side == engine.Buy))
}

// offered refuses what is asked for beside the signed order and makes no sense, unless the order
// was placed before: then it has its result, whatever is asked now. The index must have come as far
// as the wallet's last frame to know that it was not.
func (s *Server) offered(p *placement, caller *identity) *refusal {
	refused := p.terms(caller.maxAge)
	if refused == nil {
		return nil
	}
	touched := s.options.Board.Directory.Touched(p.command.Wallet)
	caughtUp := s.await(p.seat, touched)
	past, known, _, err := s.options.Past(p.verified.ID)
	switch {
	case err != nil:
		return s.refuseIndex(err)
	case known && !caughtUp:
		return refuseUntold(&p.verified.ID)
	case known:
		p.settle(&past, true)
		return nil
	case !caughtUp:
		return &refuseLagging
	}
	return refused
}

// open makes sure that the wallet has an owner.
func (s *Server) open(p *placement, caller *identity) *refusal {
	d := s.options.Board.Directory
	if p.owner == 0 { // an order before it in its bundle may have seen to it
		if owner, ok := d.Wallet(caller.Address); ok && d.Owner(p.command.Wallet) == owner {
			p.owner = owner
		}
	}
	if p.owner != 0 {
		return nil
	}
	receipt, err := s.submitFrom(p.seat, &engine.Command{
		Kind: engine.Link, Address: p.request.order.Maker, Holder: caller.Address,
	})
	if err != nil {
		return s.refuseSubmit(err, &p.verified.ID)
	}
	owner, ok := d.Wallet(caller.Address)
	if receipt.Reject != engine.Accepted || !ok {
		return &refuseMaker
	}
	p.owner = owner
	return nil
}

// build makes the Command.
func (p *placement) build(caller *identity) {
	r, o, c := &p.request, &p.request.order, &p.command
	c.Kind, c.Type, c.Side, c.Outcome = engine.Place, r.kind, o.Side, p.outcome
	c.Market, c.Owner, c.Key = p.market.No, p.owner, caller.Nonce
	c.PostOnly, c.Expiry = r.postOnly, instant(r.expiration)
	c.Cash, c.Size = engine.Cash(o.MakerAmount), engine.Size(o.TakerAmount)
	if o.Side == engine.Sell {
		c.Cash, c.Size = engine.Cash(o.TakerAmount), engine.Size(o.MakerAmount)
	}
	if o.Version == 1 {
		c.FeeBound = feeBound(&o.FeeRate)
	}
	c.ID = p.verified.ID
	p.proof = o.AppendProof(p.proof[:0], &p.verified, r.signature)
	c.Proof = p.proof
}

// instant reads an expiration: unix seconds, or milliseconds from 10^12 on.
func instant(v uint64) engine.Time {
	if v < 1e12 {
		v *= 1000
	}
	return engine.Time(v)
}

// feeBound is 1 + the fee rate that was signed as the highest, in basis points.
func feeBound(rate *auth.Word) uint16 {
	const most = math.MaxUint16 - 1
	v, ok := rate.Uint64()
	if !ok {
		v = most
	}
	return uint16(1 + min(v, most))
}

// settle keeps the answer.
func (p *placement) settle(r *engine.Receipt, replay bool) {
	p.out.receipt, p.out.replay, p.settled = *r, replay, true
}

// place looks for the order in the index and submits it if it is not there. An order that was
// placed before gets its first result again, with the status of today.
func (s *Server) place(p *placement) *refusal {
	for range 1 + rechecks {
		if no := s.look(p); no != nil || p.settled {
			return no
		}
		receipt, err := s.submitFrom(p.seat, &p.command)
		if err != nil {
			return s.refuseSubmit(err, &p.command.ID)
		}
		if no := s.take(p, &receipt); no != nil || p.settled {
			return no
		}
		s.await(p.seat, receipt.First)
	}
	return &refuseRecheck
}

// errLagging says that the index has not come as far as what its caller was told before.
var errLagging = errors.New("the index lags")

// upToDate is Past for an order whose status is told: where it is known, the index must have come
// as far as what its wallet was told before, a cancel for one. The error is errLagging if it does
// not come that far in time.
func (s *Server) upToDate(p *placement, id engine.OrderID) (
	engine.Receipt, bool, engine.Sequence, error) {
	past, known, seen, err := s.options.Past(id)
	if err != nil || !known {
		return past, known, seen, err
	}
	if touched := s.options.Board.Directory.Touched(past.Wallet); seen < touched {
		if !s.await(p.seat, touched) {
			return past, known, seen, errLagging
		}
		past, known, seen, err = s.options.Past(id)
	}
	return past, known, seen, err
}

// look settles an order that the index knows, and else notes how far the index had come.
func (s *Server) look(p *placement) *refusal {
	past, known, seen, err := s.upToDate(p, p.command.ID)
	switch {
	case err == errLagging:
		return refuseUntold(&p.command.ID)
	case err != nil:
		return s.refuseIndex(err)
	case known:
		p.settle(&past, true)
	}
	p.command.Seen = seen
	return nil
}

// take settles an order that was judged. It is neither settled nor refused if the index must catch
// up with Receipt.First first.
func (s *Server) take(p *placement, r *engine.Receipt) *refusal {
	switch r.Reject {
	case engine.RejectDuplicate:
		return s.replay(p, r.First)
	case engine.RejectRecheck:
		return nil
	}
	p.settle(r, false)
	return nil
}

// replay settles an order that the engine had taken before and the index did not know yet. It may
// be live, so what keeps its result from being told is no refusal: 504, and the id to ask for.
func (s *Server) replay(p *placement, first engine.Sequence) *refusal {
	for range rechecks {
		s.await(p.seat, first)
		past, known, _, err := s.upToDate(p, p.command.ID)
		if err == errLagging {
			continue
		} else if err != nil {
			s.options.Log.Error("look up an order", "error", err)
			break
		}
		if known {
			p.settle(&past, true)
			return nil
		}
	}
	return refuseUntold(&p.command.ID)
}

// refuseUntold is the answer about an order that was taken before and whose status of today is not
// to be had: it may be live.
func refuseUntold(id *engine.OrderID) *refusal {
	return &refusal{504, "index_lagging", "order timed out", []detail{text("orderID", id.Hex())}}
}

// errQuarantined says that a Command once made the engine panic.
var errQuarantined = errors.New("quarantined")

// enter is the only way from here to the engine for one Command. It does not wait for the answer.
func (s *Server) enter(c *engine.Command) (*sequencer.Call, error) {
	if s.quarantined(c) {
		return nil, errQuarantined
	}
	if s.crowded(c) {
		return nil, errCrowded
	}
	return s.options.Sequencer.Enter(c)
}

// quarantined says whether a Command must not enter.
func (s *Server) quarantined(c *engine.Command) bool {
	return s.options.Quarantined != nil && s.options.Quarantined(c)
}

// submit is enter and the wait.
func (s *Server) submit(c *engine.Command) (engine.Receipt, error) { return s.submitFrom(nil, c) }

// submitFrom is submit for who has a place in the pool, which the wait does not need.
func (s *Server) submitFrom(at *seat, c *engine.Command) (engine.Receipt, error) {
	call, err := s.enter(c)
	if err != nil {
		return engine.Receipt{}, err
	}
	at.leave()
	defer at.back()
	return call.Wait()
}

// await waits until the index holds seq, at most for recheckWait and without a place, and says
// whether it does.
func (s *Server) await(at *seat, seq engine.Sequence) bool {
	at.leave()
	defer at.back()
	return s.options.Await(seq, recheckWait)
}

// refuseSubmit is the answer to a Command without a Receipt. id is the order's, nil if there is
// none.
func (s *Server) refuseSubmit(err error, id *engine.OrderID) *refusal {
	switch {
	case errors.Is(err, sequencer.ErrBusy):
		s.metrics.busy.Inc()
		return &refuseBusy
	case errors.Is(err, sequencer.ErrClosed):
		return &refuseClosing
	case errors.Is(err, errQuarantined):
		return &refuseQuarantined
	case errors.Is(err, errCrowded):
		return &refuseCrowded
	case id == nil:
		return &refuseUnknown
	}
	return &refusal{504, "timeout", "order timed out", []detail{text("orderID", id.Hex())}}
}

// refusePool is the answer to a request whose signature was not looked at.
func (s *Server) refusePool(err error) *refusal {
	s.metrics.busy.Inc()
	s.options.Log.Debug("signature not verified", "error", err)
	return &refuseBusy
}

// refuseIndex is the answer when older orders cannot be looked up.
func (s *Server) refuseIndex(err error) *refusal {
	s.options.Log.Error("look up an order", "error", err)
	return &refuseIndexed
}
