package engine

// Price is what one share costs, in 1/10,000 of one unit of collateral. A live order's price lies
// in [tick, 10,000 - tick].
type Price uint16

// PriceOne is the price of a share that surely pays one unit of collateral.
const PriceOne Price = 10_000

// Size counts outcome tokens in base units of 10^-6 share.
type Size int64

// Cash counts collateral in base units of 10^-6 of one unit of collateral.
type Cash int64

const (
	Unit = 1_000_000 // one whole share, or one whole unit of collateral, in base units

	// Lot is the step of every resting size and every fill: 0.01 share. A Lot at a Price of 1 costs
	// one base unit of collateral, so the cost of any multiple of a Lot is exact.
	Lot Size = 10_000

	// MaxAmount bounds the cash of one order, and one transfer, in base units (1.1 billion units).
	// Amount * 10,000 still fits in 64 bits.
	MaxAmount = 1 << 50

	// MaxOrder bounds the shares of one order, in base units (70 million shares). The sizes of all
	// orders of a full market add up in 64 bits, so no level overflows.
	MaxOrder Size = 1 << 46

	// MaxSupply bounds the sum of all deposits of one asset, in base units: no account can overflow.
	MaxSupply = 1 << 60
)

// Sequence is the position of a Command in the journal, from 1: the one clock of the system.
type Sequence uint64

// Time is in unix milliseconds. The writer stamps it once per batch and journals it.
type Time int64

// Token is an outcome token's id: an unsigned 256-bit integer, big endian.
type Token [32]byte

// Condition is a condition's id: the 32 bytes after 0x.
type Condition [32]byte

// OrderID is the EIP-712 hash of a signed order.
type OrderID [32]byte

// Address is a 20-byte account address.
type Address [20]byte

// WalletNo is an address's number since its first Deposit, Link or Collect, from 1. 0 is no wallet.
type WalletNo uint32

// MarketNo is the number that Apply gave a condition when it was listed, from 1. 0 is no market;
// where a Command names an asset, 0 means the collateral.
type MarketNo uint32

// Outcome is the index of an outcome token in its condition: 0 (A) or 1 (B).
type Outcome uint8

// Other is the complementary outcome.
func (o Outcome) Other() Outcome { return o ^ 1 }

// Side says whether an order buys or sells its token. The values are those of the signed struct.
type Side uint8

// The two sides.
const (
	Buy  Side = 0
	Sell Side = 1
)

// Other is the opposite side.
func (s Side) Other() Side { return s ^ 1 }

// OrderType says how long an order lives.
type OrderType uint8

// The order types: good till cancelled, good till date, fill or kill, fill and kill.
const (
	GTC OrderType = iota
	GTD
	FOK
	FAK
)

// Cost is the collateral for size shares at price p, in base units, exact for multiples of a Lot.
func Cost(size Size, p Price) Cash { return Cash(int64(size/Lot) * int64(p)) }
