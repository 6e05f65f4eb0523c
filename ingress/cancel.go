package ingress

import (
	"errors"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/scan"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/ingress/form"
	"clobd/ingress/limits"
)

// maxCancels bounds the ids of one DELETE /orders.
const maxCancels = 1000

// Why an order is not canceled, in the peers' words. Somebody else's order does not exist.
const (
	reasonUnknown   = "order not found"
	reasonDone      = "order already canceled or matched"
	reasonMalformed = "Invalid orderID"
	reasonLagging   = "not known yet, send again"
)

var (
	refuseCancel = wire.Refuse(400, "bad_payload", "Invalid order payload",
		`the body must be like {"orderID":"0x and 64 hex digits"}`)
	refuseCancels = wire.Refuse(400, "bad_payload", "Invalid order payload",
		"the body must be a JSON array of 1 to 1000 order ids, each 0x and 64 hex digits")
	refuseOrderID = wire.Refuse(400, "bad_order_id", "Invalid orderID",
		"orderID must be 0x and 64 hex digits")
	refuseSweep = wire.Refuse(400, "bad_payload", "Invalid order payload",
		`the body must be like {"market":"condition id"} or {"asset_id":"token id"}`)
	refuseNoMarket = wire.Refuse(400, "bad_payload", "market or asset_id is required",
		"to cancel everything there is DELETE /cancel-all")
	refuseToken = wire.Refuse(400, "bad_payload", "Invalid token id",
		"asset_id must be the id of an outcome token: a decimal number below 2^256")
	refuseCondID = wire.Refuse(400, "bad_payload", "Invalid market",
		"a market is named by its condition id, 0x and 64 hex digits")
	refuseUnlisted = wire.Refuse(404, "not_found", "market not found",
		"no market with that condition id is listed")
	refuseApart = wire.Refuse(400, "condition_mismatch", "asset_id does not belong to market",
		"name one of the market's two tokens, or leave one of asset_id and market out")
)

type cancelOutcome struct {
	done []engine.OrderID
	not  []missedOrder
}

type cancels struct{ *door }

// missedOrder is an order that was not canceled: its id as text, and why.
type missedOrder struct{ id, reason string }

// deleteOrder is DELETE /order. A good id is answered 200; the body says what became of the order.
func (s *cancels) deleteOrder(ctx *fasthttp.RequestCtx, caller identity) *wire.Refusal {
	written, fault := form.CancelID(ctx.Request.Body())
	if fault != nil {
		return refuseKeys(fault, refuseCancel)
	}
	id, ok := engine.ParseOrderID(written)
	if !ok {
		return refuseOrderID
	}
	return s.cancel(ctx, &caller, []engine.OrderID{id}, &cancelOutcome{})
}

// deleteOrders is DELETE /orders: each id is judged by itself, all are neighbours in the journal.
func (s *cancels) deleteOrders(ctx *fasthttp.RequestCtx) {
	caller, ok := s.authenticate(ctx)
	if !ok {
		return
	}
	written, count, fault := form.CancelIDs(ctx.Request.Body(), maxCancels)
	n := uint32(max(min(count, maxCancels), 1))
	if !s.admitAccount(ctx, &caller, limits.Demand{Scope: limits.CancelScope, N: n}) {
		return
	}
	var refused *wire.Refusal
	switch {
	case fault != nil:
		refused = refuseKeys(fault, refuseCancels)
	case count == 0:
		refused = refuseCancels
	case count > maxCancels:
		refused = refuseLong(count, maxCancels)
	default:
		var out cancelOutcome
		refused = s.cancel(ctx, &caller, sortOut(written, &out), &out)
	}
	if refused != nil {
		refused.Send(ctx)
	}
}

// sortOut parses ids and drops repetitions. It lists a malformed id as not canceled.
func sortOut(written []string, out *cancelOutcome) []engine.OrderID {
	ids := make([]engine.OrderID, 0, len(written))
	seen := make(map[engine.OrderID]bool, len(written))
	malformed := make(map[string]bool)
	for _, text := range written {
		id, ok := engine.ParseOrderID(text)
		switch {
		case ok && !seen[id]:
			seen[id] = true
			ids = append(ids, id)
		case !ok && !malformed[text]:
			malformed[text] = true
			out.not = append(out.not, missedOrder{text, reasonMalformed})
		}
	}
	return ids
}

// cancel cancels the orders of a caller as one bundle, and answers.
func (s *cancels) cancel(
	ctx *fasthttp.RequestCtx, caller *identity, ids []engine.OrderID, out *cancelOutcome,
) *wire.Refusal {
	owner, known := s.options.Board.Directory.Wallet(caller.Address)
	if !known { // nobody without an account has orders
		for i := range ids {
			out.not = append(out.not, missedOrder{ids[i].Hex(), reasonUnknown})
		}
		ids = nil
	}
	if len(ids) > 0 {
		receipts, err := s.cancelAll(ids, owner)
		if err != nil {
			var only *engine.OrderID
			if len(ids) == 1 {
				only = &ids[0]
			}
			return s.refuseSubmit(err, only)
		}
		if refused := s.judgeCancels(receipts, owner, out); refused != nil {
			return refused
		}
	}
	// Who was answered sees all of its Commands shown.
	wire.MarkSequence(ctx, s.options.Board.Shown())
	wire.AnswerRaw(ctx, appendCancels(nil, out))
	return nil
}

// cancelAll enters one Cancel for each id and waits for all of them.
func (s *cancels) cancelAll(ids []engine.OrderID, owner engine.WalletNo) ([]engine.Receipt, error) {
	commands := make([]engine.Command, len(ids))
	for i := range ids {
		commands[i] = engine.Command{Kind: engine.Cancel, ID: ids[i], Owner: owner}
	}
	calls, err := s.enterAll(commands)
	if err != nil {
		return nil, err
	}
	receipts, errs := make([]engine.Receipt, len(ids)), make([]error, len(ids))
	sequencer.WaitAll(calls, receipts, errs)
	for _, err := range errs {
		if err != nil && (errs[0] == nil || !errors.Is(err, sequencer.ErrClosed)) {
			return nil, sequencer.ErrUnknown // some may be canceled
		}
	}
	return receipts, errs[0]
}

// judgeCancels finds out why an id has no live order: the order is over, or never was the caller's.
// To tell the two apart, the index must have come as far as the Cancels.
func (s *cancels) judgeCancels(
	receipts []engine.Receipt, owner engine.WalletNo, out *cancelOutcome,
) *wire.Refusal {
	missed := receipts[:0]
	for i := range receipts {
		if receipts[i].Reject == engine.Accepted {
			out.done = append(out.done, receipts[i].Order)
		} else {
			missed = append(missed, receipts[i])
		}
	}
	if len(missed) == 0 {
		return nil
	}
	caughtUp := s.options.Await(missed[len(missed)-1].Sequence, recheckWait)
	for i := range missed {
		id := missed[i].Order
		reason, refused := s.missed(id, owner, caughtUp)
		if refused != nil && len(out.done) == 0 {
			return refused
		} else if refused != nil {
			reason = reasonLagging // some are canceled: that must be told
		}
		out.not = append(out.not, missedOrder{id.Hex(), reason})
	}
	return nil
}

func (s *cancels) missed(
	id engine.OrderID, owner engine.WalletNo, caughtUp bool,
) (string, *wire.Refusal) {
	past, known, _, err := s.options.Past(id)
	switch {
	case err != nil:
		return "", s.refuseIndex(err)
	case known && (past.Wallet == owner || s.options.Board.Directory.Owner(past.Wallet) == owner):
		return reasonDone, nil
	case !known && !caughtUp:
		return "", refuseLagging
	}
	return reasonUnknown, nil
}

// deleteAll is DELETE /cancel-all.
func (s *cancels) deleteAll(ctx *fasthttp.RequestCtx, caller identity) *wire.Refusal {
	if refused := judgeUnread(ctx); refused != nil {
		return refused
	}
	return s.sweep(ctx, &caller, &engine.Command{})
}

// deleteMarket is DELETE /cancel-market-orders: those of one market, or of one of its tokens. A
// body that names neither is refused.
func (s *cancels) deleteMarket(ctx *fasthttp.RequestCtx, caller identity) *wire.Refusal {
	var c engine.Command
	if refused := s.chooseMarket(ctx.Request.Body(), &c); refused != nil {
		return refused
	}
	return s.sweep(ctx, &caller, &c)
}

// chooseMarket reads from the body which orders to cancel.
func (s *cancels) chooseMarket(body []byte, c *engine.Command) *wire.Refusal {
	var condition, asset scan.Field
	at := map[string]scan.Slot{
		"market":   {Into: &condition, Kinds: scan.AString},
		"asset_id": {Into: &asset, Kinds: scan.AString | scan.ANumber},
		"assetId":  {Into: &asset, Kinds: scan.AString | scan.ANumber},
	}
	if len(body) > 0 {
		if fault := form.Members(body, at); fault != nil {
			return refuseKeys(fault, refuseSweep)
		}
	}
	if !condition.Given() && !asset.Given() {
		return refuseNoMarket
	}
	if condition.Given() {
		m, refused := s.listed(condition.Text)
		if refused != nil {
			return refused
		}
		c.Market = m.No
	}
	if asset.Given() {
		token, ok := form.Word(asset.Text)
		if !ok {
			return refuseToken
		}
		m, outcome, known := s.options.Board.Directory.Token(engine.Token(token))
		switch {
		case !known:
			return refuseMarket
		case c.Market != 0 && c.Market != m.No:
			return refuseApart
		}
		c.Market, c.Outcome, c.Only = m.No, outcome, engine.OnlyToken
	}
	return nil
}

// sweepBundle bounds how many wallets are swept at once: well below the ring's slots.
const sweepBundle = 512

// sweep cancels all orders that c asks for, in all wallets that the caller may trade for.
func (s *cancels) sweep(
	ctx *fasthttp.RequestCtx, caller *identity, c *engine.Command,
) *wire.Refusal {
	var out cancelOutcome
	owner, known := s.options.Board.Directory.Wallet(caller.Address)
	if known {
		c.Kind, c.Owner, c.Reason = engine.CancelAll, owner, engine.ByOwner
		commands := s.everyWallet(c)
		for first := true; len(commands) > 0; first = false {
			part := commands[:min(sweepBundle, len(commands))]
			commands = commands[len(part):]
			var err error
			out.done, err = s.sweepPart(part, out.done)
			if err != nil && first {
				return s.refuseSubmit(err, nil)
			} else if err != nil {
				return refuseUnknown // some are canceled
			}
		}
	}
	wire.MarkSequence(ctx, s.options.Board.Shown())
	wire.AnswerRaw(ctx, appendCancels(nil, &out))
	return nil
}

func (s *cancels) everyWallet(c *engine.Command) []engine.Command {
	wallets := s.options.Board.Directory.Owned(c.Owner, []engine.WalletNo{c.Owner})
	commands := make([]engine.Command, 0, len(wallets))
	for i, wallet := range wallets {
		if i > 0 && wallet == c.Owner {
			continue // linked to itself
		}
		c.Wallet = wallet
		commands = append(commands, *c)
	}
	return commands
}

// sweepPart enters CancelAlls as one bundle and appends the ids of what they canceled.
func (s *cancels) sweepPart(
	commands []engine.Command, done []engine.OrderID,
) ([]engine.OrderID, error) {
	calls, err := s.enterAll(commands)
	if err != nil {
		return done, err
	}
	return sequencer.WaitCanceled(calls, done)
}

func appendCancels(dst []byte, c *cancelOutcome) []byte {
	dst = append(dst, `{"canceled":[`...)
	for i := range c.done {
		dst = append(wire.AppendComma(dst), '"')
		dst = append(engine.AppendHex(dst, c.done[i][:]), '"')
	}
	dst = append(dst, `],"not_canceled":{`...)
	for _, m := range c.not {
		dst = wire.AppendString(wire.AppendComma(dst), m.id)
		dst = wire.AppendString(append(dst, ':'), m.reason)
	}
	return append(dst, `}}`...)
}
