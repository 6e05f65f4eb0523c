//go:build !cgo

package bench

import "github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

// recoverKey is the uncompressed public key behind a 65-byte signature.
func recoverKey(hash, signature []byte) ([]byte, error) {
	compact := append([]byte{signature[64] + 27}, signature[:64]...)
	key, _, err := ecdsa.RecoverCompact(compact, hash)
	if err != nil {
		return nil, err
	}
	return key.SerializeUncompressed(), nil
}
