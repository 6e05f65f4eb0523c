package engine

// EventKind says what happened. The numbers are part of the journal's format.
type EventKind uint8

// The Events. A Command yields any number of Cancelled (of a Place: own resting orders in its way)
// and Filled, in the order in which they happened, and then exactly one last word, which is one of
// the others.
const (
	// EpochStarted answers Started.
	EpochStarted EventKind = iota + 1
	// Listed answers List: Market. State tells open from unopened.
	Listed
	// Deposited answers Deposit: Wallet, Market, Outcome, Size (base units of the asset).
	Deposited
	// Withdrawn answers Withdraw: the same fields.
	Withdrawn
	// Linked answers Link: Wallet and Owner.
	Linked
	// Filled is one resting order (the maker: Order, Wallet, Owner, Side, Outcome, Price, Remaining)
	// meeting the arriving one for Size. Price is in the maker's own token. Fee is the taker's.
	Filled
	// Placed: the arriving order now rests at Price with Remaining of its Size.
	Placed
	// Completed: the arriving order never rested. What Remaining of its Size was not filled is
	// cancelled; Reason says why. A BUY bounded by its budget may have got more than Size.
	Completed
	// Cancelled: a resting order left the book with Remaining unfilled; Reason says why.
	Cancelled
	// Rejected: the Command was refused: Reject, Args, First. It changed nothing but what the Events
	// before it say, and that its id is bound if the Reject is final.
	Rejected
	// Swept answers CancelAll: Size orders were cancelled.
	Swept
	// Split answers SplitTokens: Wallet, Market, Size.
	Split
	// Merged answers MergeTokens: the same fields.
	Merged
	// Redeemed answers RedeemTokens: Size collateral was paid for Args[0] and Args[1] of the tokens.
	Redeemed
	// StateChanged answers SetState: Market and its State.
	StateChanged
	// Adjusted answers Adjust: Market. The new rules are those of the Command.
	Adjusted
	// Resolved answers Resolve: Market, and what outcome 0 pays as Price.
	Resolved
	// ModeSet answers SetMode: Wallet, Market, Mode.
	ModeSet
	// PreventionSet answers SetPrevention: Wallet, Prevention.
	PreventionSet
	// Advanced answers Advance: Size orders expired.
	Advanced
	// Armed answers Arm: Owner; Args hold the key and the timeout in milliseconds, 0 for disarmed.
	Armed
	// Collected answers Collect: Wallet, Size of collateral.
	Collected
	// KeySet answers SetKey: Owner; Args hold the key's number, its class, and 1 if it is revoked.
	KeySet

	lastEvent = KeySet
)

// Settlement says how a Fill moves assets, read off the two physical sides.
type Settlement uint8

// The settlements.
const (
	Transfer Settlement = iota + 1 // BUY meets SELL of one token
	Mint                           // BUY meets BUY of the complement: a pair is made from 1.00
	Merge                          // SELL meets SELL of the complement: a pair turns back into 1.00
)

// Reason says why an order, or what remained of it, was cancelled.
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
)

// MarketState says whether a market takes orders.
type MarketState uint8

// The states. Orders are taken in Open only; Settled is for good.
const (
	Unopened MarketState = iota + 1
	Open
	Paused
	Closed
	Settled // resolved: tokens are paid out
)

// Event is a fact that Apply produced: a flat value without pointers.
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
	// First is the Sequence that first bound the id of a Rejected duplicate; for Filled and Cancelled
	// it is the Sequence that placed the resting order.
	First Sequence
	Order OrderID
}

// another appends an empty Event, to be filled in where it lies: one that is put together elsewhere
// and then copied is read in larger pieces than it was written in, for which the processor waits.
func another(events []Event) ([]Event, *Event) {
	events = append(events, Event{})
	return events, &events[len(events)-1]
}
