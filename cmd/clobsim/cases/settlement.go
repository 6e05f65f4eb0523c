package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"clobd/engine"
)

// settlement is an order of a taker matched by an operator against orders of makers, and what each
// of them has afterwards. All amounts are base units.
type settlement struct {
	Taker      signed          `json:"taker"`
	Makers     []signed        `json:"makers"`
	TakerFill  int64           `json:"taker_fill"`
	MakerFills []int64         `json:"maker_fills"`
	Initial    []balanceOf     `json:"initial"`
	TakerFee   int64           `json:"taker_fee"`
	MakerFees  []int64         `json:"maker_fees"`
	MatchTypes []string        `json:"match_types"`
	Expect     json.RawMessage `json:"expect"`
}

// signed is an order as it was signed: makerAmount of what it gives for takerAmount.
type signed struct {
	Account     string `json:"account"`
	Token       string `json:"token"`
	Side        string `json:"side"`
	MakerAmount int64  `json:"makerAmount"`
	TakerAmount int64  `json:"takerAmount"`
}

// balanceOf is an amount of an asset of an account.
type balanceOf struct {
	Account string `json:"account"`
	Asset   string `json:"asset"`
	Amount  int64  `json:"amount"`
}

// settled is the expected outcome of a settlement.
type settled struct {
	Reverts   string           `json:"reverts"`
	Absolute  []balanceOf      `json:"balances_absolute"`
	Delta     []balanceOf      `json:"balances_delta_since_checkpoint"`
	Filled    []string         `json:"filled"`
	Remaining map[string]int64 `json:"remaining"`
	Events    []filledEvent    `json:"order_filled_events_raw"`
}

// filledEvent is a contract's record of one order: its arguments are two asset names, what the
// order gave, what it got, and its fee.
type filledEvent struct {
	Order string   `json:"order"`
	Maker string   `json:"maker"`
	Taker string   `json:"taker"`
	Args  []string `json:"args"`
}

// settleRun is one run of a settlement.
type settleRun struct {
	*settlement
	expect settled
	venue  *venue
	makers map[engine.OrderID]int
	ids    []engine.OrderID
	before map[string]int64 // balances before the taker came
	gave   map[string]int64 // by name of the order, in its own maker asset
	got    map[string]int64
	fees   map[string]int64
	kinds  []engine.Settlement // by maker; 0 if it was not filled
	last   engine.Event        // how the taker ended
}

// run replays a settlement: the makers rest, then the taker comes as a FAK.
func (s *settlement) run() error {
	r := &settleRun{settlement: s, makers: map[engine.OrderID]int{},
		before: map[string]int64{}, gave: map[string]int64{}, got: map[string]int64{},
		fees: map[string]int64{}, kinds: make([]engine.Settlement, len(s.Makers))}
	if err := strict(s.Expect, &r.expect); err != nil {
		return fmt.Errorf("expect: %w", err)
	}
	if n := len(s.Makers); n == 0 || len(s.MakerFills) != n || len(s.MatchTypes) != n {
		return errors.New("makers, maker_fills and match_types are not as many of each")
	}
	fee, err := r.schedule()
	if err != nil {
		return err
	}
	if err := r.expressible(); err != nil {
		return err
	}
	if r.venue, err = newVenue(fee); err != nil {
		return err
	}
	if err := r.fund(); err != nil {
		return err
	}
	if err := r.rest(); err != nil {
		return err
	}
	if err := r.take(); err != nil {
		return fmt.Errorf("taker: %w", err)
	}
	if r.expect.Reverts != "" {
		return r.checkReverted()
	}
	return r.check()
}

// schedule is the fee of the market that makes the taker pay what the case states: a rate with
// exponent 1, if one gives exactly that.
func (s *settlement) schedule() (engine.Fee, error) {
	for _, fee := range s.MakerFees {
		if fee != 0 {
			return engine.Fee{}, cannot("fees supplied by the operator: makers pay none here")
		}
	}
	if s.TakerFee == 0 {
		return engine.Fee{}, nil
	}
	no := cannot("a fee supplied by the operator that no schedule gives")
	if s.TakerFee < 0 || s.TakerFee > mostFee {
		return engine.Fee{}, no
	}
	const one = int64(engine.PriceOne)
	whole, parts := int64(0), []int64{} // lots * p * (1-p), in all and of each maker
	for i := range s.Makers {
		of, err := s.Makers[i].offer(engine.GTC)
		if err != nil {
			return engine.Fee{}, err
		}
		p := int64(of.price)
		if p == 0 {
			return engine.Fee{}, no
		}
		lots := s.MakerFills[i] / int64(engine.Lot)
		if of.side == engine.Buy {
			lots = s.MakerFills[i] / p
		}
		parts = append(parts, lots*p*(one-p))
		whole += lots * p * (one - p)
	}
	if whole <= 0 || s.TakerFee*one*one%whole != 0 || s.TakerFee*one*one/whole >= one {
		return engine.Fee{}, no
	}
	rate := s.TakerFee * one * one / whole
	for _, part := range parts {
		if part/one*rate%(one*feeStep) != 0 {
			return engine.Fee{}, no
		}
	}
	return engine.Fee{Rate: uint16(rate), Exponent: 1}, nil
}

// feeStep is the unit to which fees are rounded, and mostFee the largest fee that is tried, in base
// units.
const (
	feeStep = 10
	mostFee = 10_000 * engine.Unit
)

// expressible returns an error if the engine cannot replay a case, because the operator decides
// something in it that no order states.
func (r *settleRun) expressible() error {
	switch r.expect.Reverts {
	case "":
		if r.TakerFill != r.Taker.MakerAmount {
			return cannot("a fill smaller than the order, chosen by the operator")
		}
	case "NotCrossing", "ZeroMakerAmount", "MismatchedTokenIds":
		return nil // these orders are refused, or do not meet
	case "FeeExceedsMaxRate":
		return cannot("revert %s has no wire form: the operator supplies the fee", r.expect.Reverts)
	default:
		return cannot("revert %s has no wire form: the operator supplies the fills",
			r.expect.Reverts)
	}
	return nil
}

// outcomeOf is the outcome of a token; false for one that is of no market.
func outcomeOf(token string) (engine.Outcome, bool) {
	switch token {
	case "YES":
		return 0, true
	case "NO":
		return 1, true
	}
	return 0, false
}

// offer puts a signed order into the engine's units.
func (o *signed) offer(kind engine.OrderType) (*offer, error) {
	of := &offer{account: o.Account, kind: kind}
	cash, size := o.MakerAmount, o.TakerAmount
	switch o.Side {
	case "BUY":
	case "SELL":
		of.side = engine.Sell
		cash, size = size, cash
	default:
		return nil, fmt.Errorf("unknown side %q", o.Side)
	}
	if cash < 0 || size < 0 || cash > mostSigned || size > mostSigned {
		return nil, fmt.Errorf("amounts %d and %d out of range", o.MakerAmount, o.TakerAmount)
	}
	of.cash, of.size = engine.Cash(cash), engine.Size(size)
	of.outcome, _ = outcomeOf(o.Token)
	if size > 0 && cash < size {
		of.price = engine.Price(cash * int64(engine.PriceOne) / size)
	}
	return of, nil
}

// mostSigned bounds the amounts of a settlement, in base units: a million units.
const mostSigned = 1_000_000 * engine.Unit

// priced reports whether an order has a price that a market can have.
func (o *offer) priced() bool {
	return o.size > 0 && o.cash > 0 && int64(o.cash) < int64(o.size) &&
		int64(o.cash)*int64(engine.PriceOne)%int64(o.size) == 0 && o.size%engine.Lot == 0
}

// fund pays in the stated opening balances, or what the orders need if none is stated.
func (r *settleRun) fund() error {
	for _, h := range r.Initial {
		a, err := assetOf(h.Asset)
		if err != nil {
			return err
		}
		if err := r.venue.deposit(h.Account, a, h.Amount); err != nil {
			return err
		}
	}
	if len(r.Initial) > 0 {
		return nil
	}
	for _, o := range append([]signed{r.Taker}, r.Makers...) {
		of, err := o.offer(engine.GTC)
		if err != nil {
			return err
		}
		if err := r.venue.fund(of); err != nil {
			return err
		}
	}
	return nil
}

// assetOf is the asset of that name.
func assetOf(name string) (asset, error) {
	if name == "USDC" {
		return collateral, nil
	}
	o, ok := outcomeOf(name)
	if !ok {
		return 0, fmt.Errorf("unknown asset %q", name)
	}
	return asset(o), nil
}

// rest places the makers' orders as post-only ones, which reserve nothing for a fee. A case that
// reverts may have a maker that cannot be an order; the engine must refuse that one.
func (r *settleRun) rest() error {
	for i := range r.Makers {
		m := &r.Makers[i]
		of, err := m.offer(engine.GTC)
		if err != nil {
			return err
		}
		of.rests = true
		_, listed := outcomeOf(m.Token)
		if !listed {
			of.outcome = 2 // there is none
		}
		if r.expect.Reverts == "" && !(of.priced() && listed) {
			return cannot("maker %d: a price outside (0, 1), or less than a lot, has no wire form", i)
		}
		id, last, err := r.venue.place(of)
		if err != nil {
			return fmt.Errorf("maker %d: %w", i, err)
		}
		r.makers[id], r.ids = i, append(r.ids, id)
		if last.Kind == engine.Placed {
			continue
		}
		if last.Reject == engine.RejectCrosses {
			return cannot("maker %d meets one before it: no two orders rest like that", i)
		}
		why := engine.Accepted
		switch {
		case !listed:
			why = engine.RejectMarket
		case of.size == 0 || of.cash == 0:
			why = engine.RejectAmount
		}
		if last.Kind != engine.Rejected || last.Reject != why {
			want := "placed"
			if why != engine.Accepted {
				want = "rejected (" + engine.Rejects[why].Code + ")"
			}
			return differ(fmt.Sprintf("maker %d", i), want, text(last))
		}
	}
	return nil
}

// text is how a Place ended.
func text(last engine.Event) string {
	switch last.Kind {
	case engine.Placed:
		return "placed"
	case engine.Completed:
		return fmt.Sprintf("completed with %v left", last.Remaining)
	}
	return refusal(last)
}

// take places the taker, and counts what it and each maker gave and got.
func (r *settleRun) take() error {
	of, err := r.Taker.offer(engine.FAK)
	if err != nil {
		return err
	}
	if r.expect.Reverts == "" && !of.priced() {
		return cannot("a price outside (0, 1), or less than a lot, has no wire form")
	}
	if err := r.remember(); err != nil {
		return err
	}
	if _, r.last, err = r.venue.place(of); err != nil {
		return err
	}
	for i := range r.venue.events {
		e := &r.venue.events[i]
		if e.Kind != engine.Filled {
			continue
		}
		maker := makerName(r.makers[e.Order])
		r.kinds[r.makers[e.Order]] = e.Settlement
		r.trade(maker, e.Side, e.Size, e.Price)
		own := e.Price
		if e.Outcome != of.outcome {
			own = engine.PriceOne - own
		}
		r.trade("taker", of.side, e.Size, own)
		r.fees["taker"] += int64(e.Fee)
	}
	return nil
}

// makerName is the name of the i-th maker's order.
func makerName(i int) string { return "maker" + strconv.Itoa(i) }

// trade counts one fill of an order at a price of its own token.
func (r *settleRun) trade(name string, side engine.Side, size engine.Size, p engine.Price) {
	gave, got := int64(engine.Cost(size, p)), int64(size)
	if side == engine.Sell {
		gave, got = got, gave
	}
	r.gave[name] += gave
	r.got[name] += got
}

// remember keeps all balances, to compare later ones with them.
func (r *settleRun) remember() error {
	for account := range r.venue.wallets {
		for a := range collateral + 1 {
			total, _, err := r.venue.balance(account, a)
			if err != nil {
				return err
			}
			r.before[key(account, a)] = total
		}
	}
	return nil
}

// key names a balance.
func key(account string, a asset) string { return account + " " + strconv.Itoa(int(a)) }

// amount reads an integer with underscores.
func amount(text string) (int64, error) {
	return strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
}
