package auth

// The widths of the combs: what they weigh and cost is in DESIGN.md.
const (
	baseWidth   = 10 // of the generator's, of which there is one
	signerWidth = 7  // of a signer's
)

// checker tells signatures of known keys. A signature r, s, v over z is of the key that recovery
// finds, Q = (s·R - z·G) / r, where R is the point whose x is r and whose y has the parity v. That
// says the same as R = (z/s)·G + (r/s)·Q, and with G and Q known beforehand the right side needs
// but a few dozen additions.
type checker struct {
	order inverter // modulo the order of the curve
	base  comb     // of the generator
}

func newChecker() *checker {
	g := generator()
	order := [4]uint64{-scalarFold[0], ^scalarFold[1], ^scalarFold[2], ^uint64(0)}
	return &checker{newInverter(order), newComb(&g, baseWidth)}
}

// signed tells if recovery from digest and rs, which hasher.load let through, would find the key
// that the comb is of. Nothing here is secret, so nothing takes constant time.
func (c *checker) signed(key *comb, digest *[32]byte, rs *[65]byte) bool {
	z, r, s := scalarOf(digest[:]), scalarOf(rs[:32]), scalarOf(rs[32:64])
	inverse := scalar(c.order.invert(s))
	z.mul(&z, &inverse)
	r.mul(&r, &inverse)
	var room [256/baseWidth + 256/signerWidth + 2]term
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
