package auth

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"clobd/engine"
)

// L1Request is a request for API keys. The account itself signs it, because it has no key yet.
// Nonce is decimal, and 0 if empty. Chain, if not empty, is the only chain to check, in decimal.
type L1Request struct{ Address, Signature, Timestamp, Nonce, Chain string }

// The errors of VerifyL1. All but ErrNonce are an ErrL1: a failed authentication. An ErrL1 may also
// be an ErrTimestamp or an ErrWindow. ErrNonce is about a number that no key can have: a bad
// request.
var (
	ErrL1          = errors.New("request for a key")
	ErrL1Missing   = fmt.Errorf("%w: a header is missing", ErrL1)
	ErrL1Address   = fmt.Errorf("%w: the address is malformed", ErrL1)
	ErrL1Chain     = fmt.Errorf("%w: the chain is not this node's", ErrL1)
	ErrL1Form      = fmt.Errorf("%w: the signature is malformed", ErrL1)
	ErrL1Signature = fmt.Errorf("%w: the signature is another account's", ErrL1)
	ErrNonce       = errors.New("the nonce is no unsigned integer below 2^32")
)

// VerifyL1 checks a ClobAuth signature for one of chains at time now. It returns the account, and
// the nonce that the account asks a key for. The errors are those above.
func VerifyL1(r *L1Request, chains []uint64, now time.Time) (engine.Address, uint32, error) {
	if r.Address == "" || r.Signature == "" || r.Timestamp == "" {
		return engine.Address{}, 0, ErrL1Missing
	}
	address, ok := ParseAddress(r.Address)
	if !ok {
		return engine.Address{}, 0, ErrL1Address
	}
	if err := fresh(r.Timestamp, now); err != nil {
		return engine.Address{}, 0, fmt.Errorf("%w: %w", ErrL1, err)
	}
	nonce, err := parseNonce(r.Nonce)
	if err != nil {
		return engine.Address{}, 0, err
	}
	if r.Chain != "" {
		only, err := strconv.ParseUint(r.Chain, 10, 64)
		if err != nil || !slices.Contains(chains, only) {
			return engine.Address{}, 0, ErrL1Chain
		}
		chains = []uint64{only}
	}
	var signature [SignatureSize]byte
	if !ParseHex(signature[:], r.Signature) {
		return engine.Address{}, 0, ErrL1Form
	}
	h := newHasher()
	if h.load(signature[:]) != "" {
		return engine.Address{}, 0, ErrL1Form
	}
	for _, chain := range chains {
		h.digest = AuthDigests(chain, address, r.Timestamp, WordOf(uint64(nonce))).Signed
		if who, ok := h.recover(); ok && who == address {
			return address, nonce, nil
		}
	}
	return engine.Address{}, 0, ErrL1Signature
}

// parseNonce reads the number of a key, of 32 bits: a passphrase has room for no more.
func parseNonce(s string) (uint32, error) {
	if s == "" {
		return 0, nil
	}
	v, err := strconv.ParseUint(s, 10, 32)
	if err != nil || len(s) > maxWordDigits {
		return 0, ErrNonce
	}
	return uint32(v), nil
}
