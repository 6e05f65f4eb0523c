package ingress

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/ingress/answer"
	"clobd/ingress/auth"
	"clobd/ingress/form"
)

// The refusals of a single order, in the peers' words.
var (
	refusePayload   = wire.Refuse(400, "bad_payload", "Invalid order payload", "")
	refuseOwner     = wire.Refuse(400, "owner_mismatch", "the order owner has to be the owner of the API KEY", "")
	refuseSigner    = wire.Refuse(400, "signer_mismatch", "the order signer address has to be the address of the API KEY", "")
	refuseMaker     = wire.Refuse(400, "maker_not_allowed", "maker address not allowed, please use the deposit wallet flow", "")
	refuseCondition = wire.Refuse(400, "condition_mismatch", "tokenId does not belong to conditionId", "")
	refuseExpiry    = wire.Refuse(400, "expiration", "invalid expiration", "")
	refuseVersion   = wire.Refuse(400, "order_version_mismatch", "order_version_mismatch", "")
	refuseTaker     = wire.Refuse(400, "bad_payload", "invalid taker: only public orders are taken",
		"taker must be 0x and 40 zeros")
	refuseFar = wire.Refuse(400, "expiration", "invalid expiration",
		"it is more than ten years from now: unix seconds are expected")
	refusePostOnly = wire.Refuse(400, "order_type", "postOnly requires GTC or GTD",
		"leave postOnly out, or send the order as GTC or GTD")
	refuseMarket = wire.Refuse(404, "not_found", "No orderbook exists for the requested token id",
		"tokenId must be that of a listed market's outcome")
	refuseAmount  = wire.Refuse(400, "bad_payload", "invalid amount: outside the range this exchange can hold", "")
	refuseAge     = wire.Refuse(400, "bad_max_age", "MAX_AGE_MS is not a number of milliseconds", "")
	refuseSigned  = wire.Refuse(400, "invalid_signature", "invalid signature", "")
	refuseUndated = wire.Refuse(400, "bad_max_age", "MAX_AGE_MS needs an order that was signed with a timestamp",
		"leave the header out, or sign an order of the second struct")
)

// judge reads an order request and makes its Command, or refuses it. It waits for nothing. The
// signature, which costs most, comes last.
func (s *orders) judge(p *placement) {
	if p.refused = s.read(p); p.refused == nil {
		began := p.watch.Begin()
		var err error
		p.verified, err = s.options.Verifier.Verify(&p.request.Signed, p.request.Signature,
			p.market.NegRisk)
		p.verify = p.watch.End(s.options.Stages.Verify, began)
		p.refused = p.prove(err)
	}
}

// judgeSome judges orders that came together, as judge does each of them. It checks their
// signatures together, which costs less.
func (s *orders) judgeSome(some []*placement) {
	for _, p := range some {
		p.refused = s.read(p)
	}
	s.proveSome(some)
}

// judgeWith judges an order in a party of others: judgeSome by all members.
func (s *orders) judgeWith(g *company, p *placement) {
	if p.refused = s.read(p); p.refused == nil {
		g.Bring(p.seat.waiter.turn, p, s.proveSome)
	}
}

// proveSome checks the signatures of the orders that nothing has refused, and completes their
// Commands.
func (s *orders) proveSome(some []*placement) {
	kept, _ := s.lists.Get().(*[]auth.Submission)
	if kept == nil {
		kept = new([]auth.Submission)
	}
	list := (*kept)[:0]
	for _, p := range some {
		if p.refused == nil {
			list = append(list, auth.Submission{Order: &p.request.Signed,
				Signature: p.request.Signature, NegRisk: p.market.NegRisk})
		}
	}
	defer s.lists.Put(kept)
	if *kept = list; len(list) == 0 {
		return
	}
	began := time.Now()
	s.options.Verifier.VerifyAll(list)
	each := time.Since(began) / time.Duration(len(list))
	s.metrics.together.Observe(float64(len(list)))
	for _, p := range some {
		if p.refused == nil {
			p.verified, p.verify = list[0].Verified, p.watch.Tell(s.options.Stages.Verify, each)
			p.refused = p.prove(list[0].Err)
			list = list[1:]
		}
	}
	clear(*kept)
}

// read reads an order request and fills its Command, but for what follows from the signature. It
// returns the refusal if there is one.
func (s *orders) read(p *placement) *wire.Refusal {
	caller, began := p.caller, p.watch.Begin()
	err := form.Decode(p.body, &p.request)
	p.parse = p.watch.End(s.options.Stages.Parse, began)
	if err != nil {
		return refusePayload.Because(err.Error())
	}
	r, o := &p.request, &p.request.Signed
	p.out.Bare = r.DeferExec
	known := false
	p.market, p.outcome, known = s.options.Board.Directory.Token(o.Token)
	if refused := p.checkForm(caller, known); refused != nil {
		return refused
	}
	if refused := s.number(p, caller); refused != nil {
		return refused
	}
	if p.command.Wallet == 0 {
		return refuseUnfunded(o)
	}
	if p.terms = p.checkTerms(caller.maxAge); p.terms == nil && r.Far(s.options.Now()) {
		p.terms = refuseFar
	}
	p.fill(caller)
	return nil
}

// prove completes the Command of an order whose signature is verified, or refuses it: with err, the
// Verifier's, or because somebody else signed.
func (p *placement) prove(err error) *wire.Refusal {
	r, o, caller := &p.request, &p.request.Signed, p.caller
	if err != nil {
		p.forged = true
		return refuseSignature(err, o.Version)
	}
	if p.verified.Signer != caller.Address {
		p.forged = true
		return refuseSigner.Because("signed by " + auth.Checksum(p.verified.Signer) +
			", the API key is that of " + auth.Checksum(caller.Address))
	}
	p.command.ID = p.verified.ID
	p.proof = o.AppendProof(p.proof[:0], &p.verified, r.Signature)
	p.command.Proof = p.proof
	return nil
}

// checkForm checks what needs nothing but the request, its caller and whether its market is known.
func (p *placement) checkForm(caller *identity, known bool) *wire.Refusal {
	r, o := &p.request, &p.request.Signed
	wallet := o.SignatureType == auth.TypeWallet
	switch {
	case !strings.EqualFold(r.Owner, caller.key):
		return refuseOwner.Because("owner must be " + caller.key)
	case !wallet && o.Signer != caller.Address:
		return refuseSigner.Because("signer must be " + auth.Checksum(caller.Address))
	case wallet && o.Signer != o.Maker:
		return refuseSigner.Because("with signatureType 3 signer must be maker, " +
			auth.Checksum(o.Maker))
	case o.SignatureType == auth.TypeEOA && o.Maker != o.Signer:
		return refuseMaker.Because("with signatureType 0 maker must be signer, " +
			auth.Checksum(o.Signer))
	case o.Version == 1 && o.Taker != engine.Address{}:
		return refuseTaker
	case !known:
		return refuseMarket
	case !r.AmountsFit():
		return refuseAmount.Because("makerAmount and takerAmount must be from 1 to " +
			strconv.FormatUint(engine.MaxAmount, 10))
	}
	return nil
}

// number numbers the wallet and its owner, and checks that the caller may trade for the wallet. A
// wallet of 0 has no account; an owner of 0 is to be linked. Owners never change, so whoever may
// not trade for the wallet now has no order there.
func (s *orders) number(p *placement, caller *identity) *wire.Refusal {
	d := s.options.Board.Directory
	o := &p.request.Signed
	p.command.Wallet, _ = d.Wallet(o.Maker)
	linked := d.Owner(p.command.Wallet)
	own := o.Maker == caller.Address
	if own && (o.SignatureType == auth.TypeEOA || o.SignatureType > auth.TypeWallet) {
		if linked != 0 || !s.options.LinkOnFirstUse {
			p.command.Owner = p.command.Wallet
		}
		return nil
	}
	if linked == 0 && s.options.LinkOnFirstUse {
		return nil
	}
	if owner, ok := d.Wallet(caller.Address); !ok || owner != linked {
		return refuseMaker.Because("the wallet must be linked to " + auth.Checksum(caller.Address) +
			" by the operator")
	}
	p.command.Owner = linked
	return nil
}

// refuseUnfunded refuses an order of a wallet without an account in the engine's words: strangers
// make nothing durable. Such a wallet never had an order, so nobody checks the signature.
func refuseUnfunded(o *auth.Order) *wire.Refusal {
	r := engine.Receipt{Reject: engine.RejectBalance, Args: [3]int64{2: int64(o.MakerAmount)}}
	return answer.Refuse(&r).Because(answer.Lacking(&r, o.Side == engine.Buy))
}

// checkTerms checks what was asked for beside the signed order. Only the engine's Time decides
// whether an expiration lies in the future.
func (p *placement) checkTerms(maxAge string) *wire.Refusal {
	r := &p.request
	switch {
	case r.HasCondition && r.Condition != p.market.Condition:
		return refuseCondition.Because("the token's conditionId is 0x" +
			hex.EncodeToString(p.market.Condition[:]))
	case (r.Kind == engine.GTD) != (r.Expiration != 0), r.Expiration > form.LastInstant:
		return refuseExpiry.Because("a GTD order needs an expiration later than now, in unix " +
			"seconds, and no other type may have one")
	case r.PostOnly && r.Kind != engine.GTC && r.Kind != engine.GTD:
		return refusePostOnly
	}
	return p.setDeadline(maxAge)
}

// setDeadline sets the order's last instant, maxAge milliseconds after its signature.
func (p *placement) setDeadline(maxAge string) *wire.Refusal {
	if maxAge == "" {
		return nil
	}
	age, ok := form.Amount(maxAge)
	switch {
	case !ok || age > form.LastInstant:
		return refuseAge.Because("it must be an unsigned integer, got " +
			maxAge[:min(len(maxAge), form.GotBytes)])
	case p.request.Signed.Version == 1:
		return refuseUndated
	}
	p.command.Deadline = p.request.Deadline(age)
	return nil
}

// fill sets what the Command says of the order; its ID and Proof follow from the signature.
func (p *placement) fill(caller *identity) {
	r, o, c := &p.request, &p.request.Signed, &p.command
	c.Kind, c.Type, c.Side, c.Outcome = engine.Place, r.Kind, o.Side, p.outcome
	c.Market, c.Key = p.market.No, caller.Nonce
	c.PostOnly, c.Expiry = r.PostOnly, r.Expiry()
	c.Cash, c.Size = engine.Cash(o.MakerAmount), engine.Size(o.TakerAmount)
	if o.Side == engine.Sell {
		c.Cash, c.Size = engine.Cash(o.TakerAmount), engine.Size(o.MakerAmount)
	}
	if o.Version == 1 {
		c.FeeBound = r.FeeBound()
	}
}

// refuseSignature names the hash and the exchange that were tried: most clients signed for another.
func refuseSignature(err error, version uint8) *wire.Refusal {
	var e *auth.SignatureError
	if !errors.As(err, &e) {
		return refuseSigned
	}
	if e.Reason == auth.ReasonVersion || e.Reason == auth.ReasonDomain && e.Tried == 0 {
		return refuseVersion.Because("no exchange of this node takes struct " +
			strconv.Itoa(int(version)) + ", whose members the order has: sign that of GET /version")
	}
	return refuseSigned.With(wire.Member{Name: "reason", Value: e.Reason}).
		With(wire.Member{Name: "orderHash", Value: e.Hash.Hex()}).
		With(wire.Member{Name: "domain", Value: e.Domain.String()}).
		Because("sign what has this orderHash, by the key that the order names as its signer, for " +
			"the exchange in domain")
}

// link makes the caller the owner of a wallet that has none.
func (s *orders) link(p *placement, caller *identity) *wire.Refusal {
	d := s.options.Board.Directory
	// An order before it in its list may have linked the wallet.
	if owner, ok := d.Wallet(caller.Address); ok && d.Owner(p.command.Wallet) == owner {
		p.command.Owner = owner
		return nil
	}
	call, err := s.enter(&engine.Command{
		Kind: engine.Link, Address: p.request.Signed.Maker, Holder: caller.Address,
	})
	if err != nil {
		return s.refuseSubmit(err, &p.command.ID)
	}
	p.seat.leave()
	receipt, err := call.Wait()
	p.seat.back()
	if err != nil {
		return s.refuseSubmit(err, &p.command.ID)
	}
	owner, ok := d.Wallet(caller.Address)
	if receipt.Reject != engine.Accepted || !ok {
		return refuseMaker
	}
	p.command.Owner = owner
	return nil
}
