package ingress

import (
	"strconv"
	"strings"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/ingress/auth"
)

// The words of operators.
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
func (a *admin) market(o operation) (*view.Market, *wire.Refusal) {
	d := a.server.options.Board.Directory
	if condition, ok := engine.ParseCondition(o["market"]); ok {
		if m := d.Condition(condition); m != nil {
			return m, nil
		}
	} else if token, ok := parseWord(o["market"]); ok {
		if m, _, known := d.Token(engine.Token(token)); known {
			return m, nil
		}
	}
	return nil, refuseAdmin(404, "unknown market", "write its condition id, 0x and 64 hex digits, or one of its token ids")
}

// inMarket makes the operation that runs in the market it names.
func (a *admin) inMarket(
	run func(*view.Market, operation) (members, *wire.Refusal),
) func(operation) (members, *wire.Refusal) {
	return func(o operation) (members, *wire.Refusal) {
		m, refused := a.market(o)
		if refused != nil {
			return nil, refused
		}
		return run(m, o)
	}
}

// wallet finds the wallet of an operation.
func (a *admin) wallet(o operation) (engine.WalletNo, *wire.Refusal) {
	address, refused := o.address("wallet")
	if refused != nil {
		return 0, refused
	}
	wallet, known := a.server.options.Board.Directory.Wallet(address)
	if !known {
		return 0, refuseNoAccount
	}
	return wallet, nil
}

// state opens, pauses or closes a market.
func (a *admin) state(m *view.Market, o operation) (members, *wire.Refusal) {
	state, ok := stateWords[o["state"]]
	if !ok {
		return nil, refuseAdmin(400, "unknown state", "there are open, pause, close and unopen")
	}
	return a.carry(&engine.Command{Kind: engine.SetState, Market: m.No, State: state},
		members{"market": m.Condition.Hex(), "state": o["state"]})
}

// resolve sets what the outcomes of a market pay: two decimals that add up to 1.
func (a *admin) resolve(m *view.Market, o operation) (members, *wire.Refusal) {
	first, second, _ := strings.Cut(o["payouts"], ",")
	x, okX := parsePrice(first)
	y, okY := parsePrice(second)
	if !okX || !okY || x+y != engine.PriceOne {
		return nil, refuseAdmin(400, "payouts are not two decimals that add up to 1", "write what each outcome pays, in the order of the market's tokens: 1,0 or 0.5,0.5")
	}
	c := engine.Command{Kind: engine.Resolve, Market: m.No, Price: x,
		ID: reference(engine.Resolve, o["ref"])}
	body, refused := a.carry(&c, members{"market": m.Condition.Hex(),
		"payouts": []string{x.String(), y.String()}})
	now := a.server.options.Board.Directory.Market(m.No)
	if refused != nil && refused.Status == 400 && now.State == engine.Settled && now.Payout != x {
		refused = refuseAdmin(400, "the market was resolved with other payouts", "it pays "+
			now.Payout.String()+","+(engine.PriceOne-now.Payout).String()+
			": what it was resolved with stands for good")
	}
	return body, refused
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

// mode restricts what a wallet may do, or what a market or the whole exchange takes.
func (a *admin) mode(o operation) (members, *wire.Refusal) {
	mode, ok := modeWords[o["mode"]]
	if !ok {
		return nil, refuseAdmin(400, "unknown mode", "there are normal, post-only and cancel-only")
	}
	c := engine.Command{Kind: engine.SetMode, Mode: mode}
	body := members{"mode": o["mode"]}
	if o["market"] != "" && o["wallet"] != "" {
		return nil, refuseAdmin(400, "both a market and a wallet", "write one of them, or neither")
	}
	if o["market"] != "" {
		m, refused := a.market(o)
		if refused != nil {
			return nil, refused
		}
		c.Market, body["market"] = m.No, m.Condition.Hex()
	}
	if o["wallet"] != "" {
		wallet, refused := a.wallet(o)
		if refused != nil {
			return nil, refused
		}
		c.Wallet, body["wallet"] = wallet, o["wallet"]
	}
	return a.carry(&c, body)
}

// prevention sets what expires when a wallet meets its own order.
func (a *admin) prevention(o operation) (members, *wire.Refusal) {
	wallet, refused := a.wallet(o)
	if refused != nil {
		return nil, refused
	}
	how, ok := preventionWords[o["mode"]]
	if !ok {
		return nil, refuseAdmin(400, "unknown self-trade prevention", "what expires: resting, arriving, both or none")
	}
	return a.carry(&engine.Command{Kind: engine.SetPrevention, Wallet: wallet, Prevention: how},
		members{"wallet": o["wallet"], "expires": o["mode"]})
}

// collect moves fees to a wallet.
func (a *admin) collect(o operation) (members, *wire.Refusal) {
	c := engine.Command{Kind: engine.Collect, ID: reference(engine.Collect, o["ref"])}
	var refused *wire.Refusal
	if c.Address, refused = o.address("wallet"); refused != nil {
		return nil, refused
	}
	amount, refused := o.amount()
	if refused != nil {
		return nil, refused
	}
	c.Cash = engine.Cash(amount)
	return a.carry(&c, members{"wallet": auth.Checksum(c.Address), "amount": o["amount"]})
}

// adjust changes the named rules of a market; the others stay.
func (a *admin) adjust(m *view.Market, o operation) (members, *wire.Refusal) {
	l, ok := m.Listing, true
	if text := o["tick"]; text != "" {
		if l.Tick, ok = parsePrice(text); !ok {
			return nil, refuseAdmin(400, "tick is not a decimal number", "such as 0.01 or 0.001")
		}
	}
	if text := o["min_size"]; text != "" {
		size, ok := parseDecimal(text)
		if l.MinSize = engine.Size(size); !ok {
			return nil, refuseAdmin(400, "min-size is not a decimal number", "in shares, such as 5")
		}
	}
	if text := o["min_buy"]; text != "" {
		cash, ok := parseDecimal(text)
		if l.MinBuy = engine.Cash(cash); !ok && text != "0" {
			return nil, refuseAdmin(400, "min-buy is not a decimal number", "in collateral, such as 1; 0 is none")
		}
	}
	if text := o["fee"]; text != "" {
		if l.Fee, ok = parseFee(text); !ok {
			return nil, refuseAdmin(400, "fee is not a rate and an exponent", "write basis points, and the exponent after ^ unless it is 1: 441 or 700^2")
		}
	}
	return a.carry(&engine.Command{Kind: engine.Adjust, Market: m.No, Listing: &l},
		members{"market": m.Condition.Hex(), "tick": l.Tick.String(),
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
