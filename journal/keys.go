package journal

import (
	"encoding/binary"
	"fmt"
)

// The key spaces of the journal's database: the first byte of every key. A space is never used for
// anything else again, here or in the index.
const (
	// spaceMeta holds what the database says of itself.
	spaceMeta = 'm'
	// spaceFrame holds the frames: frame number, big endian.
	spaceFrame = 'f'
	// spaceEntry has the term and the frame number of each entry that a cluster agrees on: its index,
	// big endian. Entries up to the base have no rows.
	spaceEntry = 'r'
	// spaceWords has those entries that are neither frames nor empty: index, big endian.
	spaceWords = 'a'
)

const frameKeyLen = 1 + 8

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

func metaKey(name string) []byte { return append([]byte{spaceMeta}, name...) }
