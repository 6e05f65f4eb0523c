package curve

import "math/bits"

// The shape of a Trace's tables; see DESIGN.md of package auth.
const (
	partBits = 16             // bits of a part
	parts    = 128 / partBits // of a number that split made
	oddWidth = 4              // a digit is odd, and three digits after it are 0
	odds     = 1 << (oddWidth - 2)
)

// Trace is what the recovery of a key from one signature leaves behind. It recovered
// Q = a·R + b·G with R, the point of that signature, so it needed multiples of R. The sum that
// decides on another signature, k·G + l·Q, is (k + l·b)·G + (l·a)·R: the same multiples serve
// again, and this time nobody has to compute them.
//
// One goroutine at a time may change a Trace, by Read or Key, and then nobody reads it. A Trace
// fills 4.3 KiB and holds no pointers.
type Trace struct {
	a, b    scalar
	inverse scalar // 1/r
	whole   sum    // a·R
	// points are, for R and for lambda·R, 1, 3, 5 and 7 times 2^(16·i) times the point.
	points [2][parts][odds]point
}

// Read begins a recovery: it keeps in t what does not depend on the digest. It is false if nobody
// made the signature rs, of whatever digest: r is no x of a point.
func (c *Checker) Read(t *Trace, rs *[65]byte) bool {
	p := point{x: elementOf(rs[:32])}
	if !p.lift(rs[64]) {
		return false
	}
	r, s := scalarOf(rs[:32]), scalarOf(rs[32:64])
	t.inverse = scalar(c.order.invert(r))
	t.a.mul(&s, &t.inverse)
	t.fill(&p)
	t.whole = sum{}
	t.whole.times(&t.a, t)
	return true
}

// Key writes the uncompressed public key behind the signature that t has read and the digest. It
// is false if no key made the signature. Of several digests, the last one's key stays in t.
func (c *Checker) Key(t *Trace, digest *[32]byte, key *[65]byte) bool {
	z := scalarOf(digest[:])
	var minus scalar
	minus.mul(&z, &t.inverse)
	t.b = minus.opposite()
	var room [256/baseWidth + 1]term
	s := t.whole
	s.total(c.base.terms(room[:0], &t.b))
	if !s.finite {
		return false
	}
	var x, y, z2 element
	zzz := s.zzz.inverse()
	z2.mul(&zzz, &s.zz)
	z2.square(&z2)
	x.mul(&s.x, &z2)
	y.mul(&s.y, &zzz)
	key[0] = 4
	x.put(key[1:33])
	y.put(key[33:])
	return true
}

// Follows reports whether Recover would find the key of t behind the signature rs of digest. r and
// s must be in range and v 0 or 1. It allocates nothing.
func (c *Checker) Follows(t *Trace, digest *[32]byte, rs *[65]byte) bool {
	s := scalarOf(rs[32:64])
	inverse := scalar(c.order.invert(s))
	f := factorsOf(digest, rs, &inverse)
	k, l := scalar(f.K), scalar(f.L)
	var m scalar
	m.mul(&l, &t.b)
	k = k.plus(&m)
	l.mul(&l, &t.a)
	var room [256/baseWidth + 1]term
	var found sum
	found.times(&l, t)
	found.total(c.base.terms(room[:0], &k))
	return found.finite && found.above(rs) && found.parity() == rs[64]
}

// schedule is a sum of multiples of a Trace's points: the terms of each step, which are doubled
// once for each step that comes after. Bit 128 is the last part's bit 16.
type schedule struct {
	terms [partBits + 1][2 * parts]term
	n     [partBits + 1]int
}

// add adds the digits of h. A digit is odd and from -7 to 7.
func (p *schedule) add(table *[parts][odds]point, h *half) {
	var carry uint64
	for bit := 0; bit <= 128; {
		if h.size.window(bit, 1) == carry {
			bit++
			continue
		}
		d := h.size.window(bit, oddWidth) + carry
		carry = d >> (oddWidth - 1)
		if carry == 1 {
			d = 1<<oddWidth - d
		}
		part := min(bit/partBits, parts-1)
		step := bit - part*partBits
		p.terms[step][p.n[step]] = term{&table[part][d/2], h.minus != (carry == 1)}
		p.n[step]++
		bit += oddWidth
	}
}

// times sets s, which must be zero, to k·R. A signer can choose sums that double a point or vanish
// on the way: total handles these cases.
func (s *sum) times(k *scalar, t *Trace) {
	var p schedule
	h, j := k.split()
	p.add(&t.points[0], &h)
	p.add(&t.points[1], &j)
	for step := partBits; step >= 0; step-- {
		if s.finite {
			s.double()
		}
		s.total(p.terms[step][:p.n[step]])
	}
}

// fill computes the points of t from R. It doubles R 113 times. Each part's point and its double
// have the same z after the doubling, so that one can be added to the other at seven products; the
// sum and the double have the same z again.
func (t *Trace) fill(r *point) {
	p, z := *r, element{1}
	var last, scratch [parts]element // z of the last multiple of each part
	var grown [parts][odds]element   // by what z grew with each multiple
	for i := range parts {
		row := &t.points[0][i]
		row[0] = p.twice(&z)
		two := p
		last[i] = z
		for k := 1; k < odds; k++ {
			row[k], grown[i][k] = two.join(&row[k-1])
			last[i].mul(&last[i], &grown[i][k])
		}
		for k := 1; k < partBits && i < parts-1; k++ {
			p.twice(&z)
		}
	}
	invertAll(last[:], scratch[:])
	for i := range parts {
		inverse := &last[i]
		for k := odds - 1; k >= 0; k-- {
			q, turned := &t.points[0][i][k], &t.points[1][i][k]
			var power element
			power.square(inverse)
			q.x.mul(&q.x, &power)
			power.mul(&power, inverse)
			q.y.mul(&q.y, &power)
			turned.x.mul(&q.x, &beta)
			turned.y = q.y
			inverse.mul(inverse, &grown[i][k]) // without use at the end
		}
	}
}

// twice doubles the point x/z², y/z³, and returns the point as it was, over the new z.
func (p *point) twice(z *element) (old point) {
	var zero, m, yy element
	yy.square(&p.y)
	old.x.mul(&p.x, &yy)
	old.y.square(&yy)
	m.square(&p.x)
	m.threeHalves(&m)
	z.mul(z, &p.y)
	p.x.square(&m)
	p.x.subTwice(&p.x, &zero, &old.x)
	p.y.sub(&old.x, &p.x)
	p.y.mul(&p.y, &m)
	p.y.sub(&p.y, &old.y)
	return old
}

// join returns p + q, two points with the same z and different x. The z of the sum is grown times
// that z; p stays the same point, now over the z of the sum.
func (p *point) join(q *point) (r point, grown element) {
	var square, cube, slope element
	grown.sub(&p.x, &q.x)
	slope.sub(&p.y, &q.y)
	square.square(&grown)
	p.x.mul(&p.x, &square)
	square.mul(&q.x, &square)
	cube.sub(&p.x, &square)
	p.y.mul(&p.y, &cube)
	r.x.square(&slope)
	r.x.sub(&r.x, &p.x)
	r.x.sub(&r.x, &square)
	r.y.sub(&p.x, &r.x)
	r.y.mul(&r.y, &slope)
	r.y.sub(&r.y, &p.y)
	return r, grown
}

// lift sets y to the one of that parity for x. It is false if no point has that x.
func (p *point) lift(parity byte) bool {
	var a, square, zero element
	a.square(&p.x)
	a.mul(&a, &p.x)
	a.add(&a, &element{7})
	y := a.root()
	square.square(&y)
	square.sub(&square, &a)
	if p.y = y.normal(); byte(p.y[0]&1) != parity {
		p.y.sub(&zero, &p.y)
	}
	return square.isZero() // and a is never 0: no point has y = 0
}

// root returns the square root of x if there is one: x to the power (p + 1)/4, whose binary digits
// are 223 times 1, a 0, 22 times 1, four times 0, 11, and 00.
func (x *element) root() element {
	ones2 := x.shifted(1, x) // x to the power of a number with two digits 1
	ones3 := ones2.shifted(1, x)
	ones6 := ones3.shifted(3, &ones3)
	ones9 := ones6.shifted(3, &ones3)
	ones11 := ones9.shifted(2, &ones2)
	ones22 := ones11.shifted(11, &ones11)
	ones44 := ones22.shifted(22, &ones22)
	ones88 := ones44.shifted(44, &ones44)
	ones176 := ones88.shifted(88, &ones88)
	ones220 := ones176.shifted(44, &ones44)
	ones223 := ones220.shifted(3, &ones3)
	y := ones223.shifted(23, &ones22)
	y = y.shifted(6, &ones2)
	return y.shifted(2, &element{1})
}

// shifted appends n binary digits to the exponent that made x: those of the exponent that made y.
func (x *element) shifted(n int, y *element) element {
	z := *x
	for range n {
		z.square(&z)
	}
	z.mul(&z, y)
	return z
}

// plus returns x + y.
func (x *scalar) plus(y *scalar) (z scalar) {
	var c uint64
	for i := range z {
		z[i], c = bits.Add64(x[i], y[i], c)
	}
	return z.reduced(c)
}

// opposite returns -x.
func (x *scalar) opposite() (z scalar) {
	if *x == z {
		return z
	}
	z = scalar{-scalarFold[0], ^scalarFold[1], ^scalarFold[2], ^uint64(0)}
	z.less(x, &[4]uint64{1})
	return z
}
