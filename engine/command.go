package engine

// Kind says what a Command asks for. The numbers are part of the journal's format.
type Kind uint8

// The Commands. Which fields of Command each of them uses is written beside it.
const (
	// Started opens an epoch: the first Command after every start. Epoch in Seen, wall clock in
	// Expiry.
	Started Kind = iota + 1
	// List makes a condition tradable. Listing.
	List
	// Deposit credits Address, which it numbers if need be: Cash of collateral if Market is 0, else
	// Size of (Market, Outcome): first those that are outside come back, also to a resolved market;
	// what is more comes with the collateral that backs it. ID is the operator's reference, or zero:
	// of all Commands that say so, one alone uses it up, whatever the others ask for. Operators who
	// want one name for several Kinds make the Kind a part of it.
	Deposit
	// Withdraw takes the same away again, from what is free.
	Withdraw
	// Link lets Holder, the address behind an API key, trade for the wallet Address. Both are
	// numbered.
	Link
	// Place asks for an order: ID, Market, Outcome, Side, Type, Wallet, Owner, Key, Size, Cash,
	// Expiry, Seen, Proof.
	Place
	// Cancel takes the order ID out of the book, if Owner owns it.
	Cancel
	// CancelAll takes out of the books all orders of Wallet that Owner placed: those of Market only
	// unless it is 0, and as Only says. Market after market by number, the newest order first.
	// Reason is ByOwner, ByOperator or Timeout; with Owner 0 an operator means all orders of Wallet.
	CancelAll
	// SplitTokens turns Size of collateral of Wallet into as many of both tokens of Market. ID is the
	// request's, remembered for RequestWindow: a repeat is a duplicate, whatever it asks for, so that
	// the ids of two requests must differ.
	SplitTokens
	// MergeTokens turns Size of both tokens of Market back into collateral. ID as above.
	MergeTokens
	// RedeemTokens pays out all that Wallet holds of a resolved Market. ID as above.
	RedeemTokens
	// SetState opens, pauses or closes Market: State. Closing cancels its orders.
	SetState
	// Adjust gives Market the tick, the minimums and the fee of Listing, whose other fields must be
	// those it was listed with.
	Adjust
	// Resolve pays Price for outcome 0 of Market and 1 - Price for outcome 1, and cancels its orders.
	// ID is the operator's reference, or zero.
	Resolve
	// SetMode restricts what is taken, to Mode: of Wallet if it is not 0, else in Market if that is
	// not 0, else everywhere.
	SetMode
	// SetPrevention says what happens when Wallet meets itself: Prevention.
	SetPrevention
	// Advance is the timer: it expires what is due, up to AdvanceOrders of it. Nothing else looks at
	// the expiry of what rests: whoever applies Commands sends it again until Due lies ahead, before
	// any other Command of that Time.
	Advance
	// Arm cancels all orders of (Owner, Key) when no heartbeat came for Expiry milliseconds; 0
	// disarms. An owner has at most MaxTradingKeys armed. Beats are not journaled: whoever watches
	// them sends CancelAll when they stop.
	Arm
	// Collect moves Cash from the fee account to the wallet of Address. ID is the operator's
	// reference, or zero.
	Collect
	// SetKey puts the API key (Owner, Class, Key) on record, or with Revoke says that it opens nothing
	// any more. Only a trading key can be restored then.
	SetKey
)

// Command is a verified request: a flat value that the door hands to the matcher, which stamps a
// Sequence and a Time. One struct serves all Kinds, so that a ring slot can hold any of them: 176
// bytes, which leave room for two words in three cache lines.
type Command struct {
	Kind    Kind
	Type    OrderType
	Side    Side
	Outcome Outcome

	PostOnly bool // of a Place: refuse it if it would trade at once
	Revoke   bool // of a SetKey
	Only     Only // of a CancelAll
	Class    KeyClass

	Reason     Reason
	State      MarketState
	Mode       Mode
	Prevention Prevention
	Price      Price

	// FeeBound is 1 + the fee rate that a Place signed as its maximum, in basis points, at most
	// 65,534; 0 if it signed none.
	FeeBound uint16

	Market MarketNo
	Wallet WalletNo // whose money: the signed maker
	Owner  WalletNo // the address behind the API key
	Key    uint32   // nonce of the API key that sent the order

	// Size and Cash are the signed share and collateral amounts of a Place, as signed: Apply judges
	// the price and the lot. Size in [1, MaxOrder], Cash in [1, MaxAmount].
	Size Size
	Cash Cash

	// Expiry is when a GTD order leaves the book; 0 for the other types.
	Expiry Time
	// Deadline is the last Time at which a Place is still wanted; 0 if it is whenever it comes.
	Deadline Time
	// Seen is the Sequence up to which the index had been searched for ID before this Place went in.
	Seen Sequence

	ID      OrderID
	Address Address
	Holder  Address

	// Listing is set for List and Adjust only. It is never changed once submitted.
	Listing *Listing
	// Proof is the signed evidence of a Place: journaled, never read by Apply. At most ProofMax bytes.
	Proof []byte
}

// Only is a set of what a CancelAll is confined to.
type Only uint8

// Its members.
const (
	OnlyToken Only = 1 << iota // orders in the token Outcome of Market
	OnlyKey                    // orders that came with Key

	allOnly = OnlyToken | OnlyKey
)

// ProofMax bounds Command.Proof, in bytes.
const ProofMax = 768

// Listing is what the engine must know of a condition in order to trade it.
type Listing struct {
	Condition Condition
	Tokens    [2]Token
	// Group is the event that the condition belongs to: partition key and neg-risk unit.
	Group uint64
	// Tick is the price step: 1000, 100, 50, 25, 10 or 1.
	Tick Price
	// MinSize is the least signed size of a GTC or GTD order, at most MaxOrder.
	MinSize Size
	// MinBuy is the least signed collateral of a BUY that trades at once.
	MinBuy Cash
	// Fee is what a taker pays.
	Fee     Fee
	NegRisk bool
	// Open says whether orders are taken from the start; if not, the market is unopened. Listing it
	// again opens it if no SetState has said anything else.
	Open bool
}

// Fee is the schedule of a market: a taker pays shares * rate * (p * (1-p))^Exponent for each fill,
// in collateral. The zero Fee is none.
type Fee struct {
	Rate     uint16 // in basis points of the formula's rate, [0, MaxFeeRate]
	Exponent uint8  // [0, MaxFeeExponent]
}

// Mode restricts what is taken in.
type Mode uint8

// The modes.
const (
	Normal     Mode = iota
	PostOnly        // only orders that do not trade at once
	CancelOnly      // no orders
)

// Prevention says what happens when a wallet's arriving order meets one of its own.
type Prevention uint8

// The preventions.
const (
	ExpireResting  Prevention = iota // the resting order is cancelled and matching goes on
	ExpireArriving                   // what remains of the arriving order is cancelled
	ExpireBoth                       // both
	AllowSelfTrade                   // they trade
)

const (
	// RequestWindow is how long the id of a split, merge or redemption is remembered, in
	// milliseconds of Time.
	RequestWindow = 120_000
	// AdvanceOrders bounds how many orders one Advance expires.
	AdvanceOrders = 1024
	// MaxFeeRate bounds Fee.Rate: less than 1, so that cost and fee grow with the price.
	MaxFeeRate = 9_999
	// MaxFeeExponent bounds Fee.Exponent.
	MaxFeeExponent = 3
)
