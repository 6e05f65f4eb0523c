package answer

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// The engine refuses with a reason and up to three numbers. This file adds advice from the
// published books and rules, which may have changed since the refusal.

// Asked is an order that the engine has refused, with its market and the Board.
type Asked struct {
	Command *engine.Command
	Market  *view.Market
	Board   *view.Board
}

// Refuse returns the refusal of the order, with advice.
func (p *Asked) Refuse(out *Result) *wire.Refusal {
	r := &out.Receipt
	refused := Refuse(r)
	detail := p.advise(r)
	if r.Reject == engine.RejectTick {
		if words, better := misfit(p.Command, engine.Price(r.Args[1])); words != "" {
			refused.Text, detail = words, better+", or another price: "+grid(p.Market.Tick)
		} else {
			refused.Text = exactly(refused.Text, engine.Price(r.Args[0]), p.Command)
		}
	}
	if engine.Rejects[r.Reject].Final {
		detail += "; this order is over, sign another one"
		if out.Replay {
			detail = "it was refused when it came first, and stays so: sign another one"
		}
	}
	if detail == "" {
		return refused
	}
	return refused.Because(detail)
}

// misfit returns the text of the refusal of amounts whose quotient is no price on any tick. It
// takes the market's nearest price for the one that was meant: one of the amounts was rounded.
// better names the amount that would fit. The text is the peers', with their spelling. Both are ""
// if the quotient is a price on another tick, or the nearest price is 0 or 1.
func misfit(c *engine.Command, tick engine.Price) (words, better string) {
	cash, size, who := uint64(c.Cash), uint64(c.Size), "maker"
	if c.Side == engine.Sell {
		who = "taker"
	}
	one := uint64(engine.PriceOne)
	if cash > engine.MaxAmount || size > uint64(engine.MaxOrder) || size == 0 || cash*one%size == 0 {
		return "", ""
	}
	ticks := one / uint64(tick)
	n := (cash*ticks + size/2) / size
	if n < 1 || n >= ticks {
		return "", ""
	}
	price := engine.Price(n) * tick
	should := engine.Cash(size * uint64(price) / one)
	return "invalid amounts, the " + who + " amount for a $" + price.String() + " order of size " +
		engine.Size(size).String() + " should be '" + should.String() + "' but the value submited is '" +
		engine.Cash(cash).String() + "'. Please check if you are using the latest version of the " +
		"'clob-client' library", "sign a " + who + "Amount of " + strconv.FormatInt(int64(should), 10)
}

// exactly replaces the rounded price in the text of a Receipt by the exact price that was signed,
// which breaks the rule.
func exactly(text string, rounded engine.Price, c *engine.Command) string {
	cash, size := uint64(c.Cash), uint64(c.Size)
	exact := strconv.FormatUint(cash, 10) + "/" + strconv.FormatUint(size, 10)
	for digits, scale := 4, uint64(1e4); digits <= exactDigits; digits, scale = digits+1, scale*10 {
		if high, low := bits.Mul64(cash, scale); high < size {
			if quotient, rest := bits.Div64(high, low, size); rest == 0 && quotient <= math.MaxInt64 {
				exact = string(engine.AppendDecimal(nil, int64(quotient), digits))
				break
			}
		}
	}
	return strings.Replace(text, "("+rounded.String()+")", "("+exact+")", 1)
}

// exactDigits bounds the decimals of a price. A price that needs more is written as a fraction.
const exactDigits = 12

// advise returns what to change in an order, or "" if the refusal itself says enough.
func (p *Asked) advise(r *engine.Receipt) string {
	m, c := p.Market, p.Command
	switch r.Reject {
	case engine.RejectTick:
		return "the price must be " + grid(m.Tick)
	case engine.RejectMinSize:
		if least := engine.Size(r.Args[1]); least <= engine.Lot {
			return "ask for one lot of " + engine.Size(engine.Lot).String() + " share or more"
		}
		return "ask for " + m.MinSize.String() + " shares or more; as FOK or FAK one lot of " +
			engine.Size(engine.Lot).String() + " will do"
	case engine.RejectBalance:
		return Lacking(r, c.Side == engine.Buy)
	case engine.RejectAmount:
		if c.Size > engine.MaxOrder {
			return "ask for at most " + engine.MaxOrder.String() + " shares in one order"
		}
		return "it must pay for one lot of " + engine.Size(engine.Lot).String() + " share or more"
	case engine.RejectExpiry:
		return "expiration must be later than now, " +
			strconv.FormatInt(int64(r.Time)/1000, 10) + " in unix seconds"
	case engine.RejectFee:
		return "sign a feeRateBps of " + strconv.FormatInt(r.Args[1], 10) + " or more"
	case engine.RejectUnopened, engine.RejectPaused, engine.RejectClosed:
		return inState(p.Board.Directory.Market(m.No))
	case engine.RejectCancelOnly, engine.RejectPostOnlyMode:
		return p.inMode()
	case engine.RejectCrosses:
		return p.against()
	case engine.RejectFOK, engine.RejectFAK:
		return p.against() + "; orders of the same wallet do not count"
	}
	return fixedAdvice[r.Reject]
}

// fixedAdvice is the advice that depends only on the reason of the refusal.
var fixedAdvice = map[engine.Reject]string{
	engine.RejectWalletOrders: "cancel some of them first",
	engine.RejectMarketOrders: "the book is full: what trades at once, as FOK or FAK, is taken",
	engine.RejectStale:        "sign it again, or allow a greater MAX_AGE_MS",
	engine.RejectMinBuy:       "spend more, or quote a price at which it rests",
	engine.RejectBanned:       "the wallet may only cancel until the operator allows more",
	engine.RejectPostWallet:   "send it post-only; the operator can allow the wallet more",
	engine.RejectLink:         "the wallet was linked to another owner just now",
}

func grid(tick engine.Price) string {
	return "a multiple of " + tick.String() + " from " + tick.String() + " to " +
		(engine.PriceOne - tick).String()
}

// Lacking returns advice that says how much collateral, or how many tokens, are missing.
func Lacking(r *engine.Receipt, cash bool) string {
	of := " shares of the token"
	if cash {
		of = " of collateral, with fees"
	}
	free, need := engine.Size(r.Args[0]-r.Args[1]), engine.Size(r.Args[2])
	return "it takes " + need.String() + of + ", and " + free.String() + " of " +
		engine.Size(r.Args[0]).String() + " are free: pay in, cancel open orders, or ask for less"
}

func stateText(state engine.MarketState) string {
	return [...]string{engine.Unopened: "unopened", engine.Open: "open", engine.Paused: "paused",
		engine.Closed: "closed", engine.Settled: "resolved"}[state]
}

// inState returns advice that names the state of a market, and says what is possible in it.
func inState(m *view.Market) string {
	text := "the market is " + stateText(m.State)
	switch m.State {
	case engine.Unopened, engine.Paused:
		return text + ": send again when it is open"
	case engine.Closed:
		return text + ": it takes no orders"
	case engine.Settled:
		return text + ": what is held of it can be redeemed"
	}
	return text + " by now: send again"
}

// inMode returns advice that says where a mode applies: on the whole exchange, or in one market.
func (p *Asked) inMode() string {
	d := p.Board.Directory
	who := "the whole exchange"
	if m := d.Market(p.Market.No); d.Mode() == engine.Normal && m.Mode != engine.Normal {
		who = "this market"
	}
	return "that is so for " + who + ", until the operator changes it"
}

// against returns advice that names the best price on the other side of the book.
func (p *Asked) against() string {
	c, book := p.Command, p.Board.Condition(p.Market.Condition)
	bid, ask := book.Best(c.Outcome)
	best, name := ask, "ask"
	if c.Side == engine.Sell {
		best, name = bid, "bid"
	}
	if best == 0 {
		return "nobody quotes the other side now"
	}
	limit := engine.Price((int64(c.Cash)*int64(engine.PriceOne) + int64(c.Size)/2) / int64(c.Size))
	var b strings.Builder
	b.WriteString("the best " + name + " is " + best.String() + " now, the order's limit " +
		limit.String())
	if c.Type == engine.FOK {
		size := engine.Size(0)
		book.Levels(c.Outcome, c.Side.Other(), func(p engine.Price, v engine.Size) bool {
			if c.Side == engine.Buy && p > limit || c.Side == engine.Sell && p < limit {
				return false
			}
			size += v
			return true
		})
		b.WriteString(", up to which there are " + size.String() + " shares")
	}
	return b.String()
}

// RefuseTransfer returns the refusal of a split, merge or redemption that the engine refused.
func RefuseTransfer(c *engine.Command, r *engine.Receipt, b *view.Board) *wire.Refusal {
	refused := Refuse(r)
	switch r.Reject {
	case engine.RejectState:
		text := "the market is " + stateText(b.Directory.Market(c.Market).State)
		if c.Kind == engine.RedeemTokens {
			return refused.Because(text + ": tokens are redeemed once it is resolved")
		}
		return refused.Because(text + ": redeem what is held of it")
	case engine.RejectBalance:
		return refused.Because(Lacking(r, c.Kind == engine.SplitTokens))
	case engine.RejectAmount:
		return refused.Because("amount must be at most " + engine.Size(engine.MaxAmount).String())
	case engine.RejectNothing:
		return refused.Because("the wallet holds none of its tokens")
	}
	return refused
}
