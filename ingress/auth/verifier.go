package auth

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"clobd/engine"
)

// The reasons why a signed order is refused: stable words, for machines and logs.
const (
	ReasonVersion    = "unknown_struct_version"
	ReasonType       = "unknown_signature_type"
	ReasonSide       = "unknown_side"
	ReasonMaker      = "maker_is_not_signer" // types 0 and 3
	ReasonDomain     = "no_domain"           // no row, or for type 3 not the row that was signed for
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

// SignatureError says why an order's signature was refused and what was computed on the way, so
// that the author of a client can find the first difference.
type SignatureError struct {
	Reason    string         // one of the Reasons
	Hash      engine.OrderID // the order's hash in Domain; zero if none could be computed
	Domain    Domain         // the row tried first; zero if there is none
	Tried     int            // how many rows were tried
	Recovered engine.Address // who signed, if Domain were the right one; zero if nobody
}

// Error tells the reason, the hash and the domain.
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

	// Signer is the EOA that signed, for type 3 the wallet's owner. The caller must hold it equal
	// to the address behind the API key, and know that the maker belongs to it.
	Signer engine.Address

	Domain    int // index into Verifier.Domains
	Separator [32]byte
	Chain     uint64
}

// row is a Domain made ready.
type row struct {
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

	// rows by struct version - 1 and by kind of market: 0 normal, 1 neg-risk.
	rows [2][2][]row
	// hints hold, by signer, 1 + the position of the row that matched last. Two signers may share a
	// slot, and a hint may be wrong: that costs a second recovery and nothing else.
	hints [hintSlots]atomic.Uint32
	// owners hold, by deposit wallet, who signed the wallet's last order: 128 KiB. Like a hint an
	// owner may be wrong, at the price of one check.
	owners [hintSlots]atomic.Pointer[engine.Address]
	hot    *hotSigners

	pool sync.Pool // *hasher
}

// NewVerifier makes a Verifier of the given rows, which are tried in that order for a signer never
// seen. Rows that repeat one before them count once.
func NewVerifier(domains []Domain) *Verifier {
	v := &Verifier{Domains: append([]Domain(nil), domains...), hot: newHotSigners(hotLimit)}
	v.pool.New = func() any { return newHasher() }
	h := newHasher()
	for i := range v.Domains {
		d := &v.Domains[i]
		r := row{separator: h.separator(d), chain: d.Chain, domain: i}
		for kind, negRisk := range [2]bool{false, true} {
			rows := &v.rows[d.structVersion()-1][kind]
			if d.serves(negRisk) && find(*rows, &r.separator) < 0 {
				*rows = append(*rows, r)
			}
		}
	}
	return v
}

// find is the position of the row with that separator, or -1.
func find(rows []row, separator *[32]byte) int {
	for i := range rows {
		if rows[i].separator == *separator {
			return i
		}
	}
	return -1
}

// Find is the index into Domains of the domain with that separator, and false if there is none:
// journaled evidence for an exchange that this node does not know proves nothing.
func (v *Verifier) Find(separator [32]byte) (int, bool) {
	for version := range v.rows {
		for kind := range v.rows[version] {
			rows := v.rows[version][kind]
			if i := find(rows, &separator); i >= 0 {
				return rows[i].domain, true
			}
		}
	}
	return 0, false
}

// candidates are the rows that an order of that struct version in such a market may be signed for.
func (v *Verifier) candidates(version uint8, negRisk bool) []row {
	if negRisk {
		return v.rows[version-1][1]
	}
	return v.rows[version-1][0]
}

// Verify finds the domain and the key that signed o. The struct is hashed once; then each row that
// fits costs two keccaks and one key recovery, the dear part, and the row that this signer matched
// last comes first: one recovery in the steady state, and for a signer seen often no recovery but a
// check, at less than half its price, that accepts the same signatures. A *SignatureError says what
// failed.
//
// Nothing here is secret, so nothing is compared in constant time.
func (v *Verifier) Verify(o *Order, signature []byte, negRisk bool) (Verified, error) {
	if o.Version != 1 && o.Version != 2 {
		return Verified{}, &SignatureError{Reason: ReasonVersion}
	}
	rows := v.candidates(o.Version, negRisk)
	if len(rows) == 0 {
		return Verified{}, &SignatureError{Reason: ReasonDomain}
	}
	t := trial{v: v, o: o, rows: rows, h: v.pool.Get().(*hasher)}
	defer v.pool.Put(t.h)
	hint := &v.hints[hintSlot(&o.Signer)]
	if t.first = int(hint.Load()) - 1; t.first < 0 || t.first >= len(rows) {
		t.first = 0
	}
	t.contents = t.h.order(o)

	found, at, err := t.run(signature)
	if err == nil && hint.Load() != uint32(at+1) {
		hint.Store(uint32(at + 1))
	}
	return found, err
}

// hintSlot is where a signer's hint is kept. Addresses are hashes, so any bits of one will do.
func hintSlot(a *engine.Address) uint32 {
	return binary.LittleEndian.Uint32(a[8:]) % hintSlots
}

// trial is one order's way through its rows.
type trial struct {
	v        *Verifier
	o        *Order
	h        *hasher
	rows     []row
	first    int // position of the row to try first
	contents [32]byte
}

// run also returns the position of the row that matched.
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
		return t.found(&t.rows[at], t.h.digest, t.o.Signer), at, nil
	}
	failure := SignatureError{Reason: ReasonRecover}
	for i := range t.rows {
		at := (t.first + i) % len(t.rows)
		r := &t.rows[at]
		t.h.digest = t.h.typed(&r.separator, &t.contents)
		who, ok := t.h.recover()
		if ok && who == t.o.Signer {
			t.v.hot.recovered(who, t.h.key)
			return t.found(r, t.h.digest, who), at, nil
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

// check is the position of the row that a hot signer signed for, and -1 if the signer is not hot or
// the signature not its own. Then the rows are gone through by recovery, so that a refusal is the
// same for every signer.
func (t *trial) check() int {
	who := t.v.hot.find(&t.o.Signer)
	if who == nil {
		return -1
	}
	for i := range t.rows {
		at := (t.first + i) % len(t.rows)
		t.h.digest = t.h.typed(&t.rows[at].separator, &t.contents)
		if t.v.hot.signed(who, t.h) {
			return at
		}
	}
	return -1
}

// nested needs no guessing: the signature names its domain. Whose signature it is only the caller
// can judge, because the order names the wallet and not its owner.
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
	return t.found(r, t.h.typed(&r.separator, &t.contents), owner), at, nil
}

// owner is who signed the digest of a deposit wallet's order: the owner of its last order, if that
// is a hot signer and the signature fits, and else whoever recovery finds.
func (t *trial) owner() (engine.Address, bool) {
	slot := &t.v.owners[hintSlot(&t.o.Signer)]
	last := slot.Load()
	if last != nil {
		if who := t.v.hot.find(last); who != nil && t.v.hot.signed(who, t.h) {
			return who.address, true
		}
	}
	owner, ok := t.h.recover()
	if !ok {
		return owner, false
	}
	t.v.hot.recovered(owner, t.h.key)
	if last == nil || *last != owner {
		kept := owner // only what is kept goes to the heap
		slot.Store(&kept)
	}
	return owner, true
}

func (t *trial) found(r *row, id engine.OrderID, who engine.Address) Verified {
	return Verified{ID: id, Signer: who, Domain: r.domain, Separator: r.separator, Chain: r.chain}
}

// fail reports a refusal that no other row could heal.
func (t *trial) fail(reason string) (Verified, int, error) {
	r := &t.rows[t.first]
	return Verified{}, 0, &SignatureError{
		Reason: reason,
		Hash:   t.h.typed(&r.separator, &t.contents),
		Domain: t.v.Domains[r.domain],
		Tried:  1,
	}
}
