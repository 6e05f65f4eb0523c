package wallets

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

const (
	// maxHolders is how many holders of a token one request may ask for, and maxHeld how many of all
	// markets together: an answer has two tokens of each.
	maxHolders = 500
	maxHeld    = 10_000
)

// holders answers GET /holders: who has most of each token of the markets.
func (h *Wallets) holders(ctx *fasthttp.RequestCtx) {
	a := askFor(ctx, "market", "limit", "minBalance")
	listed, named := h.markets(a)
	if !named {
		a.Missing("market")
	}
	w := top{limit: a.Count("limit", 100, maxHolders)}
	w.least = engine.Size(a.amount("minBalance", engine.Unit))
	if w.limit*len(listed) > maxHeld {
		a.Invalid("limit", "")
	}
	if a.Refused != nil {
		a.Refused.Send(ctx)
		return
	}
	b := append(make([]byte, 0, 64+min(w.limit, 100)*len(listed)*800), '[')
	for _, m := range listed {
		for o := range engine.Outcome(2) {
			var err error
			if b, err = h.appendHolders(b, m, o, w); err != nil {
				h.unread("read holders", m.Condition.Hex(), err).Send(ctx)
				return
			}
		}
	}
	wire.AnswerRaw(ctx, append(b, ']'))
}

// top is how many holders of a token are wanted at most, and what they must hold.
type top struct {
	limit int
	least engine.Size
}

// appendHolders appends the largest holders of one token.
func (h *Wallets) appendHolders(
	b []byte, m *view.Market, o engine.Outcome, w top,
) ([]byte, error) {
	all, err := h.o.History.Holders(m.No, o, w.limit, w.least)
	if err != nil {
		return b, err
	}
	b = append(wire.AppendComma(b), '{')
	b = appendAssetField(b, "token", &m.Condition, o)
	b = append(wire.AppendKey(b, "holders"), '[')
	for i := range all {
		wallet, known := h.o.Board.Directory.Address(all[i].Wallet)
		if !known {
			continue // the index is ahead of what is published
		}
		p := h.o.Profiles.Of(wallet)
		b = append(wire.AppendComma(b), '{')
		b = wire.AppendField(b, "proxyWallet", h.checksums.of(all[i].Wallet, wallet, h.o.Checksum))
		b = appendAssetField(b, "asset", &m.Condition, o)
		b = wire.AppendNumber(b, "amount", int64(all[i].Size), 6)
		b = strconv.AppendBool(wire.AppendKey(b, "displayUsernamePublic"), p.Public)
		b = strconv.AppendUint(wire.AppendKey(b, "outcomeIndex"), uint64(o), 10)
		b = wire.CloseObject(p.append(b))
	}
	return append(b, ']', '}'), nil
}
