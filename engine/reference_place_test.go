package engine

import (
	"math/big"
	"slices"
	"sort"
)

// The rules of orders: first who may place which order when and how large, then the fills one by
// one, then the rest.

// known reports whether an id is bound: among the last placements, or resting.
func (r *reference) known(id OrderID) (Sequence, bool) {
	last := r.bound[max(0, len(r.bound)-r.window):]
	for _, b := range last {
		if b.id == id {
			return b.first, true
		}
	}
	for _, o := range r.orders {
		if o.id == id {
			return o.first, true
		}
	}
	return 0, false
}

// floor is the newest forgotten placement.
func (r *reference) floor() Sequence {
	if len(r.bound) <= r.window {
		return 0
	}
	return r.bound[len(r.bound)-r.window-1].first
}

// whole returns a rational number without its fraction.
func whole(x *big.Rat) *big.Int { return new(big.Int).Div(x.Num(), x.Denom()) }

// fraction returns a/b; a caller whose product may exceed int64 uses a big.Rat.
func fraction(a, b int64) *big.Rat { return big.NewRat(a, b) }

// limit is the tick that signed amounts are nearest to, and whether they are near enough: resting
// orders one base unit of collateral, the others a fiftieth of a tick.
func limit(c *Command, tick Price) (n *big.Int, good bool) {
	ticks := int64(PriceOne / tick)
	price := new(big.Rat).Mul(fraction(int64(c.Cash), int64(c.Size)), fraction(ticks, 1))
	n = whole(new(big.Rat).Add(price, fraction(1, 2)))
	off := new(big.Rat).Sub(price, new(big.Rat).SetInt(n))
	tolerated := fraction(1, 50)
	if c.Type == GTC || c.Type == GTD {
		tolerated = fraction(ticks, int64(c.Size))
	}
	good = n.Sign() > 0 && n.Cmp(big.NewInt(ticks)) < 0 && off.Abs(off).Cmp(tolerated) <= 0
	return n, good
}

// feeOn is shares * rate * (p*(1-p))^exponent in steps of ten base units, as a fraction.
func feeOn(f Fee, lots, price int64) *big.Rat {
	fee := fraction(lots*int64(Lot), 10)
	fee.Mul(fee, fraction(int64(f.Rate), 10_000))
	p := fraction(price*(int64(PriceOne)-price), int64(PriceOne)*int64(PriceOne))
	for range f.Exponent {
		fee.Mul(fee, p)
	}
	return fee
}

// fee rounds feeOn to the nearest step, a half up; feeUp rounds any fraction up.
func fee(f Fee, lots, price int64) int64 {
	if f.Rate == 0 {
		return 0
	}
	exact := feeOn(f, lots, price)
	return 10 * whole(exact.Add(exact, fraction(1, 2))).Int64()
}

func feeUp(f Fee, lots, price int64) int64 {
	exact := feeOn(f, lots, price)
	return -10 * whole(exact.Neg(exact)).Int64()
}

// arrival is an order that is being matched. Its lots are still to be filled; a BUY that does not
// rest may get more for the rest of its cash.
type arrival struct {
	refOrder
	c       *Command
	m       *refMarket
	now     Time
	size    int64 // in lots: what a FOK must get
	cash    int64 // left of what it signed
	budget  bool
	stopped bool // it met its own wallet
	filled  int64
}

// place judges an order in the order of the rules, and trades it.
func (r *reference) place(c *Command, seq Sequence, now Time) []Event {
	w := r.wallet(c.Wallet)
	switch {
	case w == nil:
		return refused(c, RejectWallet)
	case c.Owner != c.Wallet && (c.Owner == 0 || c.Owner != w.owner):
		return refused(c, RejectLink)
	}
	if first, known := r.known(c.ID); known {
		return before(c, RejectDuplicate, first)
	}
	if floor := r.floor(); c.Seen < floor {
		return before(c, RejectRecheck, floor)
	}
	id, replaces := c.Replaced()
	gone, all := r.some(func(o *refOrder) bool {
		return replaces && o.id == id && o.wallet == c.Wallet && o.owner == c.Owner
	}), slices.Clone(r.orders)
	if replaces && len(gone) == 0 {
		return refused(c, RejectReplaced)
	}
	left := r.dropAll(gone, ByOwner) // undone below if the new order is refused
	a := &arrival{c: c, m: r.market(c.Market), now: now}
	a.refOrder = refOrder{
		id: c.ID, first: seq, wallet: c.Wallet, owner: c.Owner, key: c.Key, market: c.Market,
		side: c.Side, outcome: c.Outcome, expiry: c.Expiry,
	}
	events := a.taken(r)
	if events == nil {
		events = a.sized(r)
	}
	if events == nil {
		events = a.met(r)
	}
	if events == nil {
		events = a.afforded(r)
	}
	if events == nil {
		events = a.trade(r)
	}
	last := events[len(events)-1]
	if last.Kind != Rejected || Rejects[last.Reject].Final {
		r.bound = append(r.bound, refBinding{c.ID, seq})
	}
	if last.Kind == Rejected {
		r.orders = all
		return events
	}
	return append(left, events...)
}

// taken judges whether the order is allowed at this Time, of its kind, in this mode and state.
func (a *arrival) taken(r *reference) []Event {
	c, w, m := a.c, r.wallet(a.wallet), a.m
	resting := c.Type == GTC || c.Type == GTD
	switch {
	case c.Deadline != 0 && a.now > c.Deadline:
		return refused(c, RejectStale, int64(c.Deadline), int64(a.now))
	case c.Type > FAK, c.Side > Sell, c.PostOnly && !resting:
		return refused(c, RejectType)
	case c.Type == GTD && c.Expiry <= a.now, c.Type != GTD && c.Expiry != 0:
		return refused(c, RejectExpiry)
	case m == nil, c.Outcome > 1:
		return refused(c, RejectMarket)
	case w.mode == CancelOnly:
		args := packAddress(&w.address)
		return refused(c, RejectBanned, args[:]...)
	case r.mode == CancelOnly, m.mode == CancelOnly:
		return refused(c, RejectCancelOnly)
	case !c.PostOnly && (r.mode == PostOnly || m.mode == PostOnly):
		return refused(c, RejectPostOnlyMode)
	case !c.PostOnly && w.mode == PostOnly:
		args := packAddress(&w.address)
		return refused(c, RejectPostWallet, args[:]...)
	}
	switch m.state {
	case Unopened:
		return refused(c, RejectUnopened)
	case Paused:
		return refused(c, RejectPaused)
	case Closed, Settled:
		return refused(c, RejectClosed)
	}
	if rate := int64(m.listing.Fee.Rate); c.FeeBound != 0 && int64(c.FeeBound)-1 < rate {
		return refused(c, RejectFee, int64(c.FeeBound)-1, rate)
	}
	return nil
}

// sized judges amounts, and finds the limit and the size of an order.
func (a *arrival) sized(r *reference) []Event {
	c, l := a.c, &a.m.listing
	if c.Size < 1 || c.Size > MaxOrder || c.Cash < 1 || c.Cash > MaxAmount {
		return refused(c, RejectAmount)
	}
	n, good := limit(c, l.Tick)
	if !good {
		asked := fraction(int64(c.Cash), int64(c.Size))
		asked.Mul(asked, fraction(int64(PriceOne), 1))
		asked.Add(asked, fraction(1, 2))
		shown := int64(1<<63 - 1) // the most that Args hold
		if n := whole(asked); n.IsInt64() {
			shown = n.Int64()
		}
		return refused(c, RejectTick, shown, int64(l.Tick))
	}
	a.price = n.Int64() * int64(l.Tick)
	least := int64(1)
	if c.Type == GTC || c.Type == GTD {
		least = int64(l.MinSize)
	}
	least = max(least, int64(Lot))
	if int64(c.Size) < least {
		return refused(c, RejectMinSize, int64(c.Size), least)
	}
	a.lots = int64(c.Size / Lot)
	if c.Side == Buy && c.Type != FOK {
		a.lots = min(a.lots, int64(c.Cash)/a.price)
	}
	if a.lots == 0 {
		return refused(c, RejectAmount)
	}
	a.size = a.lots
	a.budget = c.Side == Buy && (c.Type == FOK || c.Type == FAK)
	a.cash = int64(c.Cash)
	return nil
}

// met judges an order by the orders that it would meet and by the number of open orders.
func (a *arrival) met(r *reference) []Event {
	c := a.c
	crosses, resting := a.best(r) != nil, c.Type == GTC || c.Type == GTD
	open := func(pass func(o *refOrder) bool) int { return len(r.some(pass)) }
	switch {
	case c.PostOnly && crosses:
		return refused(c, RejectCrosses)
	case c.Side == Buy && (crosses || !resting) && c.Cash < a.m.listing.MinBuy:
		return refused(c, RejectMinBuy, int64(c.Cash), int64(a.m.listing.MinBuy))
	case resting && len(r.orders) >= MaxWalletOrders &&
		open(func(o *refOrder) bool { return o.wallet == a.wallet }) >= MaxWalletOrders:
		return refused(c, RejectWalletOrders, MaxWalletOrders)
	case resting && len(r.orders) >= MaxMarketOrders && !crosses &&
		open(func(o *refOrder) bool { return o.market == a.market }) >= MaxMarketOrders:
		return refused(c, RejectMarketOrders, MaxMarketOrders)
	}
	return nil
}

// afforded requires the highest cost of an order at its limit, or the tokens that it may sell. A
// post-only order pays no fee.
func (a *arrival) afforded(r *reference) []Event {
	total, held := r.wallet(a.wallet).cash, r.held(a.wallet)
	need := a.lots * a.price
	if a.side == Sell {
		total = r.wallet(a.wallet).own(a.market)[a.outcome]
		held = r.heldTokens(a.wallet, a.market, a.outcome)
		need = a.lots * int64(Lot)
	}
	if a.budget {
		need = a.cash
	}
	if a.side == Buy && !a.c.PostOnly {
		need += feeUp(a.m.listing.Fee, a.lots, a.price)
	}
	if total-held < need {
		return refused(a.c, RejectBalance, total, held, need)
	}
	return nil
}

// best is the resting order that an arriving one meets first, nil if none crosses its limit.
func (a *arrival) best(r *reference) (best *refOrder) {
	side, limit := a.inA()
	for i := range r.orders {
		o := &r.orders[i]
		other, price := o.inA()
		if o.market != a.market || other == side || side == Buy && price > limit ||
			side == Sell && price < limit {
			continue
		}
		if best != nil {
			if _, than := best.inA(); side == Buy && price >= than || side == Sell && price <= than {
				continue
			}
		}
		best = o
	}
	return best
}

// complete reports whether a FOK can get its size for its cash. Its wallet's own orders count as
// absent, as in the way or as present, as its prevention says.
func (a *arrival) complete(r *reference) bool {
	lots, cost := int64(0), int64(0)
	rest := &reference{orders: slices.Clone(r.orders)}
	prevention := r.wallet(a.wallet).prevention
	for lots < a.size {
		o := a.best(rest)
		if o == nil {
			return false
		}
		if own := o.wallet == a.wallet; own && prevention != AllowSelfTrade {
			if prevention != ExpireResting {
				return false
			}
		} else {
			n := min(o.lots, a.size-lots)
			lots, cost = lots+n, cost+n*a.pays(o)
		}
		rest.orders = slices.DeleteFunc(rest.orders, func(p refOrder) bool { return p.id == o.id })
	}
	return a.side == Sell || cost <= a.cash
}

// obtains reports whether a FAK gets anything, or ends at an order of its own wallet.
func (a *arrival) obtains(r *reference) bool {
	rest := &reference{orders: slices.DeleteFunc(slices.Clone(r.orders), func(o refOrder) bool {
		return o.wallet == a.wallet && r.wallet(a.wallet).prevention == ExpireResting
	})}
	return a.best(rest) != nil
}

// pays is the price in the arriving order's own token at which it meets a resting one.
func (a *arrival) pays(o *refOrder) int64 {
	if o.outcome != a.outcome {
		return int64(PriceOne) - o.price
	}
	return o.price
}

// trade matches the arriving order with resting ones and returns its outcome.
func (a *arrival) trade(r *reference) []Event {
	c := a.c
	if c.Type == FOK && !a.complete(r) {
		return refused(c, RejectFOK)
	}
	if c.Type == FAK && !a.obtains(r) {
		return refused(c, RejectFAK)
	}
	events := a.meet(r)
	last := Event{
		Kind: Completed, Side: c.Side, Outcome: c.Outcome, Price: Price(a.price), Market: c.Market,
		Wallet: c.Wallet, Owner: c.Owner, Size: Size(a.size) * Lot, Remaining: Size(a.lots) * Lot,
		Order: c.ID,
	}
	switch {
	case a.lots == 0:
	case a.stopped:
		last.Reason = SelfTrade
	case c.Type == FAK:
		last.Reason = Unfilled
	default:
		last.Kind = Placed
		r.rest(a.refOrder)
	}
	return append(events, last)
}

// meet fills an arriving order from resting orders until it has enough or can have no more.
func (a *arrival) meet(r *reference) (events []Event) {
	for a.lots > 0 || a.budget {
		o := a.best(r)
		if o == nil {
			break
		}
		lots := min(a.lots, o.lots)
		if a.budget {
			lots = a.within(r, o)
		}
		if lots == 0 {
			break
		}
		if how := r.wallet(a.wallet).prevention; o.wallet == a.wallet && how != AllowSelfTrade {
			if how == ExpireResting || how == ExpireBoth {
				events = append(events, r.drop(*o, SelfTrade))
			}
			if how == ExpireArriving || how == ExpireBoth {
				a.stopped = true
				break
			}
			continue
		}
		e := a.fill(r, o, lots)
		events = append(events, e)
		if e.Remaining != 0 {
			break
		}
		r.take(o.id)
	}
	return events
}

// within returns how many lots of a resting order a budget buys. Lots beyond those that the
// arriving order still lacks are limited to what the wallet can pay for, fee included.
func (a *arrival) within(r *reference, o *refOrder) int64 {
	price, f := a.pays(o), a.m.listing.Fee
	most, free := min(o.lots, a.cash/price), r.free(a.wallet)
	if most <= a.lots || f.Rate == 0 {
		return most
	}
	return a.lots + int64(sort.Search(int(most-a.lots), func(more int) bool {
		lots := a.lots + int64(more) + 1
		return lots*price+fee(f, lots, price) > free
	}))
}

// fill moves lots between an arriving order and a resting one at the resting one's price.
func (a *arrival) fill(r *reference, o *refOrder, lots int64) Event {
	price, how := a.pays(o), Transfer
	if a.outcome != o.outcome {
		how = Merge
		if a.side == Buy {
			how = Mint
		}
	}
	o.lots -= lots
	r.swap(o, lots, o.price)
	a.lots = max(0, a.lots-lots)
	a.cash -= lots * price
	a.filled += lots
	charge := fee(a.m.listing.Fee, lots, price)
	if a.side == Sell {
		charge = min(charge, lots*price)
	} else {
		// What is still to be filled can be paid for whatever was charged before: it costs no more than
		// its limit, nor than what is left of the signed cash.
		charge = min(charge, r.free(a.wallet)-lots*price-min(a.lots*a.price, a.cash))
	}
	r.swap(&a.refOrder, lots, price)
	r.wallet(a.wallet).cash -= charge
	r.fees += charge
	switch how {
	case Mint:
		a.m.pairs(lots * int64(Lot))
	case Merge:
		a.m.pairs(-lots * int64(Lot))
	}
	return Event{
		Kind: Filled, Settlement: how, Side: o.side, Outcome: o.outcome, Price: Price(o.price),
		Market: o.market, Wallet: o.wallet, Owner: o.owner, Size: Size(lots) * Lot,
		Remaining: Size(o.lots) * Lot, Fee: Cash(charge), First: o.first, Order: o.id,
	}
}

// swap gives one side of a fill its tokens for its cash, or the other way round.
func (r *reference) swap(o *refOrder, lots, price int64) {
	if o.side == Sell {
		lots = -lots
	}
	r.wallet(o.wallet).cash -= lots * price
	r.wallet(o.wallet).own(o.market)[o.outcome] += lots * int64(Lot)
}

// refReceipt is the answer to a Command's caller.
func refReceipt(c *Command, seq Sequence, now Time, events []Event) Receipt {
	last := events[len(events)-1]
	told := Receipt{
		Sequence: seq, Time: now, Order: c.ID, Market: last.Market, Wallet: last.Wallet}
	switch last.Kind {
	case Rejected:
		told.Reject, told.Args, told.First = last.Reject, last.Args, last.First
		return told
	case Cancelled:
		told.Status, told.Remaining = Canceled, last.Remaining
		return told
	case Split, Merged, Redeemed:
		told.Taking = int64(last.Size)
		return told
	case Placed, Completed:
	default:
		return told
	}
	prices := []Price{}
	for _, e := range events {
		if e.Kind != Filled {
			continue
		}
		own := e.Price
		if e.Outcome != c.Outcome {
			own = PriceOne - own
		}
		prices = append(prices, own)
		cash, size := int64(e.Size)*int64(own)/int64(PriceOne), int64(e.Size)
		if c.Side == Sell {
			cash, size = size, cash
		}
		told.Making, told.Taking, told.Fee = told.Making+cash, told.Taking+size, told.Fee+e.Fee
	}
	told.Trades = uint32(len(slices.Compact(prices)))
	told.Remaining, told.Reason = last.Remaining, last.Reason
	told.Status = Matched
	if last.Kind == Placed {
		told.Status = Live
	} else if last.Reason == SelfTrade || told.Trades == 0 {
		told.Status = Canceled
	}
	return told
}
