package engine

// EventKind is the kind of an Event. The numbers are part of the journal's format.
type EventKind uint8

// The kinds of Events. A Command yields any number of Cancelled and Filled, as they happened, and
// then exactly one Event of another kind, its answer. (A Cancel is answered by its Cancelled.)
const (
	EpochStarted EventKind = iota + 1 // answers Started
	Listed                            // answers List: Market. State tells open from unopened.
	Deposited                         // answers Deposit: Wallet, Market, Outcome, Size
	Withdrawn                         // answers Withdraw: the same fields
	Linked                            // answers Link: Wallet and Owner
	// Filled: a resting order, the maker, traded Size with the arriving one. Order, Wallet, Owner,
	// Side, Outcome, Price and Remaining are the maker's, Fee is the taker's.
	Filled
	Placed // the arriving order now rests at Price with Remaining of its Size
	// Completed: the arriving order does not rest. Remaining of its Size is cancelled; Reason says
	// why. A BUY bounded by its budget may have bought more than Size.
	Completed
	Cancelled // a resting order left the book with Remaining unfilled; Reason says why
	// Rejected: the Command was refused: Reject, Args, First. If the Reject is Final the id is bound;
	// nothing else changed.
	Rejected
	Swept         // answers CancelAll: Size orders were cancelled
	Split         // answers SplitTokens: Wallet, Market, Size
	Merged        // answers MergeTokens: the same fields
	Redeemed      // answers RedeemTokens: Size collateral was paid for Args[0] and Args[1] tokens
	StateChanged  // answers SetState: Market and its State
	Adjusted      // answers Adjust: Market. The new rules are those of the Command.
	Resolved      // answers Resolve: Market; Price is what outcome 0 pays
	ModeSet       // answers SetMode: Wallet, Market, Mode
	PreventionSet // answers SetPrevention: Wallet, Prevention
	Advanced      // answers Advance: Size orders expired
	Armed         // answers Arm: Owner; Args hold the key and the timeout in ms, 0: disarmed
	Collected     // answers Collect: Wallet, Size of collateral
	KeySet        // answers SetKey: Owner; Args hold number, class, and 1 if it is revoked
	Raised        // answers Raise: Args[0] is the version in force

	lastEvent = Raised
)

// Settlement says how a fill moves assets. It follows from the sides of the two orders.
type Settlement uint8

// The settlements.
const (
	Transfer Settlement = iota + 1 // BUY meets SELL of one token
	Mint                           // BUY meets BUY of the complement: a pair is made from 1.00
	Merge                          // SELL meets SELL of the complement: a pair turns back into 1.00
)

// Reason says why an order, or the rest of it, was cancelled.
type Reason uint8

// The reasons.
const (
	ByOwner Reason = iota + 1
	SelfTrade
	Unfilled // the rest of a FAK
	Expired
	Timeout // no heartbeat
	ByOperator
	MarketClosed
	MarketResolved
	// Only the index has these: ByOwner, by a CancelAll of everything, or of one market or token.
	ByOwnerAll
	ByOwnerMarket
)

// MarketState says whether a market accepts orders.
type MarketState uint8

// The states. A market accepts orders only while it is Open; Settled is final.
const (
	Unopened MarketState = iota + 1
	Open
	Paused
	Closed
	Settled // resolved: tokens are paid out
)

// Event is a fact that Apply produced: a value without pointers.
type Event struct {
	Kind       EventKind
	Settlement Settlement
	Reason     Reason
	State      MarketState
	Mode       Mode
	Prevention Prevention
	Side       Side
	Outcome    Outcome
	Price      Price
	Reject     Reject
	Market     MarketNo
	Wallet     WalletNo
	Owner      WalletNo
	Size       Size
	Remaining  Size
	Fee        Cash
	Args       [3]int64
	// First is the Sequence that bound a duplicate's id, or that placed a Filled or Cancelled order.
	First Sequence
	Order OrderID
}

// another appends an empty Event, which the caller fills in place. An Event that is built elsewhere
// and then copied stalls the processor: the copy reads larger pieces than the writes stored.
func another(events []Event) ([]Event, *Event) {
	events = append(events, Event{})
	return events, &events[len(events)-1]
}
