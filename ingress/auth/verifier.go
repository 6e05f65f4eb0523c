package auth

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"clobd/engine"
	"clobd/ingress/auth/curve"
	"clobd/ingress/auth/lanes"
)

// The reasons why an order's signature is refused: stable words, for machines and logs.
const (
	ReasonVersion    = "unknown_struct_version"
	ReasonType       = "unknown_signature_type"
	ReasonSide       = "unknown_side"
	ReasonMaker      = "maker_is_not_signer" // types 0 and 3
	ReasonDomain     = "no_domain"           // no domain fits, or for type 3 not the one that was signed for
	ReasonLength     = "signature_length"
	ReasonV          = "signature_v"
	ReasonR          = "signature_r"
	ReasonS          = "signature_s"
	ReasonHighS      = "signature_high_s"
	ReasonTypeString = "signature_type_string" // type 3: not the string of the order's struct
	ReasonContents   = "signature_contents"    // type 3: made for another order
	ReasonRecover    = "signature_of_nobody"
	ReasonSigner     = "signer_mismatch"
)

// SignatureError says why an order's signature was refused, and what the node computed before, for
// the author of a client to compare.
type SignatureError struct {
	Reason    string         // one of the Reasons
	Hash      engine.OrderID // the order's hash in Domain; zero if none could be computed
	Domain    Domain         // the first one tried; zero if there is none
	Tried     int            // how many domains were tried
	Recovered engine.Address // who signed if Domain is the right one; zero if nobody
}

// Error names the reason, the hash and the domain.
func (e *SignatureError) Error() string {
	if e.Domain.Name == "" {
		return "order signature: " + e.Reason
	}
	text := fmt.Sprintf("order signature: %s: hash %#x in %s", e.Reason, e.Hash[:], e.Domain.String())
	if e.Recovered != (engine.Address{}) {
		text += ", recovered " + Checksum(e.Recovered)
	}
	return text
}

// Verified is what a valid signature proves.
type Verified struct {
	ID engine.OrderID // the order's hash

	// Signer is the EOA that signed; for type 3 that is the wallet's owner. The caller must compare
	// it with the address behind the API key, and check that the maker belongs to it.
	Signer engine.Address

	Domain    int // index into Verifier.Domains
	Separator [32]byte
	Chain     uint64
}

type readyDomain struct {
	separator [32]byte
	chain     uint64
	domain    int
}

// hintSlots is the size of the table of hints: 64 KiB, more signers than a node has busy traders.
const hintSlots = 1 << 14

// Verifier checks order signatures against the domains of one node. Any number of goroutines may
// use one.
type Verifier struct {
	Domains []Domain // never changed after NewVerifier

	// ready are the domains by struct version - 1 and by kind of market: 0 normal, 1 neg-risk.
	ready [2][2][]readyDomain
	// hints hold, by signer, 1 + the position of the domain that matched last. Two signers may
	// share a slot: a wrong hint costs a second recovery and nothing else.
	hints [hintSlots]atomic.Uint32
	// owners hold, by deposit wallet, who signed the wallet's last order: 128 KiB. A wrong owner
	// costs one check.
	owners [hintSlots]atomic.Pointer[engine.Address]
	hot    *hotSigners
	lanes  bool // lists are hashed in lanes

	pool  sync.Pool // *hasher
	lists sync.Pool // *listing
}

// NewVerifier makes a Verifier of the given domains. An order of an unknown signer is tried against
// them in that order. A repeated domain counts once.
func NewVerifier(domains []Domain) *Verifier {
	v := &Verifier{Domains: append([]Domain(nil), domains...), lanes: lanes.Have(),
		hot: newHotSigners(hotLimit, curve.NewChecker(true))}
	v.lists.New = func() any { return &listing{v: v, press: press{h: newHasher(), lanes: v.lanes}} }
	v.pool.New = func() any { return newHasher() }
	h := newHasher()
	for i := range v.Domains {
		d := &v.Domains[i]
		r := readyDomain{separator: h.separator(d), chain: d.Chain, domain: i}
		for kind, negRisk := range [2]bool{false, true} {
			rows := &v.ready[d.structVersion()-1][kind]
			if d.serves(negRisk) && find(*rows, &r.separator) < 0 {
				*rows = append(*rows, r)
			}
		}
	}
	return v
}

// Lanes reports whether v uses the widest registers of the processor.
func (v *Verifier) Lanes() bool { return v.lanes }

// Body names the code that checks signatures, why not the fastest if another does, and the code
// that recovers the key where the first one does not confirm who is said to have signed.
func (v *Verifier) Body() string {
	body := "lanes of AVX-512"
	switch {
	case v.lanes:
	case lanes.Have():
		body = "Go (the lanes are switched off)"
	default:
		body = "Go (no lanes: " + lanes.Lack + ")"
	}
	return body + ", what it does not confirm is recovered by " + curve.Recovery
}

// WithoutLanes makes v do without the widest registers of the processor, for one that is not
// trusted with them. The answers stay the same. It must be called before v is used.
func (v *Verifier) WithoutLanes() {
	v.lanes, v.hot = false, newHotSigners(hotLimit, curve.NewChecker(false))
}

func find(rows []readyDomain, separator *[32]byte) int {
	for i := range rows {
		if rows[i].separator == *separator {
			return i
		}
	}
	return -1
}

// Find returns the index into Domains of the domain with that separator, and false if there is
// none. A journaled Proof for an exchange that this node does not know proves nothing.
func (v *Verifier) Find(separator [32]byte) (int, bool) {
	for _, kinds := range v.ready {
		for _, rows := range kinds {
			if i := find(rows, &separator); i >= 0 {
				return rows[i].domain, true
			}
		}
	}
	return 0, false
}

// Verify returns the domain and the key that signed o, which is for a market of the given kind. The
// error is a *SignatureError.
//
// Each domain that Verify tries costs two keccaks and one key recovery, the expensive part. It
// begins with the domain that this signer matched last, so it usually recovers once. For a signer
// that it knows it checks the signature instead, at half the price or less. Nothing here is secret.
func (v *Verifier) Verify(o *Order, signature []byte, negRisk bool) (Verified, error) {
	if o.Version != 1 && o.Version != 2 {
		return Verified{}, &SignatureError{Reason: ReasonVersion}
	}
	rows := v.rows(o, negRisk)
	if len(rows) == 0 {
		return Verified{}, &SignatureError{Reason: ReasonDomain}
	}
	t := trial{v: v, o: o, rows: rows, h: v.pool.Get().(*hasher), first: v.first(o, rows)}
	defer v.pool.Put(t.h)
	t.contents = t.h.order(o)

	found, at, err := t.run(signature)
	if err == nil {
		v.matched(o, at)
	}
	return found, err
}

// rows returns the domains that an order of version 1 or 2 may be signed for.
func (v *Verifier) rows(o *Order, negRisk bool) []readyDomain {
	kind := 0
	if negRisk {
		kind = 1
	}
	return v.ready[o.Version-1][kind]
}

// first returns the position in rows of the domain to try first, 0 or what matched has noted.
func (v *Verifier) first(o *Order, rows []readyDomain) int {
	at := int(v.hints[hintSlot(&o.Signer)].Load()) - 1
	if at < 0 || at >= len(rows) {
		return 0
	}
	return at
}

// matched notes the position of the domain that an order was signed for.
func (v *Verifier) matched(o *Order, at int) {
	if hint := &v.hints[hintSlot(&o.Signer)]; hint.Load() != uint32(at+1) {
		hint.Store(uint32(at + 1))
	}
}

// hintSlot returns the slot of an address. Any bits of an address are as good as random.
func hintSlot(a *engine.Address) uint32 {
	return binary.LittleEndian.Uint32(a[8:]) % hintSlots
}

type trial struct {
	v        *Verifier
	o        *Order
	h        *hasher
	rows     []readyDomain
	first    int // position in rows of the domain to try first
	contents [32]byte
}

// run also returns the position of the domain that matched.
func (t *trial) run(signature []byte) (Verified, int, error) {
	if reason := t.o.refusal(); reason != "" {
		return t.fail(reason)
	}
	if t.o.SignatureType == TypeWallet {
		return t.nested(signature)
	}
	return t.plain(signature)
}

func (t *trial) plain(signature []byte) (Verified, int, error) {
	if reason := t.h.load(signature); reason != "" {
		return t.fail(reason)
	}
	if at := t.check(); at >= 0 {
		return t.rows[at].found(t.h.digest, t.o.Signer), at, nil
	}
	return t.recovered()
}

// recovered decides on the loaded signature by recovery alone.
func (t *trial) recovered() (Verified, int, error) {
	failure := SignatureError{Reason: ReasonRecover}
	for i := range t.rows {
		at := (t.first + i) % len(t.rows)
		r := &t.rows[at]
		t.h.digest = t.h.typed(&r.separator, &t.contents)
		who, ok := t.h.recover()
		if ok && who == t.o.Signer {
			t.v.hot.counted(who, t.h.key)
			return r.found(t.h.digest, who), at, nil
		}
		if i == 0 {
			failure.Hash, failure.Recovered = t.h.digest, who
			failure.Domain = t.v.Domains[r.domain]
		}
		if ok {
			failure.Reason = ReasonSigner
		}
	}
	failure.Tried = len(t.rows)
	out := failure // only what is returned goes to the heap
	return Verified{}, 0, &out
}

// check returns the position of the domain for which the signer that the order names signed it. It
// returns -1 if that signer signed for none: then recovery decides.
func (t *trial) check() int {
	guess, ok := t.v.hot.guess(&t.o.Signer, t.h)
	if !ok {
		return -1
	}
	found := -1
	for i := 0; i < len(t.rows) && found < 0; i++ {
		at := (t.first + i) % len(t.rows)
		t.h.digest = t.h.typed(&t.rows[at].separator, &t.contents)
		if guess.signed(t.h) {
			found = at
		}
	}
	guess.settle(found >= 0, t.h)
	return found
}

// nested verifies a deposit wallet's order, for the domain that the signature names. The order
// names no owner: the caller of Verify must check whether the wallet is the signer's.
func (t *trial) nested(signature []byte) (Verified, int, error) {
	parts, reason := splitNested(signature)
	if reason == "" {
		reason = t.h.load(parts.inner)
	}
	if reason != "" {
		return t.fail(reason)
	}
	at := find(t.rows, &parts.separator)
	if at < 0 {
		return t.fail(ReasonDomain)
	}
	t.first = at
	if parts.contents != t.contents {
		return t.fail(ReasonContents)
	}
	r := &t.rows[at]
	wrapped := t.h.nested(&t.contents, r.chain, &t.o.Signer)
	t.h.digest = t.h.typed(&r.separator, &wrapped)
	owner, ok := t.owner()
	if !ok {
		return t.fail(ReasonRecover)
	}
	return r.found(t.h.typed(&r.separator, &t.contents), owner), at, nil
}

// owner returns who signed the digest of a deposit wallet's order. It checks the signer of the
// wallet's last order first.
func (t *trial) owner() (engine.Address, bool) {
	slot := &t.v.owners[hintSlot(&t.o.Signer)]
	last := slot.Load()
	if last != nil {
		if guess, ok := t.v.hot.guess(last, t.h); ok {
			signed := guess.signed(t.h)
			if guess.settle(signed, t.h); signed {
				return *last, true
			}
		}
	}
	owner, ok := t.h.recover()
	if !ok {
		return owner, false
	}
	t.v.hot.counted(owner, t.h.key)
	if last == nil || *last != owner {
		kept := owner // only what is kept goes to the heap
		slot.Store(&kept)
	}
	return owner, true
}

func (r *readyDomain) found(id engine.OrderID, who engine.Address) Verified {
	return Verified{ID: id, Signer: who, Domain: r.domain, Separator: r.separator, Chain: r.chain}
}

// fail returns a refusal that does not depend on the domain.
func (t *trial) fail(reason string) (Verified, int, error) {
	r := &t.rows[t.first]
	return Verified{}, 0, &SignatureError{
		Reason: reason,
		Hash:   t.h.typed(&r.separator, &t.contents),
		Domain: t.v.Domains[r.domain],
		Tried:  1,
	}
}
