package ingress

import (
	"errors"

	"github.com/valyala/fasthttp"

	"clobd/engine"
)

// The reasons why an order is not canceled, in the peers' words. An order of somebody else does
// not exist, as far as the caller is told.
const (
	reasonUnknown = "order not found"
	reasonDone    = "order already canceled or matched"
)

// deleteOrder is DELETE /order. Once the id was read the answer is 200: what became of it is said
// in the body. It means that the order is out of the book for good.
func (s *Server) deleteOrder(ctx *fasthttp.RequestCtx) {
	caller, ok := s.authenticate(ctx)
	if !ok || !s.admitAccount(ctx, caller.Address, cancelScope) {
		return
	}
	written, ok := decodeCancel(ctx.Request.Body())
	if !ok {
		refusePayload.send(ctx)
		return
	}
	id, ok := parseOrderID(written)
	if !ok {
		fail(ctx, 400, "bad_order_id", "Invalid orderID")
		return
	}
	owner, ok := s.options.Board.Directory.Wallet(caller.Address)
	if !ok { // nobody without an account has orders
		answer(ctx, 200, appendCancel(nil, id, reasonUnknown))
		return
	}
	receipt, err := s.submit(&engine.Command{Kind: engine.Cancel, ID: id, Owner: owner})
	if err != nil {
		s.failSubmit(ctx, err, &id)
		return
	}
	reason := ""
	if receipt.Reject != engine.Accepted {
		reason, err = s.missed(&receipt, id, owner)
		if errors.Is(err, errLagging) {
			failLater(ctx, "index_lagging", "service not ready")
			return
		} else if err != nil {
			s.failIndex(ctx, err)
			return
		}
	}
	answer(ctx, 200, appendCancel(nil, id, reason))
}

// errLagging says that the index has not come far enough to judge: nothing was changed, ask again.
var errLagging = errors.New("the index lags")

// missed finds out why the engine knows no live order of that id: it is over, or it never was the
// caller's. The index must have come as far as the Cancel itself to tell the two apart.
func (s *Server) missed(
	r *engine.Receipt, id engine.OrderID, owner engine.WalletNo,
) (string, error) {
	caughtUp := s.options.Await(r.Sequence, recheckWait)
	past, known, _, err := s.options.Past(id)
	if err != nil {
		return "", err
	}
	if !known {
		if !caughtUp {
			return "", errLagging
		}
		return reasonUnknown, nil
	}
	if past.Wallet == owner || s.options.Board.Directory.Owner(past.Wallet) == owner {
		return reasonDone, nil
	}
	return reasonUnknown, nil
}

// appendCancel appends the cancel result of one order; reason is "" if it was canceled.
func appendCancel(dst []byte, id engine.OrderID, reason string) []byte {
	if reason == "" {
		dst = engine.AppendHex(append(dst, `{"canceled":["`...), id[:])
		return append(dst, `"],"not_canceled":{}}`...)
	}
	dst = engine.AppendHex(append(dst, `{"canceled":[],"not_canceled":{"`...), id[:])
	return append(appendString(append(dst, `":`...), reason), `}}`...)
}
