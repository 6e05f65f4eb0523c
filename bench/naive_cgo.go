//go:build cgo

package bench

import "github.com/ethereum/go-ethereum/crypto/secp256k1"

// recoverKey is the uncompressed public key behind a 65-byte signature.
func recoverKey(hash, signature []byte) ([]byte, error) {
	return secp256k1.RecoverPubkey(hash, signature)
}
