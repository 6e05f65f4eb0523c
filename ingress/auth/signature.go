package auth

import (
	"encoding/binary"

	"clobd/engine"
	"clobd/ingress/auth/curve"
)

const (
	// SignatureSize is the length of a plain signature: r, s, v.
	SignatureSize = 65
	// NestedSize is the length of a deposit wallet's signature: the owner's signature, the
	// exchange's separator, the order's struct hash, the type string of the order, and the length
	// of that string in two bytes.
	NestedSize = SignatureSize + 32 + 32 + len(OrderTypeV2) + 2
)

// load checks the form of a plain signature and copies it to h.rs, with v as 0 or 1. It returns the
// reason for a refusal, or "". Every signature has a twin with n-s for s. Only the one with the low
// s is accepted, so nobody can make a second valid signature from a first.
func (h *hasher) load(signature []byte) string {
	if len(signature) != SignatureSize {
		return ReasonLength
	}
	v := signature[64]
	if v == 27 || v == 28 {
		v -= 27
	}
	switch {
	case v > 1:
		return ReasonV
	case !curve.InRange(signature[:32]):
		return ReasonR
	case !curve.InRange(signature[32:64]):
		return ReasonS
	case curve.IsHigh(signature[32:64]):
		return ReasonHighS
	}
	copy(h.rs[:], signature[:64])
	h.rs[64] = v
	return ""
}

// recover returns the address that made the loaded signature over h.digest, and leaves the key in
// h.key. It is false if no key made the signature.
func (h *hasher) recover() (engine.Address, bool) {
	key, ok := curve.Recover(&h.digest, &h.rs)
	if !ok {
		return engine.Address{}, false
	}
	h.key = key
	return h.account(key), true
}

// account returns the address of an uncompressed public key of 65 bytes.
func (h *hasher) account(key []byte) engine.Address {
	sum := h.keccak(key[1:])
	return engine.Address(sum[12:])
}

// nestedParts are the parts of a deposit wallet's signature that differ between orders.
type nestedParts struct {
	inner               []byte // the owner's plain signature
	separator, contents [32]byte
}

// splitNested parses a deposit wallet's signature. It also returns the reason for a refusal, or "".
func splitNested(signature []byte) (nestedParts, string) {
	if len(signature) != NestedSize {
		return nestedParts{}, ReasonLength
	}
	inner, rest := signature[:SignatureSize], signature[SignatureSize:]
	text := rest[64 : len(rest)-2]
	if int(binary.BigEndian.Uint16(rest[len(rest)-2:])) != len(text) || string(text) != OrderTypeV2 {
		return nestedParts{}, ReasonTypeString
	}
	return nestedParts{inner, [32]byte(rest[:32]), [32]byte(rest[32:64])}, ""
}

func appendNested(dst []byte, p *nestedParts) []byte {
	dst = append(dst, p.inner...)
	dst = append(dst, p.separator[:]...)
	dst = append(dst, p.contents[:]...)
	dst = append(dst, OrderTypeV2...)
	return binary.BigEndian.AppendUint16(dst, uint16(len(OrderTypeV2)))
}
