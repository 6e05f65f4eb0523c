package curve

import (
	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
)

// pureRecover is Recover in pure Go. It is compiled everywhere, so that tests can compare it with
// the C library.
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

func pureSign(digest, key *[32]byte, rs *[65]byte) bool {
	private := secp256k1.PrivKeyFromBytes(key[:])
	compact := ecdsa.SignCompact(private, digest[:], false)
	copy(rs[:], compact[1:])
	rs[64] = compact[0] - 27
	return rs[64] < 2
}

// Public returns the uncompressed public key (65 bytes) of a private key, which must be in range.
func Public(key *[32]byte) []byte {
	return secp256k1.PrivKeyFromBytes(key[:]).PubKey().SerializeUncompressed()
}
