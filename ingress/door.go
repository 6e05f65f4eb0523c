package ingress

import (
	"errors"
	"sync/atomic"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress/answer"
	"clobd/ingress/limits"
)

// door is what all handlers share. Any goroutine may use it.
type door struct {
	options Options         // the first group is written before ready, read after
	windows *limits.Windows // nil: no limits
	pool    *pool
	metrics *metrics
	full    atomic.Bool   // only cancels are taken
	rests   *limits.Rests // before the answer to who has failed too often
}

// The refusals of requests that may be sent again as they are: nothing was entered.
var (
	refuseBusy    = wire.Refuse(503, "busy", "the exchange is busy, nothing was entered, send again", "")
	refuseClosing = wire.Refuse(503, "closed", "the exchange is closing, nothing was entered",
		"send it again once the node is back")
	refuseNoLeader    = wire.Refuse(503, "no_leader", "no node leads, nothing was entered, send again", "")
	refuseQuarantined = wire.Refuse(503, "quarantined", "this request is quarantined",
		"it stopped the node once: it is taken when the operator has looked at it")
	refuseCrowded = wire.Refuse(503, "cancel_only", engine.Rejects[engine.RejectCancelOnly].Text,
		"").With(answer.RetryAfter(answer.CancelOnlySeconds))
	refuseIndexed = wire.Refuse(503, "index", "service not ready", waitForIndex)
)

// refuseUnknown is the answer to a Command that was entered and has no result yet.
var refuseUnknown = wire.Refuse(504, "timeout", "request timed out, its outcome is unknown", "")

// Why a Command may not enter: it once made the engine panic, or it makes the journal longer.
var (
	errQuarantined = errors.New("quarantined")
	errCrowded     = errors.New("the node takes only cancels: its disk is nearly full")
)

// barred returns why a Command must not enter now, nil if it may.
func (d *door) barred(c *engine.Command) error {
	switch {
	case d.options.Quarantined != nil && d.options.Quarantined(c):
		return errQuarantined
	case !d.full.Load():
		return nil
	}
	switch c.Kind {
	case engine.Place, engine.SplitTokens, engine.MergeTokens, engine.RedeemTokens:
		return errCrowded
	case engine.SetKey:
		if !c.Revoke {
			return errCrowded
		}
	}
	return nil
}

// enter hands a Command over, unless it is barred, and does not wait for the answer.
func (d *door) enter(c *engine.Command) (*sequencer.Call, error) {
	if err := d.barred(c); err != nil {
		return nil, err
	}
	return d.options.Enter(c)
}

func (d *door) submit(c *engine.Command) (engine.Receipt, error) {
	call, err := d.enter(c)
	if err != nil {
		return engine.Receipt{}, err
	}
	return call.Wait()
}

// enterAll enters a bundle that ends orders: all of it or nothing.
func (d *door) enterAll(commands []engine.Command) ([]*sequencer.Call, error) {
	for i := range commands {
		if err := d.barred(&commands[i]); err == errQuarantined {
			return nil, err
		}
	}
	calls := make([]*sequencer.Call, len(commands))
	if err := d.options.EnterAll(commands, calls); err != nil {
		return nil, err
	}
	return calls, nil
}

// refuseSubmit is the answer to a Command without a Receipt. id is the order's, or nil.
func (d *door) refuseSubmit(err error, id *engine.OrderID) *wire.Refusal {
	full := new(sequencer.LimitedError)
	switch {
	case errors.As(err, &full):
		return d.refuseFull(full)
	case errors.Is(err, sequencer.ErrBusy):
		d.metrics.busy.Inc()
		return refuseBusy
	case errors.Is(err, sequencer.ErrNoLeader):
		return refuseNoLeader
	case errors.Is(err, sequencer.ErrClosed):
		return refuseClosing
	case errors.Is(err, errQuarantined):
		return refuseQuarantined
	case errors.Is(err, errCrowded):
		return refuseCrowded
	case id == nil:
		return refuseUnknown
	}
	return wire.Refuse(504, "timeout", "order timed out", "").With(answer.OrderID(id))
}

// refuseEntered is the refusal of a Command with this Receipt or err; nil if the engine took it.
func (d *door) refuseEntered(receipt engine.Receipt, err error) *wire.Refusal {
	switch {
	case err != nil:
		return d.refuseSubmit(err, nil)
	case receipt.Reject != engine.Accepted:
		return answer.Refuse(&receipt)
	}
	return nil
}

func (d *door) refusePool(err error) *wire.Refusal {
	d.metrics.busy.Inc()
	d.options.Log.Debug("signature not verified", "error", err)
	return refuseBusy
}

func (d *door) refuseIndex(err error) *wire.Refusal {
	d.options.Log.Error("look up an order", "error", err)
	return refuseIndexed
}

func (d *door) listed(condition string) (*view.Market, *wire.Refusal) {
	id, ok := engine.ParseCondition(condition)
	if !ok {
		return nil, refuseCondID
	}
	m := d.options.Board.Directory.Condition(id)
	if m == nil {
		return nil, refuseUnlisted
	}
	return m, nil
}
