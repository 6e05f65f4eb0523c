package account

import (
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
)

// unbounded is the largest number of 256 bits: nothing here asks for an allowance.
const unbounded = "115792089237316195423570985008687907853269984665640564039457584007913129639935"

// balance tells what a wallet of the caller holds of collateral or of a token, in base units.
// That includes what is reserved for the wallet's orders.
func (a *Account) balance(ctx *fasthttp.RequestCtx, c *caller) ([]byte, *wire.Refusal) {
	wallet, ok := c.wallet(wire.Parameter(ctx, "signature_type", "signatureType"))
	if !ok {
		return nil, errSignatureType
	}
	var held int64
	var refused *wire.Refusal
	switch kind := wire.Parameter(ctx, "asset_type", "assetType"); {
	case kind == "" || strings.EqualFold(kind, "COLLATERAL"):
		held, refused = a.cash(wallet)
	case strings.EqualFold(kind, "CONDITIONAL"):
		held, refused = a.tokens(ctx, wallet)
	default:
		refused = errAssetType
	}
	if refused != nil {
		return nil, refused
	}
	b := append(make([]byte, 0, 256+128*len(a.o.Exchanges)), '{')
	b = wire.AppendDecimalField(b, "balance", held, 0)
	b = wire.AppendField(b, "allowance", unbounded)
	b = append(wire.AppendKey(b, "allowances"), '{')
	for _, exchange := range a.o.Exchanges {
		b = wire.AppendField(b, a.o.Checksum(exchange), unbounded)
	}
	return append(b, '}', '}'), nil
}

// wallet is the wallet that pays for orders of a signature type, 0 if there is none. Type 0, the
// default, means the caller's own; types 1 to 3 mean the wallet that was linked to the caller last.
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

func (a *Account) cash(wallet engine.WalletNo) (int64, *wire.Refusal) {
	if wallet == 0 {
		return 0, nil
	}
	total, _, err := a.o.History.Balance(wallet)
	if err != nil {
		return 0, wire.Internal(a.o.Log, "read balance", "collateral", err)
	}
	return int64(total), nil
}

func (a *Account) tokens(ctx *fasthttp.RequestCtx, wallet engine.WalletNo) (int64, *wire.Refusal) {
	token, ok := engine.ParseToken(wire.QueryToken(ctx))
	if !ok {
		return 0, wire.ErrToken
	}
	m, o, known := a.o.Board.Directory.Token(token)
	if !known || wallet == 0 {
		return 0, nil
	}
	rows, err := a.o.History.Position(wallet, m.No)
	if err != nil {
		return 0, wire.Internal(a.o.Log, "read balance", token.String(), err)
	}
	return int64(rows[o&1].Size), nil
}
