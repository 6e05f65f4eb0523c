package auth

import "clobd/engine"

// The signature types: who signs for whom.
const (
	TypeEOA    uint8 = 0 // the maker signs for itself
	TypeProxy  uint8 = 1 // an EOA signs for its proxy wallet
	TypeSafe   uint8 = 2 // an EOA signs for its safe
	TypeWallet uint8 = 3 // an EOA signs for a deposit wallet, in the wallet's typed data (ERC-7739)
)

// Order is what a client signs. Version decides which fields are signed, and follows from the
// payload: an order with taker, nonce and feeRateBps has V1, an order with timestamp, metadata and
// builder has V2. Domains of version 2 and 3 share the struct of V2.
type Order struct {
	Version       uint8 // of the struct: 1 or 2
	SignatureType uint8 // TypeEOA, TypeProxy, TypeSafe or TypeWallet; TypeWallet only with Version 2
	Side          engine.Side

	Maker  engine.Address // whose money
	Signer engine.Address
	Token  engine.Token

	MakerAmount uint64 // what the maker gives, in base units
	TakerAmount uint64 // what the maker gets, in base units

	Salt Word

	// Only in V2.
	Timestamp Word // milliseconds, by convention
	Metadata  Word
	Builder   Word

	// Only in V1.
	Taker      engine.Address
	Expiration Word // seconds
	Nonce      Word
	FeeRate    Word // basis points
}

// refusal returns the reason why o cannot be verified at all, or "".
func (o *Order) refusal() string {
	switch {
	case o.Version != 1 && o.Version != 2:
		return ReasonVersion
	case o.SignatureType > TypeWallet, o.SignatureType == TypeWallet && o.Version != 2:
		return ReasonType
	case o.Side > engine.Sell:
		return ReasonSide
	}
	// The owner of a proxy or a safe signs as itself, so signer and maker differ there. The caller
	// checks whether the maker is linked to the signer.
	own := o.SignatureType == TypeEOA || o.SignatureType == TypeWallet
	if own && o.Maker != o.Signer {
		return ReasonMaker
	}
	return ""
}
