//go:build cgo

package budget

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/crypto/secp256k1"
)

// check is what libsecp256k1 takes to check a signature.
func check(digest, key []byte) (micros float64, err error) {
	signature, err := secp256k1.Sign(digest, key)
	if err != nil {
		return 0, fmt.Errorf("sign: %w", err)
	}
	public, err := secp256k1.RecoverPubkey(digest, signature)
	if err != nil {
		return 0, fmt.Errorf("recover: %w", err)
	}
	good := true
	micros, err = spent(func() {
		good = good && secp256k1.VerifySignature(public, digest, signature[:64])
	})
	if !good {
		return 0, errors.New("libsecp256k1 refuses its own signature")
	}
	return micros, err
}
