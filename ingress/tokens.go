package ingress

import (
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/scan"
	"clobd/engine"
	"clobd/ingress/answer"
	"clobd/ingress/auth"
	"clobd/ingress/form"
)

var (
	refuseBody        = wire.Refuse(400, "bad_payload", "Invalid payload", "")
	refuseNoCondition = wire.Refuse(400, "bad_payload", "conditionId is required",
		"name the market by its condition id, 0x and 64 hex digits")
	refuseShares = wire.Refuse(400, "bad_payload", "amount is a positive decimal number of shares "+
		"with at most 6 decimals", `write it as a text, such as "12.5"`)
	refuseDust = wire.Refuse(400, "min_size", "amount is below the lot of 0.01 shares",
		"less than a lot cannot be sold: split a lot or more")
	refuseWallet = wire.Refuse(400, "bad_payload", "wallet is not an address",
		"write 0x and 40 hex digits, or leave it out for your own account")
)

type tokens struct{ *door }

// exchange is POST /split, /merge and /redeem: collateral into pairs of outcome tokens, pairs back
// into collateral, and the tokens of a resolved market into what they pay. Sent again, the same
// request (transferID says which is) is carried out once and answered twice.
func (s *tokens) exchange(kind engine.Kind) signedRequest {
	return func(ctx *fasthttp.RequestCtx, caller identity) *wire.Refusal {
		id, keyed, refused := transferID(ctx, &caller)
		if refused != nil {
			return refused
		}
		c := engine.Command{Kind: kind, ID: id}
		if refused = s.readTransfer(ctx.Request.Body(), &caller, &c); refused != nil {
			return refused
		}
		receipt, refused := s.enter(&c, keyed)
		if refused != nil {
			return refused
		}
		again := receipt.Reject == engine.RejectDuplicate
		switch {
		case again:
			answer.MarkReplay(ctx)
			receipt.Sequence, receipt.Taking = receipt.First, receipt.Args[0]
		case receipt.Reject != engine.Accepted:
			return answer.RefuseTransfer(&c, &receipt, s.options.Board)
		}
		wire.MarkSequence(ctx, receipt.Sequence)
		answer := s.appendTransfer(nil, &c, &receipt)
		if again && caller.dialect != wire.SVC {
			answer = append(answer, `,"replayed":true`...)
		}
		wire.AnswerRaw(ctx, append(answer, '}'))
		return nil
	}
}

// enter enters a transfer and waits for its Receipt.
func (s *tokens) enter(c *engine.Command, keyed bool) (engine.Receipt, *wire.Refusal) {
	if keyed {
		return s.once(c)
	}
	r, err := s.submit(c)
	if err != nil {
		return r, s.refuseSubmit(err, nil)
	}
	return r, nil
}

// readTransfer reads the market, the amount and the wallet, by default the caller's own. A
// redemption has no amount: it is of all tokens held.
func (s *tokens) readTransfer(body []byte, caller *identity, c *engine.Command) *wire.Refusal {
	var condition, amount, wallet scan.Field
	at := map[string]scan.Slot{
		"conditionId":  {Into: &condition, Kinds: scan.AString},
		"condition_id": {Into: &condition, Kinds: scan.AString},
		"market":       {Into: &condition, Kinds: scan.AString},
		"amount":       {Into: &amount, Kinds: scan.AString},
		"wallet":       {Into: &wallet, Kinds: scan.AString},
	}
	if fault := form.Members(body, at); fault != nil {
		return refuseKeys(fault, refuseBody.Because(`the body must be like `+
			`{"conditionId":"0x and 64 hex digits","amount":"12.5"}`))
	}
	if !condition.Given() {
		return refuseNoCondition
	}
	m, refused := s.listed(condition.Text)
	if refused != nil {
		return refused
	}
	c.Market = m.No
	if c.Kind != engine.RedeemTokens {
		size, ok := form.Decimal(amount.Text)
		if !ok {
			return refuseShares
		}
		if c.Size = engine.Size(size); c.Kind == engine.SplitTokens && c.Size < engine.Lot {
			return refuseDust
		}
	}
	return s.chooseWallet(wallet, caller, c)
}

// chooseWallet numbers the wallet and its owner, and refuses strangers.
func (s *tokens) chooseWallet(wallet scan.Field, caller *identity,
	c *engine.Command,
) *wire.Refusal {
	d := s.options.Board.Directory
	address, ok := caller.Address, true
	if wallet.Given() {
		if address, ok = auth.ParseAddress(wallet.Text); !ok {
			return refuseWallet
		}
	}
	c.Owner, _ = d.Wallet(caller.Address)
	c.Wallet, _ = d.Wallet(address)
	switch {
	case address != caller.Address && (c.Owner == 0 || d.Owner(c.Wallet) != c.Owner):
		return refuseMaker.Because("the wallet must be linked to " +
			auth.Checksum(caller.Address) + " by the operator")
	case c.Wallet == 0 && c.Kind == engine.RedeemTokens:
		return answer.RefuseTransfer(c, &engine.Receipt{Reject: engine.RejectNothing},
			s.options.Board)
	case c.Wallet == 0:
		return answer.RefuseTransfer(c, &engine.Receipt{Reject: engine.RejectBalance,
			Args: [3]int64{2: int64(c.Size)}}, s.options.Board)
	}
	return nil
}

// appendTransfer appends the answer but for its end: the ledger's receipt and what was moved.
func (s *tokens) appendTransfer(dst []byte, c *engine.Command, r *engine.Receipt) []byte {
	d := s.options.Board.Directory
	hash := engine.TxHash(s.options.JournalID, r.Sequence, 0)
	dst = append(dst, `{"success":true,"transactionHash":"`...)
	dst = append(engine.AppendHex(dst, hash[:]), `","conditionId":"`...)
	condition := d.Market(c.Market).Condition
	dst = append(engine.AppendHex(dst, condition[:]), `","wallet":"`...)
	wallet, _ := d.Address(c.Wallet)
	dst = append(append(dst, auth.Checksum(wallet)...), `","amount":"`...)
	return append(engine.AppendDecimal(dst, r.Taking, 6), '"')
}
