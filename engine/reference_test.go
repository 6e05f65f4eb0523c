package engine

import (
	"cmp"
	"slices"
)

// A reference is a second exchange, written from the rules and not from the code: it searches lists
// from end to end, adds up sums anew each time, and uses big numbers. It keeps no ladder, no
// reserve, no counter and no digest. It is slow, but short enough to compare with the rules.
type reference struct {
	version   int // 0: Oldest
	window    int // placements to remember
	wallets   []*refWallet
	markets   []*refMarket
	orders    []refOrder // that rest, oldest first
	bound     []refBinding
	names     map[OrderID]Sequence // operators' references
	requests  []refRequest
	forgotten int      // how many of the requests, the oldest ones, are left to the index
	keys      []refKey // that were ever on record
	dead      []refKey // those of them that are revoked
	armed     []refKey
	mode      Mode
	fees      int64
	outside   int64 // collateral that came in, less what went out
}

type refWallet struct {
	address    Address
	owner      WalletNo
	mode       Mode
	prevention Prevention
	cash       int64
	tokens     map[MarketNo]*[2]int64
}

type refMarket struct {
	listing Listing
	state   MarketState
	stated  bool // by an operator
	mode    Mode
	payout  int64
	vault   int64
	issued  [2]int64 // tokens in being, those that left the exchange included
	left    [2]int64 // tokens that left the exchange, or never came
}

type refOrder struct {
	id            OrderID
	first         Sequence
	wallet, owner WalletNo
	key           uint32
	market        MarketNo
	side          Side
	outcome       Outcome
	price         int64 // in its own token
	lots          int64
	expiry        Time
}

type refBinding struct {
	id    OrderID
	first Sequence
}

type refRequest struct {
	id     OrderID
	first  Sequence
	at     Time
	amount int64
}

type refKey struct {
	owner WalletNo
	no    uint32
	class KeyClass
}

func newReference(window int) *reference {
	return &reference{window: window, names: map[OrderID]Sequence{}}
}

// apply carries out one Command.
func (r *reference) apply(c *Command, seq Sequence, now Time) []Event {
	switch c.Kind {
	case Place:
		return r.place(c, seq, now)
	case Cancel:
		return r.cancel(c)
	case CancelAll:
		return r.cancelAll(c)
	case Advance:
		return r.advance(c, now)
	case SplitTokens, MergeTokens, RedeemTokens:
		return r.request(c, seq, now)
	case Started:
		return []Event{{Kind: EpochStarted, Order: c.ID}}
	case List:
		return r.list(c)
	case Adjust:
		return r.adjust(c)
	case SetState:
		return r.setState(c)
	case Resolve:
		return r.resolve(c, seq)
	case Link:
		return r.link(c)
	case SetMode:
		return r.setMode(c)
	case SetPrevention:
		return r.setPrevention(c)
	case Arm:
		return r.arm(c)
	case SetKey:
		return r.setKey(c)
	case Deposit, Withdraw, Collect:
		return r.transfer(c, seq)
	case Raise:
		if c.Seen > Version || int(c.Seen) < max(r.version, Oldest) {
			break
		}
		r.version = int(c.Seen) // other rules, which make no difference here: only ranks show them
		return []Event{{Kind: Raised, Args: [3]int64{int64(c.Seen)}, Order: c.ID}}
	}
	return refused(c, RejectType)
}

// refused is the answer to a Command that changes nothing.
func refused(c *Command, why Reject, args ...int64) []Event {
	e := Event{
		Kind: Rejected, Reject: why, Side: c.Side, Outcome: c.Outcome, Market: c.Market,
		Wallet: c.Wallet, Owner: c.Owner, Order: c.ID,
	}
	copy(e.Args[:], args)
	return []Event{e}
}

// before is the answer to a Command whose name was used already.
func before(c *Command, why Reject, first Sequence, args ...int64) []Event {
	events := refused(c, why, args...)
	events[0].First = first
	return events
}

func (r *reference) wallet(no WalletNo) *refWallet {
	if no == 0 || int(no) > len(r.wallets) {
		return nil
	}
	return r.wallets[no-1]
}

func (r *reference) market(no MarketNo) *refMarket {
	if no == 0 || int(no) > len(r.markets) {
		return nil
	}
	return r.markets[no-1]
}

// number is the wallet of an address: the next number if it is new.
func (r *reference) number(a Address) WalletNo {
	if no := r.numbered(a); no != 0 {
		return no
	}
	r.wallets = append(r.wallets, &refWallet{address: a, tokens: map[MarketNo]*[2]int64{}})
	return WalletNo(len(r.wallets))
}

func (r *reference) numbered(a Address) WalletNo {
	return WalletNo(1 + slices.IndexFunc(r.wallets, func(w *refWallet) bool {
		return w.address == a
	}))
}

// own are a wallet's tokens of a market.
func (w *refWallet) own(no MarketNo) *[2]int64 {
	if w.tokens[no] == nil {
		w.tokens[no] = new([2]int64)
	}
	return w.tokens[no]
}

// held is what a wallet's resting orders lock of collateral: what they may still cost.
func (r *reference) held(w WalletNo) (sum int64) {
	for _, o := range r.orders {
		if o.wallet == w && o.side == Buy {
			sum += o.lots * o.price
		}
	}
	return sum
}

// heldTokens is what they lock of a token: what they may still sell.
func (r *reference) heldTokens(w WalletNo, no MarketNo, out Outcome) (sum int64) {
	for _, o := range r.orders {
		if o.wallet == w && o.side == Sell && o.market == no && o.outcome == out {
			sum += o.lots * int64(Lot)
		}
	}
	return sum
}

// free is the collateral that a wallet can still spend.
func (r *reference) free(w WalletNo) int64 { return r.wallet(w).cash - r.held(w) }

// inA is the side and price of an order in outcome 0: selling one token at p is buying the other at
// 1-p.
func (o *refOrder) inA() (Side, int64) {
	if o.outcome == 0 {
		return o.side, o.price
	}
	return o.side.Other(), int64(PriceOne) - o.price
}

// rest adds an order to those that rest.
func (r *reference) rest(o refOrder) {
	r.orders = append(r.orders, o)
}

// take removes a resting order.
func (r *reference) take(id OrderID) {
	i := slices.IndexFunc(r.orders, func(o refOrder) bool { return o.id == id })
	r.orders = slices.Delete(r.orders, i, i+1)
}

// drop cancels a resting order.
func (r *reference) drop(o refOrder, why Reason) Event {
	r.take(o.id)
	return Event{
		Kind: Cancelled, Reason: why, Side: o.side, Outcome: o.outcome, Price: Price(o.price),
		Market: o.market, Wallet: o.wallet, Owner: o.owner, Remaining: Size(o.lots) * Lot,
		First: o.first, Order: o.id,
	}
}

// dropAll cancels resting orders, and says so in the order given.
func (r *reference) dropAll(orders []refOrder, why Reason) (events []Event) {
	for _, o := range orders {
		events = append(events, r.drop(o, why))
	}
	return events
}

// some are the resting orders that pass, oldest first.
func (r *reference) some(pass func(o *refOrder) bool) (orders []refOrder) {
	for i := range r.orders {
		if pass(&r.orders[i]) {
			orders = append(orders, r.orders[i])
		}
	}
	return orders
}

// cancel cancels an order for its owner or for an operator.
func (r *reference) cancel(c *Command) []Event {
	operator := c.Owner == 0 && c.Reason == ByOperator
	found := r.some(func(o *refOrder) bool {
		return o.id == c.ID && (operator || o.owner == c.Owner)
	})
	if len(found) == 0 {
		return refused(c, RejectNotFound)
	}
	if operator {
		return r.dropAll(found, ByOperator)
	}
	return r.dropAll(found, ByOwner)
}

// cancelAll cancels a wallet's orders, market after market, the newest first.
func (r *reference) cancelAll(c *Command) []Event {
	w := r.wallet(c.Wallet)
	switch {
	case w == nil:
		return refused(c, RejectWallet)
	case c.Reason != ByOwner && c.Reason != ByOperator && c.Reason != Timeout, c.Only > 3:
		return refused(c, RejectType)
	case c.Owner == 0 && c.Reason != ByOperator:
		return refused(c, RejectLink)
	case c.Market != 0 && r.market(c.Market) == nil:
		return refused(c, RejectMarket)
	case c.Only&OnlyToken != 0 && (c.Market == 0 || c.Outcome > 1):
		return refused(c, RejectMarket)
	}
	meant := r.some(func(o *refOrder) bool {
		return o.wallet == c.Wallet && (c.Market == 0 || c.Market == o.market) &&
			(c.Owner == 0 || c.Owner == o.owner) && (c.Only&OnlyKey == 0 || c.Key == o.key) &&
			(c.Only&OnlyToken == 0 || c.Outcome == o.outcome)
	})
	slices.Reverse(meant)
	slices.SortStableFunc(meant, func(a, b refOrder) int { return cmp.Compare(a.market, b.market) })
	return append(r.dropAll(meant, c.Reason), Event{
		Kind: Swept, Market: c.Market, Wallet: c.Wallet, Owner: c.Owner, Size: Size(len(meant)),
		Order: c.ID,
	})
}

// advance cancels expired orders up to AdvanceOrders: by expiry, then by market, the oldest first.
func (r *reference) advance(c *Command, now Time) []Event {
	due := r.some(func(o *refOrder) bool { return o.expiry != 0 && o.expiry <= now })
	slices.SortFunc(due, func(a, b refOrder) int {
		return cmp.Or(cmp.Compare(a.expiry, b.expiry), cmp.Compare(a.market, b.market),
			cmp.Compare(a.first, b.first))
	})
	due = due[:min(len(due), AdvanceOrders)]
	return append(r.dropAll(due, Expired),
		Event{Kind: Advanced, Size: Size(len(due)), Order: c.ID})
}

// sweep cancels all orders of a market: the bids best first, then the asks best first, at one price
// the oldest first.
func (r *reference) sweep(no MarketNo, why Reason) []Event {
	all := r.some(func(o *refOrder) bool { return o.market == no })
	slices.SortStableFunc(all, func(a, b refOrder) int {
		side, price := a.inA()
		other, than := b.inA()
		if side == Buy {
			price, than = than, price
		}
		return cmp.Or(cmp.Compare(side, other), cmp.Compare(price, than))
	})
	return r.dropAll(all, why)
}
