package engine

// order is a resting order: two cache lines. Only Events and the Digest need the second.
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
	ring      uint32 // the number of its placement, while first is above the floor
	key       uint32
	tag       uint32 // of id in the table
	timer     uint32 // its index in the heap of timers, 0 if it has none
	fold      uint64 // the unchanging part of its leaf

	id     OrderID
	first  Sequence // of the Place
	rank   uint64   // grows along every queue of the book
	expiry Time     // 0 if it has none
	_      uint64   // so that every order begins a cache line
}

func (o *order) tell(e *Event) {
	e.Side, e.Outcome, e.Price, e.Market = o.side, o.outcome, o.price, o.market
	e.Wallet, e.Owner, e.First = o.wallet, o.owner, o.first
	e.Order = o.id // on its own: see Exchange.rest
}

// ladderSide returns an order's side in prices of outcome 0: selling B at 1-p is buying A at p.
func ladderSide(s Side, o Outcome) Side { return s ^ Side(o) }

// reserved returns what an order with this remaining size locks: collateral for a BUY, tokens for a
// SELL, in base units. It is exact for multiples of a Lot, so additive in the size.
func reserved(side Side, price Price, remaining Size) int64 {
	amount, cost := int64(remaining), int64(Cost(remaining, price))
	if side == Buy {
		amount = cost
	}
	return amount
}

// enlist adds an order to the lists of its wallet, and to the timers if the order expires.
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
	if o.expiry != 0 {
		x.timers.arm(&x.orders, h, o)
	}
}

// delist removes an order from the lists. The ends write to number 0, which belongs to no order.
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
