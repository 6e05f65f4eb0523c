package engine

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strconv"
)

// AppendDecimal appends v / 10^digits, digits in [0, 18], as the shortest decimal text.
func AppendDecimal(dst []byte, v int64, digits int) []byte {
	u := uint64(v)
	if v < 0 {
		dst, u = append(dst, '-'), -u
	}
	one := uint64(1)
	for range digits {
		one *= 10
	}
	dst = strconv.AppendUint(dst, u/one, 10)
	rest := u % one
	if rest == 0 {
		return dst
	}
	dst = append(dst, '.')
	for rest != 0 {
		one /= 10
		dst = append(dst, '0'+byte(rest/one))
		rest %= one
	}
	return dst
}

// String is the price in units of collateral: "0.51".
func (p Price) String() string { return string(AppendDecimal(nil, int64(p), 4)) }

// String is the size in shares: "21.04".
func (s Size) String() string { return string(AppendDecimal(nil, int64(s), 6)) }

// String is the amount in units of collateral: "100".
func (c Cash) String() string { return string(AppendDecimal(nil, int64(c), 6)) }

// tenTo19 is the largest power of ten in 64 bits: tokens are printed in steps of 19 digits.
const tenTo19 = 10_000_000_000_000_000_000

// AppendDecimal appends the token's id as an unsigned decimal number.
func (t Token) AppendDecimal(dst []byte) []byte {
	var limbs [4]uint64
	for i := range limbs {
		limbs[i] = binary.BigEndian.Uint64(t[8*i:])
	}
	var text [80]byte // 2^256 has 78 digits
	at := len(text)
	for {
		rest, more := uint64(0), uint64(0)
		for i := range limbs {
			limbs[i], rest = bits.Div64(rest, limbs[i], tenTo19)
			more |= limbs[i]
		}
		stop := at - 19
		for rest != 0 || (more != 0 && at > stop) {
			at--
			text[at] = '0' + byte(rest%10)
			rest /= 10
		}
		if more == 0 {
			break
		}
	}
	if at == len(text) {
		return append(dst, '0')
	}
	return append(dst, text[at:]...)
}

// String is the token's id as an unsigned decimal number.
func (t Token) String() string { return string(t.AppendDecimal(nil)) }

// Token ids are read in pieces of pieceDigits digits, in base pieceRange.
const (
	pieceDigits = 16
	pieceRange  = 1e16
)

// ParseToken reads an unsigned decimal number of at most 256 bits: digits only, at least one.
func ParseToken(s string) (Token, bool) {
	if s == "" {
		return Token{}, false
	}
	head, limbs := (len(s)-1)%pieceDigits+1, [4]uint64{} // least significant first
	piece := [pieceDigits]byte([]byte("0000000000000000"))
	copy(piece[pieceDigits-head:], s)
	for at := head; ; at += pieceDigits {
		carry, good := sixteenDigits(&piece)
		for i := range limbs {
			hi, lo := bits.Mul64(limbs[i], pieceRange)
			sum, c := bits.Add64(lo, carry, 0)
			limbs[i], carry = sum, hi+c
		}
		if !good || carry != 0 {
			return Token{}, false
		}
		if at == len(s) {
			break
		}
		copy(piece[:], s[at:])
	}
	var t Token
	for i, v := range limbs {
		binary.BigEndian.PutUint64(t[24-8*i:], v)
	}
	return t, true
}

// sixteenDigits returns the value of 16 digits, and whether all of them are digits.
func sixteenDigits(b *[pieceDigits]byte) (v uint64, good bool) {
	high, low := binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])
	return eightDigits(high)*1e8 + eightDigits(low), areDigits(high) && areDigits(low)
}

// areDigits reports whether all bytes of w are digits: the upper half is 3, also after adding 6.
func areDigits(w uint64) bool {
	const upper = 0xf0f0f0f0f0f0f0f0
	return w&upper|(w+0x0606060606060606)&upper>>4 == 0x3333333333333333
}

// eightDigits returns the value of the digits in w, the first in the lowest byte.
func eightDigits(w uint64) uint64 {
	w &= 0x0f0f0f0f0f0f0f0f
	w = w * (1 + 10<<8) >> 8 & 0x00ff00ff00ff00ff
	w = w * (1 + 100<<16) >> 16 & 0x0000ffff0000ffff
	return w * (1 + 10000<<32) >> 32
}

// AppendHex appends b as 0x and lower-case hexadecimal digits.
func AppendHex(dst, b []byte) []byte {
	return hex.AppendEncode(append(dst, '0', 'x'), b)
}

// ParseHex fills dst from 0x or 0X and two hexadecimal digits for each byte, of either letter case.
// It returns false for anything else, and dst is then undefined.
func ParseHex(dst []byte, s string) bool {
	if len(s) != 2+2*len(dst) || s[0] != '0' || s[1]|0x20 != 'x' {
		return false
	}
	_, err := hex.Decode(dst, []byte(s[2:]))
	return err == nil
}

// ParseOrderID reads an order id as ParseHex does.
func ParseOrderID(s string) (id OrderID, ok bool) {
	ok = ParseHex(id[:], s)
	return id, ok
}

// ParseCondition reads a condition id as ParseHex does.
func ParseCondition(s string) (c Condition, ok bool) {
	ok = ParseHex(c[:], s)
	return c, ok
}

// AppendUUID appends 16 bytes as a UUID: 32 lower-case hexadecimal digits with four dashes.
func AppendUUID(dst []byte, id [16]byte) []byte {
	from := 0
	for i, to := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, id[from:to])
		from = to
	}
	return dst
}

// Hex is the address as 0x and 40 lower-case hexadecimal digits.
func (a Address) Hex() string { return string(AppendHex(make([]byte, 0, 42), a[:])) }

// Hex is the condition id as 0x and 64 lower-case hexadecimal digits.
func (c Condition) Hex() string { return string(AppendHex(make([]byte, 0, 66), c[:])) }

// Hex is the order id as 0x and 64 lower-case hexadecimal digits.
func (o OrderID) Hex() string { return string(AppendHex(make([]byte, 0, 66), o[:])) }
