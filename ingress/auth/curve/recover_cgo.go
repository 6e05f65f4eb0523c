//go:build cgo

package curve

import "github.com/ethereum/go-ethereum/crypto/secp256k1"

// Recovery names the code behind Recover.
const Recovery = "libsecp256k1"

// Recover returns the uncompressed public key (65 bytes, 0x04 first) behind the signature rs of
// digest: r, s, v with v 0 or 1. It is false if no key made it. digest and rs should live on the
// heap: a pointer given to C escapes. The C library takes a quarter of the time of pure Go.
func Recover(digest *[32]byte, rs *[65]byte) ([]byte, bool) {
	key, err := secp256k1.RecoverPubkey(digest[:], rs[:])
	return key, err == nil
}

// Sign writes the RFC 6979 signature of digest into rs, as r, s, v with v 0 or 1 and low s. It is
// false for a private key out of range, and for an r above n, which is less likely than any
// hardware fault.
func Sign(digest, key *[32]byte, rs *[65]byte) bool {
	signature, err := secp256k1.Sign(digest[:], key[:])
	if err != nil {
		return false
	}
	copy(rs[:], signature)
	return rs[64] < 2
}
