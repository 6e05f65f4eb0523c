package auth

import (
	"clobd/ingress/auth/curve"
	"clobd/ingress/auth/lanes"
)

// Submission is a signed order of a list, and what VerifyAll finds out about it.
type Submission struct {
	Order     *Order
	Signature []byte
	NegRisk   bool // the kind of the order's market

	Verified Verified // unless Err is set
	Err      error    // a *SignatureError
}

// VerifyAll verifies each submission as Verify does, with the same results. The orders of hot
// signers are hashed and checked side by side: each costs about half of what it costs alone, or
// less. After the first calls these cause no allocation.
func (v *Verifier) VerifyAll(list []Submission) {
	for len(list) > 1 {
		n := min(len(list), listed)
		l := v.lists.Get().(*listing)
		l.verify(list[:n])
		v.lists.Put(l)
		list = list[n:]
	}
	for i := range list {
		list[i].verify(v)
	}
}

// verify verifies a submission alone.
func (s *Submission) verify(v *Verifier) {
	s.Verified, s.Err = v.Verify(s.Order, s.Signature, s.NegRisk)
}

// listed is how many orders of a list are verified together: two vectors of lanes.
const listed = 2 * lanes.Width

// listing is the scratch of orders that are verified together.
//
//	pick hot signers ─► hash the structs ─► hash for the domains ─► check ─► accepted
//	 └► all others                                                   └► not accepted ─► Verify
type listing struct {
	v      *Verifier
	press  press
	picked []pick
	claims []curve.Assertion // of picked
	room   [listed]pick
	rest   [listed]curve.Assertion
}

// pick is a submission of a hot signer, tried for one domain.
type pick struct {
	*Submission
	who      *hotSigner
	row      *readyDomain
	at       int // position of row
	sealed   nestedParts
	contents [32]byte // the struct hash
	wrapped  [32]byte // type 3: in the wallet's domain
	hash     [32]byte // the order's
	left     bool     // Verify decides
}

func (l *listing) verify(list []Submission) {
	l.picked, l.claims = l.room[:0], l.rest[:0]
	for i := range list {
		if !l.pick(&list[i]) {
			list[i].verify(l.v)
		}
	}
	l.hash()
	l.v.hot.checker.CheckAll(l.claims)
	for i := range l.picked {
		p, claim := &l.picked[i], &l.claims[i]
		if p.left || !claim.Signed {
			p.verify(l.v)
			continue
		}
		p.who.use()
		p.Verified, p.Err = p.row.found(p.hash, p.who.address), nil
		l.v.matched(p.Order, p.at)
	}
	clear(l.picked) // what a caller gave is not kept
	clear(l.claims)
}

// pick picks a submission that is in order, but for its signature, and whose signer is hot.
func (l *listing) pick(s *Submission) bool {
	o, signature := s.Order, s.Signature
	if o.Version != 1 && o.Version != 2 || o.refusal() != "" {
		return false
	}
	rows := l.v.rows(o, s.NegRisk)
	if len(rows) == 0 {
		return false
	}
	p := pick{Submission: s, at: l.v.first(o, rows)}
	signer := &o.Signer
	if o.SignatureType == TypeWallet {
		var reason string
		if p.sealed, reason = splitNested(signature); reason != "" {
			return false
		}
		signature, p.at = p.sealed.inner, find(rows, &p.sealed.separator)
		signer = l.v.owners[hintSlot(&o.Signer)].Load()
	}
	if p.at < 0 || signer == nil || l.press.h.load(signature) != "" {
		return false
	}
	if p.who = l.v.hot.find(signer); p.who == nil {
		return false
	}
	p.row = &rows[p.at]
	l.picked = append(l.picked, p)
	l.claims = append(l.claims, curve.Assertion{Key: p.who.key, RS: l.press.h.rs})
	return true
}

// hash computes what was signed by the picked orders.
func (l *listing) hash() {
	h := l.press.h
	for i := range l.picked {
		p := &l.picked[i]
		h.layOrder(p.Order)
		l.press.add(&p.contents)
	}
	l.press.run()
	for i := range l.picked {
		p := &l.picked[i]
		if p.Order.SignatureType == TypeWallet {
			p.left = p.sealed.contents != p.contents
			h.layNested(&p.contents, p.row.chain, &p.Order.Signer)
			l.press.add(&p.wrapped)
		}
	}
	l.press.run()
	for i := range l.picked {
		p := &l.picked[i]
		h.layTyped(&p.row.separator, &p.contents)
		l.press.add(&p.hash)
		if p.Order.SignatureType == TypeWallet {
			h.layTyped(&p.row.separator, &p.wrapped)
			l.press.add(&l.claims[i].Digest)
		}
	}
	l.press.run()
	for i := range l.picked {
		if p := &l.picked[i]; p.Order.SignatureType != TypeWallet {
			l.claims[i].Digest = p.hash
		}
	}
}

// press hashes messages side by side: up to eight of the same number of blocks.
type press struct {
	h        *hasher // its words are the next message
	lanes    bool
	n        int // messages that wait
	blocks   int // of each
	sizes    [lanes.Width]int
	messages lanes.Messages
	to       [lanes.Width]*[32]byte // where their hashes go
	hashes   [lanes.Width][32]byte
}

// add takes the words of h as a message. Its hash is in to after run.
func (p *press) add(to *[32]byte) {
	blocks := p.h.n/lanes.BlockSize + 1
	if p.n == lanes.Width || p.n > 0 && blocks != p.blocks {
		p.run()
	}
	m := &p.messages[p.n]
	copy(m[:], p.h.words[:p.h.n])
	// Keccak's padding: 1, zeros, and the highest bit of the last byte.
	end := blocks * lanes.BlockSize
	clear(m[p.h.n:end])
	m[p.h.n] = 1
	m[end-1] |= 0x80
	p.sizes[p.n], p.to[p.n], p.blocks = p.h.n, to, blocks
	p.n++
}

// run hashes the messages that wait. A lane costs nothing, so stale messages fill those left over.
func (p *press) run() {
	if p.lanes && p.n > 1 {
		lanes.Keccak(&p.messages, p.blocks, &p.hashes)
		for i := range p.n {
			*p.to[i] = p.hashes[i]
		}
	} else {
		for i := range p.n {
			*p.to[i] = p.h.keccak(p.messages[i][:p.sizes[i]])
		}
	}
	clear(p.to[:p.n])
	p.n = 0
}
