package auth

import (
	"encoding/binary"
	"errors"
	"fmt"

	"clobd/engine"
)

// Proof is the evidence that is journaled with an order: the signature and every signed field that
// the order's Command does not hold. With the journal alone every order can be verified again.
type Proof struct {
	Separator [32]byte
	Chain     uint64 // part of what a deposit wallet's owner signs
	// Order has every signed field but Maker, Signer, Token and Side.
	Order Order
	// Signature is r, s, v as sent. For a deposit wallet it is the owner's: the rest of the 317
	// bytes follows from the other fields.
	Signature [SignatureSize]byte
}

// Layout, all integers big endian:
//
//	format 1 · struct version 1 · signature type 1 · separator 32 · signature 65 ·
//	chain, makerAmount, takerAmount, salt ·
//	V1: taker 20, expiration, nonce, feeRate        V2: timestamp, metadata, builder
//
// A number is one byte of length and that many bytes without leading zeros. Most words of real
// orders are short: a typical proof has 150 bytes, the longest 361.
const proofFormat = 1

// proofMax is the length of the longest proof: V1 with all numbers of full length.
const proofMax = 3 + 32 + SignatureSize + 3*9 + 33 + 20 + 3*33

// AppendProof appends the Proof of o to dst, at most 361 bytes. Verify must have accepted o with
// this signature (65 or 317 bytes) and returned found.
func (o *Order) AppendProof(dst []byte, found *Verified, signature []byte) []byte {
	if len(signature) < SignatureSize {
		panic(fmt.Sprintf("BUG: proof of an order with a signature of %d bytes", len(signature)))
	}
	p := Proof{Separator: found.Separator, Chain: found.Chain, Order: *o}
	copy(p.Signature[:], signature)
	return p.Append(dst)
}

// Append appends p to dst in the form that ParseProof reads.
func (p *Proof) Append(dst []byte) []byte {
	o := &p.Order
	dst = append(dst, proofFormat, o.Version, o.SignatureType)
	dst = append(dst, p.Separator[:]...)
	dst = append(dst, p.Signature[:]...)
	for _, v := range [3]uint64{p.Chain, o.MakerAmount, o.TakerAmount} {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], v)
		dst = appendNumber(dst, b[:])
	}
	dst = appendNumber(dst, o.Salt[:])
	if o.Version == 1 {
		dst = append(dst, o.Taker[:]...)
	}
	for _, w := range o.tail() {
		dst = appendNumber(dst, w[:])
	}
	return dst
}

// tail returns the words in which the two structs differ.
func (o *Order) tail() [3]*Word {
	if o.Version == 1 {
		return [3]*Word{&o.Expiration, &o.Nonce, &o.FeeRate}
	}
	return [3]*Word{&o.Timestamp, &o.Metadata, &o.Builder}
}

func appendNumber(dst, b []byte) []byte {
	for len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	return append(append(dst, byte(len(b))), b...)
}

// errProof is wrapped by every error of ParseProof.
var errProof = errors.New("malformed proof")

// ParseProof reads what Append wrote, and does not keep b. Each Proof has one encoding.
func ParseProof(b []byte) (Proof, error) {
	var p Proof
	r := proofReader{rest: b}
	head := r.take(3)
	if r.bad == "" && head[0] != proofFormat {
		return Proof{}, fmt.Errorf("%w: format %d, want %d", errProof, head[0], proofFormat)
	}
	if r.bad == "" && (head[1] != 1 && head[1] != 2 || head[2] > TypeWallet) {
		return Proof{}, fmt.Errorf("%w: struct version %d with signature type %d",
			errProof, head[1], head[2])
	}
	if r.bad == "" {
		p.Order.Version, p.Order.SignatureType = head[1], head[2]
	}
	copy(p.Separator[:], r.take(32))
	copy(p.Signature[:], r.take(SignatureSize))
	for _, v := range []*uint64{&p.Chain, &p.Order.MakerAmount, &p.Order.TakerAmount} {
		var word [8]byte
		r.number(word[:])
		*v = binary.BigEndian.Uint64(word[:])
	}
	r.number(p.Order.Salt[:])
	if p.Order.Version == 1 {
		copy(p.Order.Taker[:], r.take(20))
	}
	for _, w := range p.Order.tail() {
		r.number(w[:])
	}
	if r.bad == "" && len(r.rest) != 0 {
		r.bad = "bytes after the end"
	}
	if r.bad != "" {
		return Proof{}, fmt.Errorf("%w: %s (of %d bytes)", errProof, r.bad, len(b))
	}
	return p, nil
}

// BuilderOf returns the builder's code of the order of a proof, or zero. Orders of V1 have none.
func BuilderOf(proof []byte) [32]byte {
	p, err := ParseProof(proof)
	if err != nil || p.Order.Version == 1 {
		return [32]byte{}
	}
	return p.Order.Builder
}

// proofReader parses a proof. After the first error, bad, take returns nil.
type proofReader struct {
	rest []byte
	bad  string
}

func (r *proofReader) take(n int) []byte {
	if r.bad != "" || len(r.rest) < n {
		if r.bad == "" {
			r.bad = "truncated"
		}
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// number reads a number into word, right-aligned.
func (r *proofReader) number(word []byte) {
	n := r.take(1)
	if n == nil {
		return
	}
	if int(n[0]) > len(word) {
		r.bad = "number too long"
		return
	}
	b := r.take(int(n[0]))
	if len(b) > 0 && b[0] == 0 {
		r.bad = "number with a leading zero"
		return
	}
	copy(word[len(word)-len(b):], b)
}

// Verify checks p again for an order of wallet under an API key of owner, and returns the order's
// id. It trusts p.Separator, which Verifier.Find knows. The error is a *SignatureError.
func (p *Proof) Verify(
	wallet, owner engine.Address, token engine.Token, side engine.Side,
) (engine.OrderID, error) {
	o := p.Order
	o.Maker, o.Signer, o.Token, o.Side = wallet, owner, token, side
	if o.SignatureType == TypeWallet {
		o.Signer = wallet
	}
	h := newHasher()
	reason := o.refusal()
	if reason == "" {
		reason = h.load(p.Signature[:])
	}
	if reason != "" {
		return engine.OrderID{}, &SignatureError{Reason: reason}
	}
	made := h.digests(&o, &p.Separator, p.Chain)
	id := engine.OrderID(made.Hash)
	h.digest = made.Signed
	who, ok := h.recover()
	switch {
	case !ok:
		return id, &SignatureError{Reason: ReasonRecover, Hash: id, Tried: 1}
	case who != owner:
		return id, &SignatureError{Reason: ReasonSigner, Hash: id, Tried: 1, Recovered: who}
	}
	return id, nil
}
