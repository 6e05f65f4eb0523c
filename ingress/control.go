package ingress

import (
	"strconv"
	"strings"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/ingress/auth"
)

// The words that operators write for these.
var (
	stateWords = map[string]engine.MarketState{
		"open": engine.Open, "pause": engine.Paused, "close": engine.Closed,
		"unopen": engine.Unopened,
	}
	modeWords = map[string]engine.Mode{
		"normal": engine.Normal, "post-only": engine.PostOnly, "cancel-only": engine.CancelOnly,
	}
	preventionWords = map[string]engine.Prevention{
		"resting": engine.ExpireResting, "arriving": engine.ExpireArriving,
		"both": engine.ExpireBoth, "none": engine.AllowSelfTrade,
	}
)

// market finds the market of an operation: by its condition id, or by one of its token ids.
func (a *admin) market(o *operation) (*view.Market, *wire.Refusal) {
	d := a.server.options.Board.Directory
	if condition, ok := engine.ParseCondition(o.Market); ok {
		if m := d.Condition(condition); m != nil {
			return m, nil
		}
	} else if token, ok := parseWord(o.Market); ok {
		if m, _, known := d.Token(engine.Token(token)); known {
			return m, nil
		}
	}
	return nil, refuseAdmin(404, "unknown market", "write its condition id, 0x and 64 hex digits, or one of its token ids")
}

// wallet finds the wallet of an operation.
func (a *admin) wallet(o *operation) (engine.WalletNo, *wire.Refusal) {
	address, ok := auth.ParseAddress(o.Wallet)
	if !ok {
		return 0, refuseAdmin(400, "wallet is not an address", "write it as 0x and 40 hex digits")
	}
	wallet, known := a.server.options.Board.Directory.Wallet(address)
	if !known {
		return 0, refuseAdmin(404, "the wallet has no account", "nothing was ever paid into it")
	}
	return wallet, nil
}

// carry submits c and answers with its Sequence and what else there is to say.
func (a *admin) carry(c *engine.Command, body map[string]any) (map[string]any, *wire.Refusal) {
	receipt, p := a.submit(c)
	if p != nil {
		return nil, p
	}
	if receipt.Reject == engine.RejectDuplicate {
		return map[string]any{"repeated": true, "sequence": receipt.First}, nil
	}
	body["sequence"] = receipt.Sequence
	return body, nil
}

// state opens, pauses or closes a market.
func (a *admin) state(o *operation) (map[string]any, *wire.Refusal) {
	m, p := a.market(o)
	if p != nil {
		return nil, p
	}
	state, ok := stateWords[o.State]
	if !ok {
		return nil, refuseAdmin(400, "unknown state", "there are open, pause, close and unopen")
	}
	return a.carry(&engine.Command{Kind: engine.SetState, Market: m.No, State: state},
		map[string]any{"market": m.Condition.Hex(), "state": o.State})
}

// resolve says what the outcomes of a market pay: two decimals that add up to 1.
func (a *admin) resolve(o *operation) (map[string]any, *wire.Refusal) {
	m, p := a.market(o)
	if p != nil {
		return nil, p
	}
	first, second, _ := strings.Cut(o.Payouts, ",")
	x, okX := parsePrice(first)
	y, okY := parsePrice(second)
	if !okX || !okY || x+y != engine.PriceOne {
		return nil, refuseAdmin(400, "payouts are not two decimals that add up to 1", "write what each outcome pays, in the order of the market's tokens: 1,0 or 0.5,0.5")
	}
	c := engine.Command{Kind: engine.Resolve, Market: m.No, Price: x,
		ID: reference(engine.Resolve, o.Ref)}
	body, p := a.carry(&c, map[string]any{"market": m.Condition.Hex(),
		"payouts": []string{x.String(), y.String()}})
	now := a.server.options.Board.Directory.Market(m.No)
	if p != nil && p.Status == 400 && now.State == engine.Settled && now.Payout != x {
		p = refuseAdmin(400, "the market was resolved with other payouts", "it pays "+
			now.Payout.String()+","+(engine.PriceOne-now.Payout).String()+
			": what it was resolved with stands for good")
	}
	return body, p
}

// parsePrice reads a decimal in [0, 1] with at most 4 decimals.
func parsePrice(s string) (engine.Price, bool) {
	whole, part, point := strings.Cut(strings.TrimSpace(s), ".")
	if len(whole) != 1 || len(part) > 4 || point && part == "" {
		return 0, false
	}
	v, err := strconv.ParseUint(whole+part+"0000"[len(part):], 10, 16)
	return engine.Price(v), err == nil && v <= uint64(engine.PriceOne)
}

// mode restricts what a wallet may do, or what is taken in a market, or everywhere.
func (a *admin) mode(o *operation) (map[string]any, *wire.Refusal) {
	mode, ok := modeWords[o.Mode]
	if !ok {
		return nil, refuseAdmin(400, "unknown mode", "there are normal, post-only and cancel-only")
	}
	c := engine.Command{Kind: engine.SetMode, Mode: mode}
	body := map[string]any{"mode": o.Mode}
	if o.Market != "" && o.Wallet != "" {
		return nil, refuseAdmin(400, "both a market and a wallet", "write one of them, or neither")
	}
	if o.Market != "" {
		m, p := a.market(o)
		if p != nil {
			return nil, p
		}
		c.Market, body["market"] = m.No, m.Condition.Hex()
	}
	if o.Wallet != "" {
		wallet, p := a.wallet(o)
		if p != nil {
			return nil, p
		}
		c.Wallet, body["wallet"] = wallet, o.Wallet
	}
	return a.carry(&c, body)
}

// prevention says what happens when a wallet meets itself.
func (a *admin) prevention(o *operation) (map[string]any, *wire.Refusal) {
	wallet, p := a.wallet(o)
	if p != nil {
		return nil, p
	}
	how, ok := preventionWords[o.Mode]
	if !ok {
		return nil, refuseAdmin(400, "unknown self-trade prevention", "what expires: resting, arriving, both or none")
	}
	return a.carry(&engine.Command{Kind: engine.SetPrevention, Wallet: wallet, Prevention: how},
		map[string]any{"wallet": o.Wallet, "expires": o.Mode})
}

// collect moves fees to a wallet.
func (a *admin) collect(o *operation) (map[string]any, *wire.Refusal) {
	c := engine.Command{Kind: engine.Collect, ID: reference(engine.Collect, o.Ref)}
	var ok bool
	if c.Address, ok = auth.ParseAddress(o.Wallet); !ok {
		return nil, refuseAdmin(400, "wallet is not an address", "write it as 0x and 40 hex digits")
	}
	amount, ok := parseDecimal(o.Amount)
	if !ok {
		return nil, refuseAdmin(400, "amount is not a decimal number", "write a positive amount of whole units with up to 6 decimals, such as 12.5")
	}
	c.Cash = engine.Cash(amount)
	return a.carry(&c, map[string]any{"wallet": auth.Checksum(c.Address), "amount": o.Amount})
}

// adjust changes the rules of a market: those that are named, the others stay.
func (a *admin) adjust(o *operation) (map[string]any, *wire.Refusal) {
	m, p := a.market(o)
	if p != nil {
		return nil, p
	}
	l := m.Listing
	if o.Tick != "" {
		tick, ok := parsePrice(o.Tick)
		if !ok {
			return nil, refuseAdmin(400, "tick is not a decimal number", "such as 0.01 or 0.001")
		}
		l.Tick = tick
	}
	if o.MinSize != "" {
		size, ok := parseDecimal(o.MinSize)
		if !ok {
			return nil, refuseAdmin(400, "min-size is not a decimal number", "in shares, such as 5")
		}
		l.MinSize = engine.Size(size)
	}
	if o.MinBuy != "" {
		cash, ok := parseDecimal(o.MinBuy)
		if !ok && o.MinBuy != "0" {
			return nil, refuseAdmin(400, "min-buy is not a decimal number", "in collateral, such as 1; 0 is none")
		}
		l.MinBuy = engine.Cash(cash)
	}
	if o.Fee != "" {
		fee, ok := parseFee(o.Fee)
		if !ok {
			return nil, refuseAdmin(400, "fee is not a rate and an exponent", "write basis points, and the exponent after ^ unless it is 1: 441 or 700^2")
		}
		l.Fee = fee
	}
	return a.carry(&engine.Command{Kind: engine.Adjust, Market: m.No, Listing: &l},
		map[string]any{"market": m.Condition.Hex(), "tick": l.Tick.String(),
			"min_size": l.MinSize.String(), "min_buy": l.MinBuy.String(),
			"fee_rate_bps": l.Fee.Rate, "fee_exponent": l.Fee.Exponent})
}

// parseFee reads 441 or 441^2.
func parseFee(s string) (engine.Fee, bool) {
	rate, exponent, given := strings.Cut(s, "^")
	r, err := strconv.ParseUint(rate, 10, 16)
	e := uint64(1)
	if given && err == nil {
		e, err = strconv.ParseUint(exponent, 10, 8)
	}
	return engine.Fee{Rate: uint16(r), Exponent: uint8(e)}, err == nil
}
