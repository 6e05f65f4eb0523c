package auth

import (
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"clobd/engine"
	"clobd/ingress/auth/curve"
)

// Signer signs as one account, as a client does. Signatures are deterministic (RFC 6979): the same
// order always has the same bytes. Any number of goroutines may use one.
type Signer struct {
	Address engine.Address // of the key; never changed

	key  [32]byte
	pool sync.Pool // *hasher
}

// NewSigner makes a Signer of a private key, which must be in [1, n-1].
func NewSigner(key [32]byte) (*Signer, error) {
	if !curve.InRange(key[:]) {
		return nil, errors.New("private key out of range")
	}
	s := &Signer{key: key}
	s.pool.New = func() any { return newHasher() }
	s.Address = newHasher().account(curve.Public(&key))
	return s, nil
}

// SignOrder signs o for d and returns the signature (65 bytes, of type 3 317) and the order's hash.
// o must be complete: for types 0 to 2 its Signer is this account, for type 3 its Maker and Signer
// are the wallet that this account owns.
func (s *Signer) SignOrder(o *Order, d *Domain) ([]byte, engine.OrderID, error) {
	if reason := o.refusal(); reason != "" {
		return nil, engine.OrderID{}, fmt.Errorf("sign order: %s", reason)
	}
	if o.Version != d.structVersion() {
		return nil, engine.OrderID{}, fmt.Errorf("sign order: struct V%d for %s", o.Version, d)
	}
	nested := o.SignatureType == TypeWallet
	if !nested && o.Signer != s.Address {
		return nil, engine.OrderID{}, fmt.Errorf("sign order: the signer is %s, the key's account %s",
			Checksum(o.Signer), Checksum(s.Address))
	}
	h := s.pool.Get().(*hasher)
	defer s.pool.Put(h)
	separator := h.separator(d)
	made := h.digests(o, &separator, d.Chain)
	id := engine.OrderID(made.Hash)
	h.digest = made.Signed
	if err := s.sign(h); err != nil {
		return nil, engine.OrderID{}, fmt.Errorf("sign order: %w", err)
	}
	if !nested {
		return append([]byte(nil), h.rs[:]...), id, nil
	}
	parts := nestedParts{h.rs[:], separator, made.Struct}
	return appendNested(make([]byte, 0, NestedSize), &parts), id, nil
}

// sign leaves the signature of h.digest in h.rs, with v 27 or 28.
func (s *Signer) sign(h *hasher) error {
	if !curve.Sign(&h.digest, &s.key, &h.rs) {
		return errors.New("the curve refused")
	}
	h.rs[64] += 27
	return nil
}

// SignAuth signs the message that asks for API keys and returns 0x and 130 hex digits for the
// header. timestamp is in seconds, and its header must have the same text.
func (s *Signer) SignAuth(chain uint64, timestamp string, nonce uint32) (string, error) {
	h := s.pool.Get().(*hasher)
	defer s.pool.Put(h)
	h.digest = AuthDigests(chain, s.Address, timestamp, WordOf(uint64(nonce))).Signed
	if err := s.sign(h); err != nil {
		return "", fmt.Errorf("sign auth: %w", err)
	}
	return "0x" + hex.EncodeToString(h.rs[:]), nil
}
