//go:build cgo

package auth

import "github.com/ethereum/go-ethereum/crypto/secp256k1"

// curveName says which implementation of the curve this build has. The C library recovers a key
// about four times as fast as pure Go, and recovering is what a signed order costs.
const curveName = "libsecp256k1 (C)"

// curveRecover is the uncompressed public key (65 bytes, 0x04 first) behind a signature r, s, v
// with v 0 or 1. digest and rs should live on the heap: a pointer given to C escapes.
func curveRecover(digest *[32]byte, rs *[65]byte) ([]byte, bool) {
	key, err := secp256k1.RecoverPubkey(digest[:], rs[:])
	return key, err == nil
}

// curveSign writes the RFC 6979 signature of digest, as r, s, v with v 0 or 1 and low s. It is
// false for a key out of range, and, less likely than any hardware fault, for an r above n.
func curveSign(digest, key *[32]byte, rs *[65]byte) bool {
	signature, err := secp256k1.Sign(digest[:], key[:])
	if err != nil {
		return false
	}
	copy(rs[:], signature)
	return rs[64] < 2
}
