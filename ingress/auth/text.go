package auth

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"clobd/engine"
)

// Word is an unsigned 256-bit integer, big endian: one word of a signed struct.
type Word [32]byte

// WordOf returns v as a Word.
func WordOf(v uint64) Word {
	var w Word
	binary.BigEndian.PutUint64(w[24:], v)
	return w
}

// Uint64 returns the value of w. It is false if the value needs more than 64 bits.
func (w *Word) Uint64() (uint64, bool) {
	return binary.BigEndian.Uint64(w[24:]), [24]byte(w[:24]) == [24]byte{}
}

// maxWordDigits is the length of 2^256 - 1 in decimal.
const maxWordDigits = 78

// ParseWord reads a decimal unsigned 256-bit integer: 1 to 78 digits and nothing else. It is false
// for any other text, and for values of 2^256 or more.
func ParseWord(s string) (Word, bool) {
	if len(s) > maxWordDigits {
		return Word{}, false
	}
	t, ok := engine.ParseToken(s)
	return Word(t), ok
}

// ParseHex fills dst from exactly 2*len(dst) hex digits of any letter case, after an optional 0x.
// It is false, and dst undefined, for anything else.
func ParseHex(dst []byte, s string) bool {
	if len(s) == 2*len(dst)+2 && s[0] == '0' && s[1]|0x20 == 'x' {
		s = s[2:]
	}
	if len(s) != 2*len(dst) {
		return false
	}
	for i := range dst {
		hi, lo := hexDigits[s[2*i]], hexDigits[s[2*i+1]]
		if hi > 15 || lo > 15 {
			return false
		}
		dst[i] = hi<<4 | lo
	}
	return true
}

// hexDigits are the values of hex digits, and 255 for every other byte. The table is faster than
// branches, which the processor cannot predict.
var hexDigits = func() (table [256]byte) {
	for c := range table {
		table[c] = 0xff
		if v, err := strconv.ParseUint(string(rune(c)), 16, 8); err == nil {
			table[c] = byte(v)
		}
	}
	return table
}()

// ParseAddress reads 0x and 40 hex digits of any letter case. It does not verify a checksum:
// clients send addresses in every letter case.
func ParseAddress(s string) (engine.Address, bool) {
	var a engine.Address
	if len(s) != 42 {
		return a, false
	}
	ok := ParseHex(a[:], s)
	return a, ok
}

// Checksum returns a with the letter case of EIP-55: 0x and 40 hex digits.
func Checksum(a engine.Address) string {
	var text [42]byte
	text[0], text[1] = '0', 'x'
	hex.Encode(text[2:], a[:])
	sum := newHasher().keccak(text[2:])
	for i := range 40 {
		nibble := sum[i/2] >> (4 * (1 - i%2)) & 15
		if text[2+i] >= 'a' && nibble >= 8 {
			text[2+i] -= 'a' - 'A'
		}
	}
	return string(text[:])
}
