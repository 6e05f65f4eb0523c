package wallets

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

const (
	maxHolders = 500    // of each token in an answer
	maxHeld    = 10_000 // the sum of the limits of all markets; each has two tokens
)

// holders lists the wallets that have most of each token of the markets.
func (ws *Wallets) holders(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	q := askFor(ctx, "market", "limit", "minBalance")
	listed, named := ws.markets(q)
	if !named {
		q.Missing("market")
	}
	w := top{limit: q.Count("limit", 100, maxHolders)}
	w.least = engine.Size(q.amount("minBalance", engine.Unit))
	if w.limit*len(listed) > maxHeld {
		q.Invalid("limit", "")
	}
	if q.Refused != nil {
		return nil, q.Refused
	}
	b := append(make([]byte, 0, 64+min(w.limit, 100)*len(listed)*800), '[')
	for _, m := range listed {
		for o := range engine.Outcome(2) {
			var err error
			if b, err = ws.appendHolders(b, m, o, w); err != nil {
				return nil, ws.unread("read holders", m.Condition.Hex(), err)
			}
		}
	}
	return append(b, ']'), nil
}

// top says how many holders of a token are wanted at most, and how much each must hold.
type top struct {
	limit int
	least engine.Size
}

func (ws *Wallets) appendHolders(
	b []byte, m *view.Market, o engine.Outcome, w top,
) ([]byte, error) {
	all, err := ws.o.History.Holders(m.No, o, w.limit, w.least)
	if err != nil {
		return b, err
	}
	b = append(wire.AppendComma(b), '{')
	b = appendAssetField(b, "token", &m.Condition, o)
	b = append(wire.AppendKey(b, "holders"), '[')
	for i := range all {
		wallet, known := ws.o.Board.Directory.Address(all[i].Wallet)
		if !known {
			continue // the index is ahead of what is published
		}
		p := ws.o.Profiles.Of(wallet)
		b = append(wire.AppendComma(b), '{')
		b = wire.AppendField(b, "proxyWallet", ws.checksums.of(all[i].Wallet, wallet, ws.o.Checksum))
		b = appendAssetField(b, "asset", &m.Condition, o)
		b = wire.AppendNumber(b, "amount", int64(all[i].Size), 6)
		b = strconv.AppendBool(wire.AppendKey(b, "displayUsernamePublic"), p.Public)
		b = strconv.AppendUint(wire.AppendKey(b, "outcomeIndex"), uint64(o), 10)
		b = wire.CloseObject(p.append(b))
	}
	return append(b, ']', '}'), nil
}
