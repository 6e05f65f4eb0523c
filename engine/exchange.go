package engine

// Exchange is all trading state. One goroutine calls its methods, and only Apply changes it. Two
// invariants hold between two calls of Apply:
//
//  1. Every asset sums to zero, and what an account holds back is what its open orders reserve.
//  2. No book is crossed, and the Digest is the sum of the leaves of everything in the state.
//
// A Place goes through
//
//	identify; find the id; admit                            // refused: nothing has changed
//	while a resting order is within the limit { fill it }   // at that order's price
//	settle what the fills moved; rest the remainder; remember the id
//
// Too slow: one Command after the other, each waiting for every line of memory that it reaches.
// Touch fetches the lines of 16 Commands at once and made Apply 1.5 times as fast (DESIGN.md).
type Exchange struct {
	last    Sequence
	version uint16 // of the rules in force

	orders slab[order] // record 0 belongs to no order: its links may be written and mean nothing
	queues Queues      // of the orders, by the same numbers
	ledger
	markets markets
	seen    seen
	mode    Mode // of all markets
	timers  timers

	beats    beats
	keys     keyring
	requests requests

	replayed []Event  // scratch of ApplyFrame
	active   []uint64 // scratch of CancelAll
	hints    hints    // from Touch to Apply
}

// NewExchange makes an empty Exchange. The seed salts its tables of ids; no result depends on it.
func NewExchange(seed uint64) *Exchange { return newExchange(seed, Window) }

// newExchange is NewExchange with the number of placements to remember, at least 1.
func newExchange(seed uint64, window uint32) *Exchange {
	salt := newSalt(seed)
	x := &Exchange{
		version: Oldest,
		ledger: ledger{wallets: make(map[Address]WalletNo), index: newTable(),
			refs: make(map[OrderID]Sequence)},
		markets:  markets{conditions: newTable(), tokens: newTable(), salt: salt},
		seen:     seen{table: newTable(), window: window, salt: salt},
		beats:    make(beats),
		keys:     keyring{revoked: make(map[keyRecord]bool), counts: make(map[keyRecord]keyCount)},
		requests: requests{salt: salt, table: newTable()},
	}
	x.digest = x.externalLeaf() + x.feesLeaf() + floorLeaf(0) + versionLeaf(Oldest)
	return x
}

// Digest returns the hash of all state after the last Apply.
func (x *Exchange) Digest() Digest { return Digest(x.digest) }

// Version returns the version of the rules in force.
func (x *Exchange) Version() uint16 { return x.version }

// Apply carries out one Command, stamped seq and now, and appends what happened to events. It is a
// pure function of the state and its arguments. It keeps no pointer into c.
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
	case SplitTokens, MergeTokens:
		events = x.pair(c, seq, now, events)
	case RedeemTokens:
		events = x.redeem(c, seq, now, events)
	default:
		events = x.operate(c, seq, events)
	}
	if auditing {
		mustAudit(x)
	}
	return events
}

// Forget takes the last Sequence back: its Command has changed nothing, and is in no frame. Call it
// at most once after an Apply.
func (x *Exchange) Forget() { x.last-- }

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
	case Raise: // the version may be in force already, as after Load of an earlier state
		if c.Seen < Sequence(x.version) || c.Seen > Version {
			break
		}
		x.digest += versionLeaf(uint16(c.Seen)) - versionLeaf(x.version)
		x.version = uint16(c.Seen)
		return append(events, Event{Kind: Raised, Args: [3]int64{int64(c.Seen)}, Order: c.ID})
	}
	return refuse(events, c, RejectType)
}

// refuse appends the Rejected Event of a Command. Inlined, it would enlarge its callers' stacks.
//
//go:noinline
func refuse(events []Event, c *Command, why Reject, args ...int64) []Event {
	e := Event{Kind: Rejected, Reject: why, Side: c.Side, Outcome: c.Outcome, Market: c.Market,
		Wallet: c.Wallet, Owner: c.Owner, Order: c.ID}
	copy(e.Args[:], args)
	return append(events, e)
}

// refuseSince is refuse for a Reject that names a Sequence.
//
//go:noinline
func refuseSince(events []Event, c *Command, why Reject, first Sequence) []Event {
	events = refuse(events, c, why)
	events[len(events)-1].First = first
	return events
}

func (x *Exchange) cancel(c *Command, events []Event) []Event {
	h, o := x.seen.resting(&x.orders, &c.ID, x.hints.pop())
	if h != 0 && c.Owner == 0 && c.Reason == ByOperator {
		return x.drop(h, o, ByOperator, events)
	}
	if h == 0 || o.owner != c.Owner {
		return refuse(events, c, RejectNotFound)
	}
	return x.drop(h, o, ByOwner, events)
}

// drop cancels a resting order: the order leaves the book, and its reserve is released.
func (x *Exchange) drop(h uint32, o *order, why Reason, events []Event) []Event {
	events, e := another(events)
	e.Kind, e.Reason, e.Remaining = Cancelled, why, o.remaining
	o.tell(e)
	x.markets.at(uint32(o.market)).book.Remove(h, uint32(o.index), o.remaining)
	x.resize(o, 0, 0)
	x.retire(h, o)
	return events
}

// retire removes an order that has left its book from timers, lists and ids.
func (x *Exchange) retire(h uint32, o *order) {
	if o.timer != 0 {
		x.timers.disarm(&x.orders, o)
	}
	x.delist(o)
	x.seen.leave(h, o)
}
