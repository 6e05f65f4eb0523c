package curve

import "sync"

// The widths of the combs, in bits of a digit; see DESIGN.md of package auth.
const (
	baseWidth = 10 // of the generator, of which there is one
	keyWidth  = 7  // of a Key
)

// Key is a public key prepared for checking many signatures: 148 KiB of its multiples. It is never
// changed; any number of goroutines may use one.
type Key struct {
	checker   *checker
	multiples comb
}

// NewKey prepares the public key of 65 bytes, which must be one that Recover or Public returned.
// That costs as much as about ten recoveries.
func NewKey(public []byte) *Key {
	p := pointOf(public)
	return &Key{sharedChecker(), newComb(&p, keyWidth)}
}

// Signed reports whether Recover would find this key behind the signature rs of digest. r and s
// must be in range and v 0 or 1. It allocates nothing. Nothing here is secret, so nothing takes
// constant time.
func (k *Key) Signed(digest *[32]byte, rs *[65]byte) bool {
	return k.checker.signed(&k.multiples, digest, rs)
}

// sharedChecker returns the checker of all keys.
var sharedChecker = sync.OnceValue(newChecker)

// checker recognises signatures of known keys. Recovery finds the key Q = (s·R - z·G) / r of a
// signature r, s, v over z, where R is the point whose x is r and whose y has the parity v. So
// R = (z/s)·G + (r/s)·Q, which is a few dozen additions of multiples computed beforehand.
type checker struct {
	order inverter // modulo the order of the curve
	base  comb     // of the generator
}

func newChecker() *checker {
	g := generator()
	order := [4]uint64{-scalarFold[0], ^scalarFold[1], ^scalarFold[2], ^uint64(0)}
	return &checker{newInverter(order), newComb(&g, baseWidth)}
}

// signed reports whether the signature rs of digest is of the key whose multiples are given.
func (c *checker) signed(key *comb, digest *[32]byte, rs *[65]byte) bool {
	z, r, s := scalarOf(digest[:]), scalarOf(rs[:32]), scalarOf(rs[32:64])
	inverse := scalar(c.order.invert(s))
	z.mul(&z, &inverse)
	r.mul(&r, &inverse)
	var room [256/baseWidth + 256/keyWidth + 2]term
	list := key.terms(c.base.terms(room[:0], &z), &r)

	var point sum
	if point.total(list); !point.finite {
		return false
	}
	// r is below the order and so below p: the residue is the number itself.
	x := elementOf(rs[:32])
	x.mul(&x, &point.zz)
	if x.sub(&x, &point.x); !x.isZero() {
		return false
	}
	y := point.zzz.inverse()
	y.mul(&y, &point.y)
	y = y.normal()
	return byte(y[0]&1) == rs[64]
}
