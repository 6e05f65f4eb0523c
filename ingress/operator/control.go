package operator

import (
	"strconv"
	"strings"

	"clobd/engine"
	"clobd/engine/view"
	"clobd/ingress/auth"
	"clobd/ingress/form"
)

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

// market finds the market of an operation by its condition id, or by one of its token ids. If there
// is none, it refuses the operation and returns an empty Market.
func (a *admin) market(o *operation) *view.Market {
	d := a.Board().Directory
	if condition, ok := engine.ParseCondition(o.texts["market"]); ok {
		if m := d.Condition(condition); m != nil {
			return m
		}
	} else if token, ok := form.Word(o.texts["market"]); ok {
		if m, _, known := d.Token(engine.Token(token)); known {
			return m
		}
	}
	o.refuse(refuse(404, "unknown market",
		"write its condition id, 0x and 64 hex digits, or one of its token ids"))
	return &view.Market{}
}

func (a *admin) wallet(o *operation) engine.WalletNo {
	wallet, known := a.Board().Directory.Wallet(o.address("wallet"))
	if !known {
		o.refuse(refuseNoAccount)
	}
	return wallet
}

// state opens, pauses or closes a market.
func (a *admin) state(o *operation) members {
	m := a.market(o)
	state, ok := stateWords[o.texts["state"]]
	if !ok {
		o.refuse(refuse(400, "unknown state", "there are open, pause, close and unopen"))
	}
	return a.carry(o, &engine.Command{Kind: engine.SetState, Market: m.No, State: state},
		members{"market": m.Condition.Hex(), "state": o.texts["state"]})
}

// resolve sets what each outcome of a market pays: two decimals that add up to 1.
func (a *admin) resolve(o *operation) members {
	m := a.market(o)
	first, second, _ := strings.Cut(o.texts["payouts"], ",")
	x, okX := form.Price(first)
	y, okY := form.Price(second)
	if !okX || !okY || x+y != engine.PriceOne {
		return o.refuse(refuse(400, "payouts are not two decimals that add up to 1",
			"write what each outcome pays, in the order of the market's tokens: 1,0 or 0.5,0.5"))
	}
	c := engine.Command{Kind: engine.Resolve, Market: m.No, Price: x, ID: reference(engine.Resolve, o)}
	body := a.carry(o, &c, members{"market": m.Condition.Hex(),
		"payouts": []string{x.String(), y.String()}})
	if o.refused != nil && o.refused.Status == 400 {
		now := a.Board().Directory.Market(m.No)
		if now.State == engine.Settled && now.Payout != x {
			o.refused = refuse(400, "the market was resolved with other payouts", "it pays "+
				now.Payout.String()+","+(engine.PriceOne-now.Payout).String()+
				": what it was resolved with stands for good")
		}
	}
	return body
}

// mode restricts which orders a wallet may send, or a market or the whole exchange takes.
func (a *admin) mode(o *operation) members {
	mode, ok := modeWords[o.texts["mode"]]
	if !ok {
		o.refuse(refuse(400, "unknown mode", "there are normal, post-only and cancel-only"))
	}
	c := engine.Command{Kind: engine.SetMode, Mode: mode}
	body := members{"mode": o.texts["mode"]}
	if o.texts["market"] != "" && o.texts["wallet"] != "" {
		o.refuse(refuse(400, "both a market and a wallet", "write one of them, or neither"))
	}
	if o.texts["market"] != "" {
		m := a.market(o)
		c.Market, body["market"] = m.No, m.Condition.Hex()
	}
	if o.texts["wallet"] != "" {
		c.Wallet, body["wallet"] = a.wallet(o), o.texts["wallet"]
	}
	return a.carry(o, &c, body)
}

// prevention sets which order expires when a wallet would trade with itself.
func (a *admin) prevention(o *operation) members {
	wallet := a.wallet(o)
	how, ok := preventionWords[o.texts["mode"]]
	if !ok {
		o.refuse(refuse(400, "unknown self-trade prevention",
			"what expires: resting, arriving, both or none"))
	}
	return a.carry(o, &engine.Command{Kind: engine.SetPrevention, Wallet: wallet, Prevention: how},
		members{"wallet": o.texts["wallet"], "expires": o.texts["mode"]})
}

// collect moves fees to a wallet.
func (a *admin) collect(o *operation) members {
	c := engine.Command{Kind: engine.Collect, ID: reference(engine.Collect, o),
		Address: o.address("wallet"), Cash: engine.Cash(o.amount())}
	return a.carry(o, &c, members{"wallet": auth.Checksum(c.Address), "amount": o.texts["amount"]})
}

// adjust changes the rules of a market that the request names; the others stay as they are.
func (a *admin) adjust(o *operation) members {
	m := a.market(o)
	l := m.Listing
	change := func(name, fault, hint string, read func(text string) bool) {
		if text := o.texts[name]; text != "" && !read(text) {
			o.refuse(refuse(400, fault, hint))
		}
	}
	change("tick", "tick is not a decimal number", "such as 0.01 or 0.001",
		func(text string) (ok bool) { l.Tick, ok = form.Price(text); return ok })
	change("min_size", "min-size is not a decimal number", "in shares, such as 5",
		func(text string) bool {
			size, ok := form.Decimal(text)
			l.MinSize = engine.Size(size)
			return ok
		})
	change("min_buy", "min-buy is not a decimal number", "in collateral, such as 1; 0 is none",
		func(text string) bool {
			cash, ok := form.Decimal(text)
			l.MinBuy = engine.Cash(cash)
			return ok || text == "0"
		})
	change("fee", "fee is not a rate and an exponent",
		"write basis points, and the exponent after ^ unless it is 1: 441 or 700^2",
		func(text string) (ok bool) { l.Fee, ok = parseFee(text); return ok })
	return a.carry(o, &engine.Command{Kind: engine.Adjust, Market: m.No, Listing: &l},
		members{"market": m.Condition.Hex(), "tick": l.Tick.String(),
			"min_size": l.MinSize.String(), "min_buy": l.MinBuy.String(),
			"fee_rate_bps": l.Fee.Rate, "fee_exponent": l.Fee.Exponent})
}

func parseFee(s string) (engine.Fee, bool) {
	rate, exponent, given := strings.Cut(s, "^")
	r, err := strconv.ParseUint(rate, 10, 16)
	e := uint64(1)
	if given && err == nil {
		e, err = strconv.ParseUint(exponent, 10, 8)
	}
	return engine.Fee{Rate: uint16(r), Exponent: uint8(e)}, err == nil
}
