package engine

// EventKind says what happened. The numbers are part of the journal's format.
type EventKind uint8

// The Events. A Place yields any number of Cancelled (own resting orders in its way) and Filled,
// in matching order, and then exactly one last word: Placed, Completed or Rejected.
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
	// meeting the arriving one for Size. Price is in the maker's own token.
	Filled
	// Placed: the arriving order now rests at Price with Remaining of its Size.
	Placed
	// Completed: the arriving order was filled whole (Remaining 0) and never rested.
	Completed
	// Cancelled: a resting order left the book with Remaining unfilled; Reason says why.
	Cancelled
	// Rejected: the Command was refused and changed nothing: Reject, Args, First.
	Rejected
)

// Settlement says how a Fill moves assets, read off the two physical sides.
type Settlement uint8

// The settlements.
const (
	Transfer Settlement = iota + 1 // BUY meets SELL of one token
	Mint                           // BUY meets BUY of the complement: a pair is made from 1.00
	Merge                          // SELL meets SELL of the complement: a pair turns back into 1.00
)

// Reason says why a resting order was cancelled.
type Reason uint8

// The reasons.
const (
	ByOwner Reason = iota + 1
	SelfTrade
)

// MarketState says whether a market takes orders.
type MarketState uint8

// The states.
const (
	Unopened MarketState = iota + 1
	Open
)

// Event is a fact that Apply produced: a flat value without pointers.
type Event struct {
	Kind       EventKind
	Settlement Settlement
	Reason     Reason
	State      MarketState
	Side       Side
	Outcome    Outcome
	Price      Price
	Reject     Reject
	Market     MarketNo
	Wallet     WalletNo
	Owner      WalletNo
	Size       Size
	Remaining  Size
	Args       [3]int64
	// First is the Sequence that first bound the id of a Rejected duplicate; for Filled and Cancelled
	// it is the Sequence that placed the resting order.
	First Sequence
	Order OrderID
}
