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
	// Size of (Market, Outcome), fully backed. ID is the operator's reference, or zero.
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
)

// Command is a verified request: a flat value that the door hands to the matcher, which stamps a
// Sequence and a Time. One struct serves all Kinds, so that a ring slot can hold any of them.
type Command struct {
	Kind    Kind
	Type    OrderType
	Side    Side
	Outcome Outcome
	Market  MarketNo
	Wallet  WalletNo // whose money: the signed maker
	Owner   WalletNo // the address behind the API key
	Key     uint32   // nonce of the API key that sent the order

	// Size and Cash are the signed share and collateral amounts of a Place, as signed: Apply judges
	// the price and the lot. Size in [1, MaxOrder], Cash in [1, MaxAmount].
	Size Size
	Cash Cash

	Expiry Time
	// Seen is the Sequence up to which the index had been searched for ID before this Place went in.
	Seen Sequence

	ID      OrderID
	Address Address
	Holder  Address

	// Listing is set for List only. It is never changed once submitted.
	Listing *Listing
	// Proof is the signed evidence of a Place: journaled, never read by Apply. At most ProofMax bytes.
	Proof []byte
}

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
	// MinSize is the least signed size of a GTC or GTD order.
	MinSize Size
	NegRisk bool
	// Open says whether orders are taken from the start; if not, the market is unopened.
	Open bool
}
