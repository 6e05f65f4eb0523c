package curve

import (
	"sync"

	"clobd/ingress/auth/lanes"
)

// The widths of the combs, in bits of a digit; see DESIGN.md of package auth.
const (
	baseWidth = lanes.BaseWidth // of the generator, of which there is one
	keyWidth  = lanes.KeyWidth  // of a Key
)

// Key is a public key prepared for checking many signatures: 148 KiB of its multiples. It is never
// changed; any number of goroutines may use one.
type Key struct{ multiples comb }

// NewKey prepares the public key of 65 bytes, which must be one that Recover or Public returned.
// That costs as much as about ten recoveries.
func NewKey(public []byte) *Key {
	p := pointOf(public)
	return &Key{newComb(&p, keyWidth)}
}

// Checker recognises signatures of known keys. Recovery finds the key Q = (s·R - z·G) / r of a
// signature r, s, v over z, where R is the point whose x is r and whose y has the parity v. So
// R = (z/s)·G + (r/s)·Q, which is a few dozen additions of multiples computed beforehand.
//
// Any number of goroutines may use one. Nothing here is secret, so nothing takes constant time.
type Checker struct {
	base    *comb // of the generator
	order   *inverter
	lanes   bool
	bunches sync.Pool // *bunch
}

// NewChecker makes a Checker. With wide it adds up in the lanes of the processor's widest registers
// if there are any; the answers are the same without.
func NewChecker(wide bool) *Checker {
	c := &Checker{base: sharedBase(), order: &orderInverter, lanes: wide && lanes.Have()}
	c.bunches.New = func() any { return new(bunch) }
	return c
}

// sharedBase returns the comb of the generator, 832 KiB that take 1.5 ms to compute.
var sharedBase = sync.OnceValue(func() *comb {
	g := generator()
	c := newComb(&g, baseWidth)
	return &c
})

// Signed reports whether Recover would find the key k behind the signature rs of digest. r and s
// must be in range and v 0 or 1. It allocates nothing.
func (c *Checker) Signed(k *Key, digest *[32]byte, rs *[65]byte) bool {
	if c.lanes {
		if signed, known := c.signedInLanes(&k.multiples, digest, rs); known {
			return signed
		}
	}
	return c.signed(&k.multiples, digest, rs)
}

// signed is Signed in Go alone.
func (c *Checker) signed(key *comb, digest *[32]byte, rs *[65]byte) bool {
	s := scalarOf(rs[32:64])
	inverse := scalar(c.order.invert(s))
	f := factorsOf(digest, rs, &inverse)
	var room [most]term
	var point sum
	point.total(c.terms(room[:0], key, &f))
	return point.finite && point.above(rs) && point.parity() == rs[64]
}

// signedInLanes is Signed in lanes. known is false if the lanes cannot tell.
func (c *Checker) signedInLanes(key *comb, digest *[32]byte, rs *[65]byte) (signed, known bool) {
	s := scalarOf(rs[32:64])
	inverse := scalar(c.order.invert(s))
	f := factorsOf(digest, rs, &inverse)
	var found lanes.Sum
	lanes.Add(c.base.first(), key.first(), &f, &found)
	point := sumOf(&found)
	if !point.finite {
		return false, false
	}
	return point.above(rs) && point.parity() == rs[64], true
}

// factorsOf returns z/s and r/s, given 1/s.
func factorsOf(digest *[32]byte, rs *[65]byte, inverse *scalar) lanes.Factors {
	z, r := scalarOf(digest[:]), scalarOf(rs[:32])
	z.mul(&z, inverse)
	r.mul(&r, inverse)
	return lanes.Factors{K: z, L: r}
}

// most is how many terms a sum has at most.
const most = 256/baseWidth + 256/keyWidth + 2

// terms appends the terms of k·G + l·Q to list.
func (c *Checker) terms(list []term, key *comb, f *lanes.Factors) []term {
	return key.terms(c.base.terms(list, (*scalar)(&f.K)), (*scalar)(&f.L))
}

// above reports whether the x of the finite s is r. r is below the order and so below p: the
// residue is the number itself.
func (s *sum) above(rs *[65]byte) bool {
	x := elementOf(rs[:32])
	x.mul(&x, &s.zz)
	x.sub(&x, &s.x)
	return x.isZero()
}

// parity returns the lowest bit of the y of the finite s.
func (s *sum) parity() byte {
	inverse := s.zzz.inverse()
	return s.parityBy(&inverse)
}

// parityBy is parity, given 1/zzz.
func (s *sum) parityBy(inverse *element) byte {
	var y element
	y.mul(inverse, &s.y)
	y = y.normal()
	return byte(y[0] & 1)
}

// sumOf returns what the lanes found. It is not finite if they cannot tell.
func sumOf(s *lanes.Sum) sum {
	zz := element(s.ZZ)
	return sum{element(s.X), element(s.Y), zz, element(s.ZZZ), !zz.isZero()}
}
