package engine

import "encoding/binary"

// Kind is the kind of a Command. The numbers are part of the journal's format.
type Kind uint8

// The kinds of Commands, each with the fields of Command that it uses.
const (
	// Started is the first Command of an epoch. Seen holds the epoch, Expiry the wall clock.
	Started Kind = iota + 1
	List         // makes a condition tradable. Listing.
	// Deposit credits Address, and numbers a new one. If Market is 0 it credits Cash of collateral,
	// else Size tokens (Market, Outcome): first those that were withdrawn, then new ones with their
	// collateral. ID is the operator's reference, or zero: accepted once over all Kinds.
	Deposit
	Withdraw // debits the free part of the same account. The fields are those of Deposit.
	Link     // lets Holder, the address behind an API key, trade for Address. Both get numbers.
	// Place asks for an order: ID, Market, Outcome, Side, Type, Wallet, Owner, Key, Size, Cash,
	// Expiry, Seen, Proof. It may replace another order, which Replace names.
	Place
	Cancel // cancels the resting order ID, if Owner owns it
	// CancelAll cancels the orders of Wallet that Owner placed, in Market unless that is 0,
	// confined by Only. Reason is ByOwner, ByOperator or Timeout; an operator's Owner 0 means
	// everybody.
	CancelAll
	// SplitTokens turns Size of collateral of Wallet into both tokens of Market. ID names the
	// request: accepted once within RequestWindow, or once for good if Seen is not 0.
	SplitTokens
	MergeTokens  // turns Size of both tokens of Market back into collateral. ID as above.
	RedeemTokens // pays out all tokens of Wallet in a resolved Market. ID as above.
	SetState     // opens, pauses or closes Market: State. Closing cancels its orders.
	// Adjust gives Market the tick, the minimums and the fee of Listing, which else must agree.
	Adjust
	// Resolve pays Price for outcome 0 of Market and 1 - Price for outcome 1, and cancels its orders.
	// ID is the operator's reference, or zero.
	Resolve
	// SetMode restricts new orders as Mode says: of Wallet, else in Market, else everywhere.
	SetMode
	SetPrevention // sets the Prevention of Wallet: what happens when it meets its own orders
	// Advance cancels up to AdvanceOrders expired orders. The writer repeats it before other Commands.
	Advance
	// Arm sets the heartbeat timeout of (Owner, Key) to Expiry milliseconds; 0 disarms. An owner
	// has at most MaxTradingKeys armed. A watcher outside the engine sends CancelAll for a late
	// beat.
	Arm
	// Collect moves Cash from the fee account to the wallet of Address. ID as for Resolve.
	Collect
	// SetKey puts the API key (Owner, Class, Key) on record, or with Revoke revokes it.
	SetKey
	// Raise puts the version Seen of the rules in force, from then on. It is alone in its frame.
	Raise
)

// Command is a verified request: a flat value that ingress hands to the matcher, which stamps a
// Sequence and a Time. One struct serves all Kinds: 176 bytes, less than three cache lines.
type Command struct {
	Kind    Kind
	Type    OrderType
	Side    Side
	Outcome Outcome

	PostOnly bool // of a Place: refuse the order if it would trade at once
	Revoke   bool // of a SetKey
	Only     Only // of a CancelAll
	Class    KeyClass

	Reason     Reason
	State      MarketState
	Mode       Mode
	Prevention Prevention
	Price      Price

	// FeeBound is 1 + the highest fee rate, in basis points, that the signer accepts; 0: not named.
	FeeBound uint16

	Market MarketNo
	Wallet WalletNo // whose money: the signed maker
	Owner  WalletNo // the address behind the API key
	Key    uint32   // nonce of the API key that sent the order

	// Size in [1, MaxOrder] and Cash in [1, MaxAmount] are the signed amounts of a Place.
	Size Size
	Cash Cash

	Expiry   Time     // the Time at which a GTD order leaves the book; 0 for the other types
	Deadline Time     // the last Time at which a Place is accepted; 0 if there is no limit
	Seen     Sequence // the Sequence up to which ingress had searched the index for ID

	ID      OrderID
	Address Address // of a Place: the first 20 bytes of the id of the order that it replaces
	Holder  Address // of a Place: the other 12 bytes of that id, and 8 unused bytes

	Listing *Listing // set for List and Adjust only. Nobody changes it once it is submitted.
	// Proof is the signed evidence of a Place, at most ProofMax bytes: journaled, not read by Apply.
	Proof []byte
}

// Replace makes a Place replace the resting order id, in any market, of the same Wallet and Owner.
// Apply checks the new order as if the old order had already been cancelled. If the new order
// passes, Apply cancels the old order and matches the new order. Otherwise Apply refuses the Place
// and the old order stays as it was.
func (c *Command) Replace(id OrderID) {
	copy(c.Holder[:], id[copy(c.Address[:], id[:]):])
}

// Replaced returns the id of the order that a Place replaces. is is false if it replaces none.
func (c *Command) Replaced() (id OrderID, is bool) {
	if c.Kind != Place || !c.replaces() {
		return OrderID{}, false
	}
	copy(id[copy(id[:], c.Address[:]):], c.Holder[:])
	return id, true
}

// replaces reports, for a Place, what Replaced reports as is. Like same, it needs no call.
func (c *Command) replaces() bool {
	le := binary.LittleEndian
	return le.Uint64(c.Address[0:])|le.Uint64(c.Address[8:])|le.Uint64(c.Holder[0:])|
		uint64(le.Uint32(c.Address[16:])|le.Uint32(c.Holder[8:])) != 0
}

// Only is the set of conditions that confine a CancelAll.
type Only uint8

// The conditions.
const (
	OnlyToken Only = 1 << iota // orders in the token Outcome of Market
	OnlyKey                    // orders that came with Key

	allOnly = OnlyToken | OnlyKey
)

// ProofMax bounds Command.Proof, in bytes.
const ProofMax = 768

// Listing is what the engine must know of a condition to trade it.
type Listing struct {
	Condition Condition
	Tokens    [2]Token
	Group     uint64 // the catalog event of the condition: partition key and neg-risk unit
	Tick      Price  // the price step: 1000, 100, 50, 25, 10 or 1
	MinSize   Size   // the least signed size of a GTC or GTD order, at most MaxOrder
	MinBuy    Cash   // the least signed collateral of a BUY that trades at once
	Fee       Fee    // the schedule of the taker's fee
	NegRisk   bool
	// Open says whether the market starts Open rather than Unopened. A second List with Open opens an
	// unopened market unless a SetState came before.
	Open bool
}

// Fee is the schedule of a market: a taker pays shares * rate * (p * (1-p))^Exponent for each fill,
// in collateral. The zero Fee is none.
type Fee struct {
	Rate     uint16 // in basis points of the formula's rate, [0, MaxFeeRate]
	Exponent uint8  // [0, MaxFeeExponent]
}

// Mode restricts new orders.
type Mode uint8

// The modes.
const (
	Normal     Mode = iota
	PostOnly        // only orders that do not trade at once
	CancelOnly      // no orders
)

// Prevention says what happens when an arriving order meets a resting one of the same wallet.
type Prevention uint8

// The preventions.
const (
	ExpireResting  Prevention = iota // the resting order is cancelled and matching goes on
	ExpireArriving                   // the rest of the arriving order is cancelled
	ExpireBoth                       // both
	AllowSelfTrade                   // they trade
)

const (
	// RequestWindow is how long the engine remembers the id of a request, in milliseconds of Time.
	RequestWindow = 120_000
	AdvanceOrders = 1024 // bounds how many orders one Advance expires
	// MaxFeeRate bounds Fee.Rate to less than 1, so that cost plus fee grows with the price.
	MaxFeeRate     = 9_999
	MaxFeeExponent = 3 // bounds Fee.Exponent
)
