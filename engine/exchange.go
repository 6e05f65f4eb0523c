package engine

// Exchange is all trading state: markets with their books, and the ledger. Apply is the only thing
// that changes it, and one goroutine calls Apply.
type Exchange struct {
	digest uint64
	last   Sequence

	orders    slab[order]    // 0 is nobody's: its neighbours are written to, and mean nothing
	queues    queues         // of the orders, by the same numbers
	accounts  slab[account]  // by WalletNo
	positions slab[position] // found through places
	places    table
	markets   slab[market] // by MarketNo
	seen      seen
	external  Cash // at most 0: less all collateral that was paid in
	fees      Cash // the fee account
	mode      Mode // of all markets
	timers    timers

	conditions table // MarketNo by condition
	tokens     table // MarketNo by token
	wallets    map[Address]WalletNo
	refs       map[OrderID]Sequence
	references slab[OrderID] // the keys of refs, in order
	beats      beats
	keys       keyring
	requests   requests

	replayed []Event  // scratch of ApplyFrame
	active   []uint64 // scratch of CancelAll
	hints    hints    // from Touch to Apply
}

// NewExchange makes an empty Exchange. The seed only salts the table of order ids, against callers
// who would choose colliding ones; no result depends on it.
func NewExchange(seed uint64) *Exchange { return newExchange(seed, Window) }

// newExchange takes the number of placements to remember, at least 1: tests let it run over.
func newExchange(seed uint64, window uint32) *Exchange {
	x := &Exchange{
		places:     newTable(),
		seen:       newSeen(seed, window),
		wallets:    make(map[Address]WalletNo),
		conditions: newTable(),
		tokens:     newTable(),
		refs:       make(map[OrderID]Sequence),
		beats:      newBeats(),
		keys:       newKeyring(),
		requests:   requests{table: newTable()},
	}
	x.digest = x.externalLeaf() + x.feesLeaf() + floorLeaf(0)
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
		events = x.place(c, seq, now, events)
	case Cancel:
		events = x.cancel(c, events)
	case CancelAll:
		events = x.cancelAll(c, events)
	case Advance:
		events = x.advance(c, now, events)
	case SplitTokens:
		events = x.split(c, seq, now, events)
	case MergeTokens:
		events = x.merge(c, seq, now, events)
	case RedeemTokens:
		events = x.redeem(c, seq, now, events)
	default:
		events = x.operate(c, seq, events)
	}
	if auditing {
		x.mustAudit()
	}
	return events
}

// operate carries out what operators ask for.
func (x *Exchange) operate(c *Command, seq Sequence, events []Event) []Event {
	switch c.Kind {
	case Started:
		return append(events, Event{Kind: EpochStarted, Order: c.ID})
	case List:
		return x.list(c, events)
	case Deposit:
		return x.deposit(c, seq, events)
	case Withdraw:
		return x.withdraw(c, seq, events)
	case Link:
		return x.link(c, events)
	case SetState:
		return x.setState(c, events)
	case Adjust:
		return x.adjust(c, events)
	case Resolve:
		return x.resolve(c, seq, events)
	case SetMode:
		return x.setMode(c, events)
	case SetPrevention:
		return x.setPrevention(c, events)
	case Arm:
		return x.watch(c, events)
	case Collect:
		return x.collect(c, seq, events)
	case SetKey:
		return x.setKey(c, events)
	}
	return refuse(events, c, refusal{reject: RejectType})
}

// refusal is why a Command is refused: what a Rejected Event says.
type refusal struct {
	reject Reject
	args   [3]int64
	first  Sequence
}

// refuse appends the Rejected Event of a Command. Inlined, it would fill the stack of those who
// seldom refuse anything.
//
//go:noinline
func refuse(events []Event, c *Command, no refusal) []Event {
	return append(events, Event{
		Kind: Rejected, Reject: no.reject, Args: no.args, First: no.first,
		Side: c.Side, Outcome: c.Outcome, Market: c.Market, Wallet: c.Wallet, Owner: c.Owner,
		Order: c.ID,
	})
}

// cancel answers Cancel: the owner, or an operator, takes a resting order out of the book.
func (x *Exchange) cancel(c *Command, events []Event) []Event {
	h := x.hints.take()
	if !x.rests(h, &c.ID) {
		h, _, _ = x.find(&c.ID, x.seen.tag(&c.ID))
	}
	if h == 0 {
		return refuse(events, c, refusal{reject: RejectNotFound})
	}
	o := x.orders.at(h)
	switch {
	case c.Owner == 0 && c.Reason == ByOperator:
		return x.drop(h, o, ByOperator, events)
	case o.owner != c.Owner:
		return refuse(events, c, refusal{reject: RejectNotFound})
	}
	return x.drop(h, o, ByOwner, events)
}

// drop cancels a resting order: it leaves the book and its reserve is released.
func (x *Exchange) drop(h uint32, o *order, why Reason, events []Event) []Event {
	events, e := another(events)
	e.Kind, e.Reason, e.Remaining = Cancelled, why, o.remaining
	o.tell(e)
	x.markets.at(uint32(o.market)).book.remove(h, uint32(o.index), o.remaining)
	x.resize(o, 0, 0)
	x.retire(h, o)
	return events
}

// retire gives an order's record back once it is out of its book and reserves nothing.
func (x *Exchange) retire(h uint32, o *order) {
	if o.timer != 0 {
		x.disarm(o)
	}
	x.delist(o)
	x.forget(h, o)
}
