package journal

import (
	"encoding/binary"
	"fmt"

	"clobd/engine"
)

// The key spaces of the two databases: the first byte of every key. A space is never used for
// anything else again; the letters that are reserved are spoken for in DESIGN.md.
const (
	// spaceMeta holds what the database says of itself, in both databases.
	spaceMeta = 'm'

	// spaceFrame holds the frames of the journal: frame number, big endian.
	spaceFrame = 'f'

	// spaceOrder holds the rows of the index: OrderID.
	spaceOrder = 'o'
	// spaceTrades holds full chunks of an order's trades: OrderID, chunk number, big endian.
	spaceTrades = 't'
)

const (
	frameKeyLen = 1 + 8
	orderKeyLen = 1 + 32
	chunkKeyLen = orderKeyLen + 4
)

// frameKey is the key of frame no.
func frameKey(no uint64) [frameKeyLen]byte {
	var k [frameKeyLen]byte
	k[0] = spaceFrame
	binary.BigEndian.PutUint64(k[1:], no)
	return k
}

// frameNo is the frame number in a key of the frame space; false if the key is malformed.
func frameNo(key []byte) (uint64, bool) {
	if len(key) != frameKeyLen || key[0] != spaceFrame {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[1:]), true
}

// frameText is the key of frame no as people read it.
func frameText(no uint64) string { return fmt.Sprintf("%c/%016x", spaceFrame, no) }

// metaKey is a key of the meta space.
func metaKey(name string) []byte { return append([]byte{spaceMeta}, name...) }

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
