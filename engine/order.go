package engine

// order is a resting order: two cache lines, the first with all that matching and cancelling
// touch, the second with what only Events and the digest need. Its place in its level's queue is a
// link of the same number.
type order struct {
	remaining Size
	wallet    WalletNo
	owner     WalletNo
	position  uint32 // of wallet in market
	market    MarketNo
	index     uint16 // of the level: price of outcome 0 in ticks
	price     Price  // in the order's own token
	side      Side   // physical: of its own token
	outcome   Outcome
	_         [2]byte
	mineNext  uint32 // neighbours among the position's open orders
	minePrev  uint32
	ring      uint32 // its place among the last placements, while first is above their floor
	key       uint32
	tag       uint32 // of id in the table
	timer     uint32 // its place among the timers, 0 if it has none
	fold      uint64 // digest of what never changes

	id     OrderID
	first  Sequence // that placed it
	rank   uint64   // grows along every queue of the book
	expiry Time     // 0 if it has none
	_      uint64   // so that every order begins a cache line
}

// tell says in an Event which order it is about.
func (o *order) tell(e *Event) {
	e.Side, e.Outcome, e.Price, e.Market = o.side, o.outcome, o.price, o.market
	e.Wallet, e.Owner, e.First = o.wallet, o.owner, o.first
	e.Order = o.id // alone: with others it is copied twice
}

// ladderSide is the side of an order in the ladder of outcome 0: selling B at 1-p is buying A at p.
func ladderSide(s Side, o Outcome) Side { return s ^ Side(o) }

// reserved is what an order of this remaining size locks: collateral behind a BUY, tokens behind a
// SELL, in base units. Sizes are multiples of a Lot, so that it is exact, and of a difference of
// sizes it is the difference. No fee: a resting order is never a taker.
func reserved(side Side, price Price, remaining Size) int64 {
	amount, cost := int64(remaining), int64(Cost(remaining, price))
	if side == Buy {
		amount = cost
	}
	return amount
}

// enlist adds an order to the lists of its position and wallet.
func (x *Exchange) enlist(h uint32, o *order, a *account, p *position) {
	o.mineNext, o.minePrev = p.orders, 0
	if p.orders != 0 {
		x.orders.at(p.orders).minePrev = h
	} else {
		p.next, p.prev = a.positions, 0
		if a.positions != 0 {
			x.positions.at(a.positions).prev = o.position
		}
		a.positions = o.position
	}
	p.orders = h
	a.open++
}

// delist takes it off again. A position without open orders leaves its wallet's list. Whether the
// order has neighbours cannot be foreseen: it is not asked, and nobody, who is number 0, may be
// written to.
func (x *Exchange) delist(o *order) {
	a, p := x.accounts.at(uint32(o.wallet)), x.positions.at(o.position)
	a.open--
	next, prev, head := o.mineNext, o.minePrev, p.orders
	x.orders.at(next).minePrev = prev
	x.orders.at(prev).mineNext = next
	if prev == 0 {
		head = next
	}
	if p.orders = head; head != 0 {
		return
	}
	if p.next != 0 {
		x.positions.at(p.next).prev = p.prev
	}
	if p.prev != 0 {
		x.positions.at(p.prev).next = p.next
	} else {
		a.positions = p.next
	}
}
