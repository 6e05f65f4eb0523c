package disk

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// SumBytes is how many bytes a checksum has.
const SumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the CRC32C of b.
func Sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// sumAround is that of b without the bytes from at on where the checksum itself stands.
func sumAround(b []byte, at int) uint32 {
	return crc32.Update(Sum(b[:at]), castagnoli, b[at+SumBytes:])
}

// Holds reports whether the checksum at at is that of all other bytes of b.
func Holds(b []byte, at int) bool { return sumAround(b, at) == binary.LittleEndian.Uint32(b[at:]) }

// TurnBack flips back the bit of b that makes the checksum at at wrong, and reports whether there
// is one. If more than one bit was flipped, it may flip a third.
func TurnBack(b []byte, at int) bool {
	sum := sumAround(b, at)
	wrong := sum ^ binary.LittleEndian.Uint32(b[at:])
	if bits.OnesCount32(wrong) == 1 { // of the checksum itself
		binary.LittleEndian.PutUint32(b[at:], sum)
		return true
	}
	var does [8]uint32 // what a flip of each bit of a byte does to the checksum
	for bit := range does {
		does[bit] = castagnoli[1<<bit]
	}
	for i := len(b) - 1; i >= 0; i-- {
		if i >= at && i < at+SumBytes {
			continue // the checksum does not cover itself
		}
		for bit := range does {
			if does[bit] == wrong {
				b[i] ^= 1 << bit
				return true
			}
			does[bit] = castagnoli[byte(does[bit])] ^ does[bit]>>8
		}
	}
	return false
}
