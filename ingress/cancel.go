package ingress

import (
	"errors"
	"slices"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/scan"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/ingress/form"
	"clobd/ingress/limits"
	"clobd/ingress/socket"
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

// canceling is the story of DELETE /order and DELETE /orders. A request with a valid id is answered
// 200, and the body says what became of the order.
type canceling struct {
	*cancels
	ctx   *fasthttp.RequestCtx
	owner engine.WalletNo
	ids   []engine.OrderID
	out   cancelOutcome
	calls
	receipts []engine.Receipt
	refused  *wire.Refusal
}

// cancelOne begins the story of DELETE /order.
func (s *cancels) cancelOne(ctx *fasthttp.RequestCtx, caller *identity) socket.Story {
	if !s.admitAccount(ctx, caller, limits.Demand{Scope: limits.CancelScope, N: 1}) {
		return nil
	}
	written, fault := form.CancelID(ctx.Request.Body())
	if fault != nil {
		refuseKeys(fault, refuseCancel).Send(ctx)
		return nil
	}
	id, ok := engine.ParseOrderID(written)
	if !ok {
		refuseOrderID.Send(ctx)
		return nil
	}
	return &canceling{cancels: s, ctx: ctx, owner: s.owner(caller), ids: []engine.OrderID{id}}
}

// cancelMany begins the story of DELETE /orders. Cancels are judged singly and enter as neighbours.
func (s *cancels) cancelMany(ctx *fasthttp.RequestCtx, caller *identity) socket.Story {
	written, count, fault := form.CancelIDs(ctx.Request.Body(), maxCancels)
	n := uint32(max(min(count, maxCancels), 1))
	if !s.admitAccount(ctx, caller, limits.Demand{Scope: limits.CancelScope, N: n}) {
		return nil
	}
	var refused *wire.Refusal
	switch {
	case fault != nil:
		refused = refuseKeys(fault, refuseCancels)
	case count == 0:
		refused = refuseCancels
	case count > maxCancels:
		refused = refuseLong(count, maxCancels)
	}
	if refused != nil {
		refused.Send(ctx)
		return nil
	}
	t := &canceling{cancels: s, ctx: ctx, owner: s.owner(caller)}
	t.ids = sortOut(written, &t.out)
	return t
}

// owner returns the account of a caller, 0 if the caller has none.
func (s *cancels) owner(caller *identity) engine.WalletNo {
	owner, _ := s.options.Board.Directory.Wallet(caller.Address)
	return owner
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

// Judge does nothing: a cancel needs no check beyond that of the key.
func (t *canceling) Judge() {}

// Enter enters one Cancel for each id, as one bundle.
func (t *canceling) Enter() {
	if t.owner == 0 { // without an account there are no orders
		for i := range t.ids {
			t.out.not = append(t.out.not, missedOrder{t.ids[i].Hex(), reasonUnknown})
		}
		return
	}
	if len(t.ids) == 0 {
		return
	}
	commands := make([]engine.Command, len(t.ids))
	for i := range t.ids {
		commands[i] = engine.Command{Kind: engine.Cancel, ID: t.ids[i], Owner: t.owner}
	}
	calls, err := t.enterAll(commands)
	if err != nil {
		t.fail(err)
		return
	}
	t.calls = calls
}

func (t *canceling) fail(err error) {
	var only *engine.OrderID
	if len(t.ids) == 1 {
		only = &t.ids[0]
	}
	t.refused = t.refuseSubmit(err, only)
}

// Await waits for the Receipts.
func (t *canceling) Await() {
	if len(t.calls) == 0 {
		return
	}
	t.receipts = make([]engine.Receipt, len(t.ids))
	errs := make([]error, len(t.ids))
	sequencer.WaitAll(t.calls, t.receipts, errs)
	failed := errs[0]
	for _, err := range errs {
		if err != nil && (errs[0] == nil || !errors.Is(err, sequencer.ErrClosed)) {
			failed = sequencer.ErrUnknown // some may be canceled
		}
	}
	if failed != nil {
		t.receipts = nil
		t.fail(failed)
	}
}

// Late reports whether the index must tell why an order was not canceled.
func (t *canceling) Late() bool {
	return slices.ContainsFunc(t.receipts,
		func(r engine.Receipt) bool { return r.Reject != engine.Accepted })
}

// Finish answers the request.
func (t *canceling) Finish() {
	if t.refused == nil && len(t.receipts) > 0 {
		t.refused = t.judgeCancels(t.receipts, t.owner, &t.out)
	}
	if t.refused != nil {
		t.refused.Send(t.ctx)
		return
	}
	t.tell(t.ctx, &t.out)
}

// tell answers what became of the orders. Its Sequence includes all Commands of the request.
func (s *cancels) tell(ctx *fasthttp.RequestCtx, out *cancelOutcome) {
	wire.MarkSequence(ctx, s.options.Board.Shown())
	wire.AnswerRaw(ctx, appendCancels(nil, out))
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

// sweeping is the story of DELETE /cancel-all and DELETE /cancel-market-orders. It cancels orders
// in all wallets that the caller may trade for.
type sweeping struct {
	*cancels
	ctx      *fasthttp.RequestCtx
	commands []engine.Command // that have not entered yet
	calls
	out     cancelOutcome
	refused *wire.Refusal
}

// sweepAll begins the story of DELETE /cancel-all.
func (s *cancels) sweepAll(ctx *fasthttp.RequestCtx, caller *identity) socket.Story {
	return s.sweep(ctx, caller, func(*engine.Command) *wire.Refusal { return judgeUnread(ctx) })
}

// sweepMarket begins the story of DELETE /cancel-market-orders: orders of one market, or of one of
// its tokens. It refuses a body that names neither.
func (s *cancels) sweepMarket(ctx *fasthttp.RequestCtx, caller *identity) socket.Story {
	return s.sweep(ctx, caller, func(c *engine.Command) *wire.Refusal {
		return s.chooseMarket(ctx.Request.Body(), c)
	})
}

// sweep begins a story that cancels the orders that choose selects.
func (s *cancels) sweep(ctx *fasthttp.RequestCtx, caller *identity,
	choose func(*engine.Command) *wire.Refusal) socket.Story {
	if !s.admitAccount(ctx, caller, limits.Demand{Scope: limits.SweepScope, N: 1}) {
		return nil
	}
	c := engine.Command{Kind: engine.CancelAll, Owner: s.owner(caller), Reason: engine.ByOwner}
	if refused := choose(&c); refused != nil {
		refused.Send(ctx)
		return nil
	}
	t := &sweeping{cancels: s, ctx: ctx}
	if c.Owner != 0 {
		t.commands = s.everyWallet(&c)
	}
	return t
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

// Judge does nothing: a cancel needs no check beyond that of the key.
func (t *sweeping) Judge() {}

// Enter enters the Commands of as many wallets as one bundle may have.
func (t *sweeping) Enter() {
	if len(t.commands) == 0 {
		return
	}
	var err error
	if t.calls, err = t.enterAll(t.part()); err != nil {
		t.refused = t.refuseSubmit(err, nil)
	}
}

// part takes the Commands of the next bundle.
func (t *sweeping) part() []engine.Command {
	part := t.commands[:min(sweepBundle, len(t.commands))]
	t.commands = t.commands[len(part):]
	return part
}

// Await waits for the Commands that have entered.
func (t *sweeping) Await() {
	if t.refused == nil && len(t.calls) > 0 {
		var err error
		if t.out.done, err = sequencer.WaitCanceled(t.calls, nil); err != nil {
			t.refused = t.refuseSubmit(err, nil)
		}
	}
}

// Late reports whether Commands of further wallets must enter.
func (t *sweeping) Late() bool { return t.refused == nil && len(t.commands) > 0 }

// Finish cancels the orders of the remaining wallets, and answers the request.
func (t *sweeping) Finish() {
	for t.refused == nil && len(t.commands) > 0 {
		var err error
		if t.out.done, err = t.sweepPart(t.part(), t.out.done); err != nil {
			t.refused = refuseUnknown // some are canceled
		}
	}
	if t.refused != nil {
		t.refused.Send(t.ctx)
		return
	}
	t.tell(t.ctx, &t.out)
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
func (s *cancels) sweepPart(all []engine.Command, done []engine.OrderID) ([]engine.OrderID, error) {
	calls, err := s.enterAll(all)
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
