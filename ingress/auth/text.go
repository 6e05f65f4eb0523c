package auth

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"

	"clobd/engine"
)

// Word is an unsigned 256-bit integer, big endian: one word of a signed struct.
type Word [32]byte

// WordOf is v as a Word.
func WordOf(v uint64) Word {
	var w Word
	binary.BigEndian.PutUint64(w[24:], v)
	return w
}

// Uint64 is the value of w, and false if it needs more than 64 bits.
func (w *Word) Uint64() (uint64, bool) {
	for _, b := range w[:24] {
		if b != 0 {
			return 0, false
		}
	}
	return binary.BigEndian.Uint64(w[24:]), true
}

// maxWordDigits is the length of 2^256 - 1 in decimal.
const maxWordDigits = 78

// chunkDigits are as many decimal digits as surely fit into 64 bits, with the power of ten above
// them: a word is read by so many at a time.
const chunkDigits = 19

// ParseWord reads a decimal unsigned 256-bit integer: 1 to 78 digits and nothing else. It is false
// for an empty text, a sign, a blank, any other character, and for values of 2^256 or more.
func ParseWord(s string) (Word, bool) {
	if len(s) == 0 || len(s) > maxWordDigits {
		return Word{}, false
	}
	var limbs [4]uint64 // little endian
	for len(s) > 0 {
		n := min(len(s), chunkDigits)
		carry, scale := uint64(0), uint64(1)
		for i := range n {
			digit := s[i] - '0'
			if digit > 9 {
				return Word{}, false
			}
			carry, scale = carry*10+uint64(digit), scale*10
		}
		s = s[n:]
		for j := range limbs {
			hi, lo := bits.Mul64(limbs[j], scale)
			var over uint64
			limbs[j], over = bits.Add64(lo, carry, 0)
			carry = hi + over
		}
		if carry != 0 {
			return Word{}, false
		}
	}
	var w Word
	for j, limb := range limbs {
		binary.BigEndian.PutUint64(w[24-8*j:], limb)
	}
	return w, true
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

// hexDigits are the values of bytes, above 15 of those that are no hex digit: branches on digits
// that nobody can foresee cost more than the look.
var hexDigits = func() (table [256]byte) {
	for c := range table {
		switch {
		case '0' <= c && c <= '9':
			table[c] = byte(c - '0')
		case 'a' <= c && c <= 'f':
			table[c] = byte(c - 'a' + 10)
		case 'A' <= c && c <= 'F':
			table[c] = byte(c - 'A' + 10)
		default:
			table[c] = 0xff
		}
	}
	return table
}()

// ParseAddress reads 0x and 40 hex digits. Letter case means nothing: clients send lower case,
// upper case and every flavour of checksum, and an address is compared by its bytes.
func ParseAddress(s string) (engine.Address, bool) {
	var a engine.Address
	if len(s) != 42 {
		return a, false
	}
	ok := ParseHex(a[:], s)
	return a, ok
}

// Checksum is a with the letter case of EIP-55: 0x and 40 hex digits.
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
