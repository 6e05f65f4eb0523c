package account

import (
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
)

// unbounded is the largest number of 256 bits: nothing here asks for an allowance.
const unbounded = "115792089237316195423570985008687907853269984665640564039457584007913129639935"

// balance answers GET /balance-allowance, and /update, which has nothing to refresh: what a wallet
// of the caller holds of collateral or of a token, what is reserved behind its orders included, in
// base units.
func (h *Account) balance(ctx *fasthttp.RequestCtx, c *caller) {
	wallet, ok := c.wallet(wire.Parameter(ctx, "signature_type", "signatureType"))
	if !ok {
		errSignatureType.Send(ctx)
		return
	}
	var held int64
	var refused *wire.Refusal
	switch kind := wire.Parameter(ctx, "asset_type", "assetType"); {
	case kind == "" || strings.EqualFold(kind, "COLLATERAL"):
		held, refused = h.cash(wallet)
	case strings.EqualFold(kind, "CONDITIONAL"):
		held, refused = h.tokens(ctx, wallet)
	default:
		refused = errAssetType
	}
	if refused != nil {
		refused.Send(ctx)
		return
	}
	b := append(make([]byte, 0, 256+128*len(h.o.Exchanges)), '{')
	b = wire.AppendDecimalField(b, "balance", held, 0)
	b = wire.AppendField(b, "allowance", unbounded)
	b = append(wire.AppendKey(b, "allowances"), '{')
	for _, a := range h.o.Exchanges {
		b = wire.AppendField(b, h.o.Checksum(a), unbounded)
	}
	wire.Answer(ctx, append(b, '}', '}'))
}

// wallet is the one that orders of a signature type spend: of type 0, or without one, that of the
// caller's own address; of types 1 to 3 the one that was linked to it last. 0: there is none.
func (c *caller) wallet(signatureType string) (no engine.WalletNo, ok bool) {
	switch signatureType {
	case "", "0":
		return c.no, true
	case "1", "2", "3":
		for _, w := range c.wallets {
			if w != c.no {
				no = w
			}
		}
		return no, true
	}
	return 0, false
}

// cash is the collateral of a wallet, of which there may be none.
func (h *Account) cash(wallet engine.WalletNo) (int64, *wire.Refusal) {
	if wallet == 0 {
		return 0, nil
	}
	total, _, err := h.o.History.Balance(wallet)
	if err != nil {
		return 0, wire.Internal(h.o.Log, "read balance", "collateral", err)
	}
	return int64(total), nil
}

// tokens is what a wallet, of which there may be none, holds of the token that the query names.
func (h *Account) tokens(ctx *fasthttp.RequestCtx, wallet engine.WalletNo) (int64, *wire.Refusal) {
	token, ok := engine.ParseToken(wire.QueryToken(ctx))
	if !ok {
		return 0, wire.ErrToken
	}
	m, o, known := h.o.Board.Directory.Token(token)
	if !known || wallet == 0 {
		return 0, nil
	}
	total, _, err := h.o.History.Tokens(wallet, m.No, o)
	if err != nil {
		return 0, wire.Internal(h.o.Log, "read balance", token.String(), err)
	}
	return int64(total), nil
}
