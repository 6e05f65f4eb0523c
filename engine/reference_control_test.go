package engine

import (
	"math/big"
	"slices"
)

// The Commands of operators and wallets other than orders.

// fault returns what is wrong with the rules of a new market.
func fault(l *Listing) Reject {
	switch {
	case l.Tokens[0] == l.Tokens[1]:
		return RejectListing
	case !slices.Contains([]Price{1000, 100, 50, 25, 10, 1}, l.Tick):
		return RejectRules
	case l.MinSize < 0 || l.MinSize > MaxOrder || l.MinBuy < 0 || l.MinBuy > MaxAmount:
		return RejectRules
	case l.Fee.Rate > 9999 || l.Fee.Exponent > 3:
		return RejectRules
	}
	return Accepted
}

func (r *reference) list(c *Command) []Event {
	l := c.Listing
	if l == nil {
		return refused(c, RejectListing)
	}
	if why := fault(l); why != Accepted {
		return refused(c, why)
	}
	no := 1 + slices.IndexFunc(r.markets, func(m *refMarket) bool {
		return m.listing.Condition == l.Condition
	})
	if no == 0 {
		for _, m := range r.markets {
			if slices.Contains(m.listing.Tokens[:], l.Tokens[0]) ||
				slices.Contains(m.listing.Tokens[:], l.Tokens[1]) {
				return refused(c, RejectListing)
			}
		}
		r.markets = append(r.markets, &refMarket{listing: *l, state: Unopened})
		no = len(r.markets)
	}
	m, same := r.markets[no-1], *l
	same.Open = m.listing.Open
	if same != m.listing {
		return refused(c, RejectListing)
	}
	if l.Open && m.state == Unopened && !m.stated {
		m.state = Open
	}
	return []Event{{Kind: Listed, State: m.state, Market: MarketNo(no), Order: c.ID}}
}

// adjust gives a market other rules: a tick that fits all that rests, and what is no rule stays.
func (r *reference) adjust(c *Command) []Event {
	m, l := r.market(c.Market), c.Listing
	switch {
	case m == nil:
		return refused(c, RejectMarket)
	case l == nil || l.Condition != m.listing.Condition || l.Tokens != m.listing.Tokens ||
		l.Group != m.listing.Group || l.NegRisk != m.listing.NegRisk:
		return refused(c, RejectListing)
	case m.state == Settled:
		return refused(c, RejectState)
	case fault(l) != Accepted:
		return refused(c, fault(l))
	}
	for _, o := range r.orders {
		if o.market == c.Market && o.price%int64(l.Tick) != 0 {
			return refused(c, RejectRules)
		}
	}
	m.listing = *l
	return []Event{{Kind: Adjusted, Market: c.Market, Order: c.ID}}
}

func (r *reference) setState(c *Command) []Event {
	m := r.market(c.Market)
	if m == nil {
		return refused(c, RejectMarket)
	}
	from := map[MarketState][]MarketState{
		Unopened: {Unopened, Open, Paused},
		Open:     {Unopened, Open, Paused, Closed},
		Paused:   {Unopened, Open, Paused},
		Closed:   {Unopened, Open, Paused, Closed},
	}
	if !slices.Contains(from[c.State], m.state) {
		return refused(c, RejectState)
	}
	var events []Event
	if c.State == Closed {
		events = r.sweep(c.Market, MarketClosed)
	}
	m.state, m.stated = c.State, true
	return append(events,
		Event{Kind: StateChanged, State: c.State, Market: c.Market, Order: c.ID})
}

func (r *reference) resolve(c *Command, seq Sequence) []Event {
	m := r.market(c.Market)
	if first, known := r.names[c.ID]; known {
		return before(c, RejectDuplicate, first)
	}
	switch {
	case m == nil:
		return refused(c, RejectMarket)
	case c.Price > PriceOne:
		return refused(c, RejectPayout)
	case m.state == Settled && m.payout != int64(c.Price):
		return refused(c, RejectPayout)
	}
	events := r.sweep(c.Market, MarketResolved)
	m.state, m.payout = Settled, int64(c.Price)
	r.name(c, seq)
	return append(events,
		Event{Kind: Resolved, Market: c.Market, Price: c.Price, Order: c.ID})
}

// name uses up an operator's reference for ever.
func (r *reference) name(c *Command, seq Sequence) {
	if c.ID != (OrderID{}) {
		r.names[c.ID] = seq
	}
}

func (r *reference) link(c *Command) []Event {
	if c.Address == (Address{}) || c.Holder == (Address{}) {
		return refused(c, RejectWallet)
	}
	if w := r.wallet(r.numbered(c.Address)); w != nil && w.owner != 0 &&
		w.owner != r.numbered(c.Holder) {
		return refused(c, RejectLink)
	}
	no := r.number(c.Address)
	r.wallet(no).owner = r.number(c.Holder)
	return []Event{{Kind: Linked, Wallet: no, Owner: r.wallet(no).owner, Order: c.ID}}
}

func (r *reference) setMode(c *Command) []Event {
	if c.Mode > CancelOnly {
		return refused(c, RejectType)
	}
	w, m := r.wallet(c.Wallet), r.market(c.Market)
	switch {
	case c.Wallet != 0 && w == nil:
		return refused(c, RejectWallet)
	case c.Wallet != 0:
		w.mode = c.Mode
	case c.Market != 0 && m == nil:
		return refused(c, RejectMarket)
	case c.Market != 0:
		m.mode = c.Mode
	default:
		r.mode = c.Mode
	}
	return []Event{{
		Kind: ModeSet, Mode: c.Mode, Market: c.Market, Wallet: c.Wallet, Order: c.ID}}
}

func (r *reference) setPrevention(c *Command) []Event {
	w := r.wallet(c.Wallet)
	if w == nil {
		return refused(c, RejectWallet)
	}
	if c.Prevention > AllowSelfTrade {
		return refused(c, RejectType)
	}
	w.prevention = c.Prevention
	return []Event{{
		Kind: PreventionSet, Prevention: c.Prevention, Wallet: c.Wallet, Order: c.ID}}
}

func (r *reference) arm(c *Command) []Event {
	if r.wallet(c.Owner) == nil {
		return refused(c, RejectWallet)
	}
	if c.Expiry < 0 {
		return refused(c, RejectExpiry)
	}
	k := refKey{owner: c.Owner, no: c.Key}
	others := slices.DeleteFunc(slices.Clone(r.armed), func(o refKey) bool { return o == k })
	if c.Expiry != 0 {
		same := func(o refKey) bool { return o.owner != k.owner }
		if len(slices.DeleteFunc(slices.Clone(others), same)) >= 64 {
			return refused(c, RejectKeys, 64)
		}
		others = append(others, k)
	}
	r.armed = others
	return []Event{{
		Kind: Armed, Owner: c.Owner, Args: [3]int64{int64(c.Key), int64(c.Expiry)}, Order: c.ID}}
}

// setKey records a key for ever. The number of valid keys of each class is bounded, and the number
// of all keys.
func (r *reference) setKey(c *Command) []Event {
	if r.wallet(c.Owner) == nil {
		return refused(c, RejectWallet)
	}
	limits := []int{TradingKey: 64, ReadOnlyKey: 16, BuilderKey: 16}
	if int(c.Class) >= len(limits) {
		return refused(c, RejectType)
	}
	k := refKey{c.Owner, c.Key, c.Class}
	of := func(all []refKey) (n int) {
		for _, other := range all {
			if other.owner == k.owner && other.class == k.class {
				n++
			}
		}
		return n
	}
	known, dead := slices.Contains(r.keys, k), slices.Contains(r.dead, k)
	switch {
	case c.Revoke && !known && of(r.dead) >= 1024, !c.Revoke && !known && of(r.keys) >= 1024:
		return refused(c, RejectKeyRecords, 1024)
	case !c.Revoke && dead && c.Class != TradingKey:
		return refused(c, RejectKeyGone)
	case !c.Revoke && (dead || !known) && of(r.keys)-of(r.dead) >= limits[c.Class]:
		return refused(c, RejectKeys, int64(limits[c.Class]))
	case !known:
		r.keys = append(r.keys, k)
	}
	if c.Revoke && !dead {
		r.dead = append(r.dead, k)
	} else if !c.Revoke && dead {
		r.dead = slices.DeleteFunc(r.dead, func(other refKey) bool { return other == k })
	}
	e := Event{Kind: KeySet, Owner: c.Owner, Order: c.ID,
		Args: [3]int64{int64(c.Key), int64(c.Class), 0}}
	if c.Revoke {
		e.Args[2] = 1
	}
	return []Event{e}
}

// transfer applies an operator's Deposit, Withdraw or collection of fees.
func (r *reference) transfer(c *Command, seq Sequence) []Event {
	if first, known := r.names[c.ID]; known {
		return before(c, RejectDuplicate, first)
	}
	amount, m := int64(c.Cash), r.market(c.Market)
	if c.Kind != Collect && c.Market != 0 {
		if m == nil || c.Outcome > 1 {
			return refused(c, RejectMarket)
		}
		amount = int64(c.Size)
	}
	if c.Address == (Address{}) {
		return refused(c, RejectWallet)
	}
	if amount < 1 || amount > MaxAmount {
		return refused(c, RejectAmount)
	}
	e := Event{Market: c.Market, Outcome: c.Outcome, Size: Size(amount), Order: c.ID}
	var events []Event
	switch c.Kind {
	case Deposit:
		events = r.deposit(c, m, amount)
		e.Kind = Deposited
	case Withdraw:
		events = r.withdraw(c, m, amount)
		e.Kind = Withdrawn
	default:
		events = r.collect(c, amount)
		e.Kind, e.Market, e.Outcome = Collected, 0, 0
	}
	if events != nil {
		return events
	}
	r.name(c, seq)
	e.Wallet = r.numbered(c.Address)
	return []Event{e}
}

// deposit brings in collateral or a token. A token that had left comes back. Any other brings the
// 1.00 that backs it, and its complement stays outside.
func (r *reference) deposit(c *Command, m *refMarket, amount int64) []Event {
	back := int64(0)
	if c.Market != 0 {
		back = min(amount, m.left[c.Outcome])
	}
	made := amount - back
	switch {
	case r.outside+made > MaxSupply:
		return refused(c, RejectAmount)
	case c.Market != 0 && m.state == Settled && made > 0:
		return refused(c, RejectState)
	}
	r.outside += made
	w := r.wallet(r.number(c.Address))
	if c.Market == 0 {
		w.cash += amount
		return nil
	}
	m.pairs(made)
	w.own(c.Market)[c.Outcome] += amount
	m.left[c.Outcome] -= back
	m.left[c.Outcome.Other()] += made
	return nil
}

// withdraw takes from the free balance.
func (r *reference) withdraw(c *Command, m *refMarket, amount int64) []Event {
	no := r.numbered(c.Address)
	w := r.wallet(no)
	if w == nil {
		return refused(c, RejectWallet)
	}
	total, held := w.cash, r.held(no)
	if c.Market != 0 {
		total, held = w.own(c.Market)[c.Outcome], r.heldTokens(no, c.Market, c.Outcome)
	}
	if total-held < amount {
		return refused(c, RejectBalance, total, held, amount)
	}
	if c.Market == 0 {
		r.outside -= amount
		w.cash -= amount
		return nil
	}
	w.own(c.Market)[c.Outcome] -= amount
	m.left[c.Outcome] += amount
	return nil
}

// collect takes from the fees that takers paid.
func (r *reference) collect(c *Command, amount int64) []Event {
	if r.fees < amount {
		return refused(c, RejectBalance, r.fees, 0, amount)
	}
	r.fees -= amount
	r.wallet(r.number(c.Address)).cash += amount
	return nil
}

// pairs makes that many pairs of tokens from collateral, or unmakes them if the number is negative.
func (m *refMarket) pairs(amount int64) {
	m.vault += amount
	m.issued[0] += amount
	m.issued[1] += amount
}

// request is what a wallet asks for itself: it counts once within the window of requests, or once
// for good if the index was searched for it.
func (r *reference) request(c *Command, seq Sequence, now Time) []Event {
	w, m := r.wallet(c.Wallet), r.market(c.Market)
	switch {
	case w == nil:
		return refused(c, RejectWallet)
	case c.Owner != c.Wallet && (c.Owner == 0 || c.Owner != w.owner):
		return refused(c, RejectLink)
	}
	for i, q := range slices.Backward(r.requests) {
		if q.id == c.ID && (now < q.at+RequestWindow || c.Seen != 0 && i >= r.forgotten) {
			return before(c, RejectDuplicate, q.first, q.amount)
		}
	}
	if r.forgotten > 0 && c.Seen != 0 && c.Seen+1 < r.requests[r.forgotten].first {
		return before(c, RejectRecheck, r.requests[r.forgotten].first-1)
	}
	switch {
	case m == nil:
		return refused(c, RejectMarket)
	case (m.state == Settled) != (c.Kind == RedeemTokens):
		return refused(c, RejectState)
	case c.Kind != RedeemTokens && (c.Size < 1 || c.Size > MaxAmount):
		return refused(c, RejectAmount)
	}
	var events []Event
	e := Event{Market: c.Market, Wallet: c.Wallet, Size: c.Size, Order: c.ID}
	switch c.Kind {
	case SplitTokens:
		e.Kind, events = Split, r.split(c, w, m)
	case MergeTokens:
		e.Kind, events = Merged, r.merge(c, w, m)
	default:
		e.Kind, events = Redeemed, r.redeem(c, &e)
	}
	if events != nil {
		return events
	}
	if c.ID != (OrderID{}) {
		for n := 0; n < requestsLeave && r.forgotten < len(r.requests) &&
			now >= r.requests[r.forgotten].at+RequestWindow; n++ {
			r.forgotten++
		}
		r.requests = append(r.requests, refRequest{c.ID, seq, now, int64(e.Size)})
	}
	return []Event{e}
}

func (r *reference) split(c *Command, w *refWallet, m *refMarket) []Event {
	amount := int64(c.Size)
	if held := r.held(c.Wallet); w.cash-held < amount {
		return refused(c, RejectBalance, w.cash, held, amount)
	}
	w.cash -= amount
	m.pairs(amount)
	w.own(c.Market)[0] += amount
	w.own(c.Market)[1] += amount
	return nil
}

func (r *reference) merge(c *Command, w *refWallet, m *refMarket) []Event {
	amount, own := int64(c.Size), w.own(c.Market)
	for o := range own {
		if held := r.heldTokens(c.Wallet, c.Market, Outcome(o)); own[o]-held < amount {
			return refused(c, RejectBalance, own[o], held, amount)
		}
	}
	w.cash += amount
	m.pairs(-amount)
	own[0] -= amount
	own[1] -= amount
	return nil
}

// redeem burns all tokens that a wallet holds of a resolved market and pays for them, rounded down
// once.
func (r *reference) redeem(c *Command, e *Event) []Event {
	w, m := r.wallet(c.Wallet), r.market(c.Market)
	own := w.own(c.Market)
	if *own == [2]int64{} {
		return refused(c, RejectNothing)
	}
	worth := new(big.Int).Mul(big.NewInt(own[0]), big.NewInt(m.payout))
	worth.Add(worth, new(big.Int).Mul(big.NewInt(own[1]), big.NewInt(int64(PriceOne)-m.payout)))
	paid := worth.Quo(worth, big.NewInt(int64(PriceOne))).Int64()
	e.Size, e.Args = Size(paid), [3]int64{own[0], own[1]}
	w.cash += paid
	m.vault -= paid
	m.issued[0] -= own[0]
	m.issued[1] -= own[1]
	*own = [2]int64{}
	return nil
}
