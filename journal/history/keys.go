package history

import (
	"encoding/binary"

	"clobd/engine"
)

// The key spaces of the index: the first byte of every key. A space is never used for
// anything else again; the letters that are reserved are spoken for in DESIGN.md.
const (
	// spaceState holds what the index says of itself.
	spaceState = 'm'

	// spaceOrder holds the rows of the index: OrderID.
	spaceOrder = 'o'
	// spaceTrades holds full chunks of an order's trades: OrderID, chunk number, big endian.
	spaceTrades = 't'
	// spaceDeals holds the trades of the index, chunk by chunk: number of the first one, big endian.
	spaceDeals = 'd'
	// spaceLists holds runs of numbers of trades: owner and market, of which one may be 0 for all of
	// them, number of the first one, big endian.
	spaceLists = 'w'
	// spaceResting holds the log of the orders that rest in the books: Sequence, big endian.
	spaceResting = 'v'
	// spaceMarks holds which Sequence was the first at a time: unix milliseconds, big endian.
	spaceMarks = 's'
	// spaceRules holds price steps and fee rates: market, big endian.
	spaceRules = 'g'
	// spaceBuilder holds the numbers of builders' codes: BuilderCode.
	spaceBuilder = 'u'

	// spacePurse holds the collateral of wallets: wallet, big endian.
	spacePurse = 'a'
	// spaceLink holds who trades for whom: owner, wallet, big endian.
	spaceLink = 'l'
	// spacePosition holds what wallets have of tokens: wallet, market, big endian.
	spacePosition = 'p'
	// spaceHolder holds who has a token: market, outcome, inverted size, wallet, big endian.
	spaceHolder = 'h'
	// spaceMove holds what wallets split, merged and redeemed: wallet, Sequence, big endian.
	spaceMove = 'k'
	// spaceMarket holds volumes and last prices: market, big endian.
	spaceMarket = 'q'
	// spacePoint holds prices: market, minute since 1970, big endian.
	spacePoint = 'x'
	// spaceVolume holds volumes at the ends of hours: market, hour since 1970, big endian.
	spaceVolume = 'n'
)

const (
	numberKeyLen = 1 + 8
	orderKeyLen  = 1 + 32
	chunkKeyLen  = orderKeyLen + 4
)

// stateKey is a key of the meta space.
func stateKey(name string) []byte { return append([]byte{spaceState}, name...) }

// orderKey is the key of an order's row in the index.
func orderKey(id *engine.OrderID) [orderKeyLen]byte {
	var k [orderKeyLen]byte
	k[0] = spaceOrder
	copy(k[1:], id[:])
	return k
}

// chunkKey is the key of chunk no of an order's trades.
func chunkKey(id *engine.OrderID, no uint32) [chunkKeyLen]byte {
	var k [chunkKeyLen]byte
	k[0] = spaceTrades
	copy(k[1:], id[:])
	binary.BigEndian.PutUint32(k[orderKeyLen:], no)
	return k
}

// numberKey is a key that is a number in a space.
func numberKey(space byte, no uint64) [numberKeyLen]byte {
	k := [numberKeyLen]byte{space}
	binary.BigEndian.PutUint64(k[1:], no)
	return k
}

// numberOf is the number in such a key; false if the key is malformed.
func numberOf(key []byte) (uint64, bool) {
	if len(key) != numberKeyLen {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[1:]), true
}

// rulesKey is the key of a market's rules.
func rulesKey(no engine.MarketNo) [5]byte {
	k := [5]byte{spaceRules}
	binary.BigEndian.PutUint32(k[1:], uint32(no))
	return k
}

// builderKey is the key of a builder's number.
func builderKey(code *BuilderCode) [orderKeyLen]byte {
	k := orderKey((*engine.OrderID)(code))
	k[0] = spaceBuilder
	return k
}

const listKeyLen = 1 + 8 + 8

// listKey is the key of the run of a list that begins with number no.
func listKey(list listNo, no uint64) [listKeyLen]byte {
	k := [listKeyLen]byte{spaceLists}
	binary.BigEndian.PutUint64(k[1:], uint64(list))
	binary.BigEndian.PutUint64(k[9:], no)
	return k
}
