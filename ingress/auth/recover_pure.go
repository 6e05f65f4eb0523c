package auth

import (
	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
)

// pureRecover is the uncompressed public key (65 bytes, 0x04 first) behind a signature r, s, v with
// v 0 or 1, in pure Go. It is compiled everywhere, so that tests can hold it against the C library.
func pureRecover(digest *[32]byte, rs *[65]byte) ([]byte, bool) {
	var compact [65]byte
	compact[0] = 27 + rs[64]
	copy(compact[1:], rs[:64])
	key, _, err := ecdsa.RecoverCompact(compact[:], digest[:])
	if err != nil {
		return nil, false
	}
	return key.SerializeUncompressed(), true
}

// pureSign writes the RFC 6979 signature of digest, as r, s, v with v 0 or 1 and low s.
func pureSign(digest, key *[32]byte, rs *[65]byte) bool {
	private := secp256k1.PrivKeyFromBytes(key[:])
	compact := ecdsa.SignCompact(private, digest[:], false)
	copy(rs[:], compact[1:])
	rs[64] = compact[0] - 27
	return rs[64] < 2
}

// purePublic is the uncompressed public key of a private one, which must be in [1, n-1].
func purePublic(key *[32]byte) []byte {
	return secp256k1.PrivKeyFromBytes(key[:]).PubKey().SerializeUncompressed()
}
