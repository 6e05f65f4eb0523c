package engine

// Exchange is all trading state: markets with their books, and the ledger. Apply is the only thing
// that changes it, and one goroutine calls Apply.
type Exchange struct {
	digest uint64
	last   Sequence
	freed  uint32 // first of the order records to be used again, linked by next

	orders    slab[order]
	accounts  slab[account]  // by WalletNo
	positions slab[position] // found through places
	places    table
	markets   []market // by MarketNo; the first is nobody's
	seen      seen
	external  Cash // at most 0: less all collateral that was paid in

	wallets    map[Address]WalletNo
	conditions map[Condition]MarketNo
	tokens     map[Token]MarketNo
	refs       map[OrderID]Sequence
	references []OrderID // the keys of refs, in order

	replayed []Event // scratch of ApplyFrame
}

// NewExchange makes an empty Exchange. The seed only salts the table of order ids, against callers
// who would choose colliding ones; no result depends on it.
func NewExchange(seed uint64) *Exchange { return newExchange(seed, Window) }

// newExchange takes the number of placements to remember, at least 1: tests let it run over.
func newExchange(seed uint64, window uint32) *Exchange {
	x := &Exchange{
		places:     newTable(),
		markets:    make([]market, 1),
		seen:       newSeen(seed, window),
		wallets:    make(map[Address]WalletNo),
		conditions: make(map[Condition]MarketNo),
		tokens:     make(map[Token]MarketNo),
		refs:       make(map[OrderID]Sequence),
	}
	x.digest = x.externalLeaf() + floorLeaf(0)
	return x
}

// Digest is the hash of all state after the last Apply.
func (x *Exchange) Digest() Digest { return Digest(x.digest) }

// Apply carries out one Command, stamped seq and now, and appends what happened to events. It is a
// pure function of the state and its arguments. It keeps nothing of c but a copy of its Listing.
func (x *Exchange) Apply(c *Command, seq Sequence, now Time, events []Event) []Event {
	x.last = seq
	switch c.Kind {
	case Place:
		events = x.place(c, seq, events)
	case Cancel:
		events = x.cancel(c, events)
	case Started:
		events = append(events, Event{Kind: EpochStarted, Order: c.ID})
	case List:
		events = x.list(c, events)
	case Deposit:
		events = x.deposit(c, seq, events)
	case Withdraw:
		events = x.withdraw(c, seq, events)
	case Link:
		events = x.link(c, events)
	default:
		events = refuse(events, c, refusal{reject: RejectType})
	}
	if auditing {
		x.mustAudit()
	}
	return events
}

// refusal is why a Command is refused: what a Rejected Event says.
type refusal struct {
	reject Reject
	args   [3]int64
	first  Sequence
}

// refuse appends the Rejected Event of a Command.
func refuse(events []Event, c *Command, no refusal) []Event {
	return append(events, Event{
		Kind: Rejected, Reject: no.reject, Args: no.args, First: no.first,
		Side: c.Side, Outcome: c.Outcome, Market: c.Market, Wallet: c.Wallet, Owner: c.Owner,
		Order: c.ID,
	})
}

// cancel answers Cancel: the owner takes a resting order out of the book.
func (x *Exchange) cancel(c *Command, events []Event) []Event {
	h, _, _ := x.find(&c.ID, x.seen.tag(&c.ID))
	if h == 0 {
		return refuse(events, c, refusal{reject: RejectNotFound})
	}
	o := x.orders.at(h)
	if o.owner != c.Owner {
		return refuse(events, c, refusal{reject: RejectNotFound})
	}
	return x.drop(h, o, ByOwner, events)
}

// drop cancels a resting order: it leaves the book and its reserve is released.
func (x *Exchange) drop(h uint32, o *order, why Reason, events []Event) []Event {
	events = append(events, Event{
		Kind: Cancelled, Reason: why, Side: o.side, Outcome: o.outcome, Price: o.price,
		Market: o.market, Wallet: o.wallet, Owner: o.owner, Remaining: o.remaining,
		First: o.first, Order: o.id,
	})
	x.markets[o.market].book.unlink(&x.orders, o)
	x.resize(o, 0, 0)
	x.retire(h, o)
	return events
}

// retire gives an order's record back once it is out of its book and reserves nothing.
func (x *Exchange) retire(h uint32, o *order) {
	x.delist(o)
	x.forget(h, o)
	o.next, x.freed = x.freed, h
}
