package curve

// point is a point of the curve y² = x³ + 7 other than infinity. It fills one cache line.
type point struct{ x, y element }

func generator() point {
	return point{
		element{0x59f2815b16f81798, 0x029bfcdb2dce28d9, 0x55a06295ce870b07, 0x79be667ef9dcbbac},
		element{0x9c47d08ffb10d4b8, 0xfd17b448a6855419, 0x5da4fbfc0e1108a8, 0x483ada7726a3c465},
	}
}

// pointOf reads a valid uncompressed public key of 65 bytes.
func pointOf(key []byte) point { return point{elementOf(key[1:33]), elementOf(key[33:])} }

// sum is a point in coordinates that need no division: x / zz and y / zzz, where zz³ = zzz². Its
// zero value is infinity.
type sum struct {
	x, y, zz, zzz element
	finite        bool
}

func (s *sum) set(p *point) { *s = sum{p.x, p.y, element{1}, element{1}, true} }

// add adds p to s. A signer can choose points for which the formula of two different points fails,
// so add handles these cases too.
func (s *sum) add(p *point) {
	if !s.finite {
		s.set(p)
		return
	}
	var dx, dy, t, square, cube element
	t.mul(&p.x, &s.zz)
	dx.sub(&t, &s.x)
	t.mul(&p.y, &s.zzz)
	dy.sub(&t, &s.y)
	if dx.isZero() {
		if s.finite = dy.isZero(); s.finite {
			s.double()
		}
		return
	}
	square.square(&dx)
	cube.mul(&dx, &square)
	s.zz.mul(&s.zz, &square)
	s.zzz.mul(&s.zzz, &cube)
	square.mul(&s.x, &square)
	t.mul(&s.y, &cube)
	s.x.square(&dy)
	s.x.subTwice(&s.x, &cube, &square)
	square.sub(&square, &s.x)
	s.y.mul(&dy, &square)
	s.y.sub(&s.y, &t)
}

// double adds s, which must be finite, to itself. No point of the curve has y = 0, so the double is
// finite.
func (s *sum) double() {
	var zero, v, w, m, t element
	v.square(&s.y)
	w.mul(&s.y, &v)
	t.mul(&s.x, &v)
	s.zz.mul(&s.zz, &v)
	s.zzz.mul(&s.zzz, &w)
	m.square(&s.x)
	m.threeHalves(&m)
	w.square(&v)
	s.x.square(&m)
	s.x.subTwice(&s.x, &zero, &t)
	t.sub(&t, &s.x)
	s.y.mul(&m, &t)
	s.y.sub(&s.y, &w)
}

// field inverts elements.
var field = newInverter([4]uint64{1<<64 - fieldFold, 1<<64 - 1, 1<<64 - 1, 1<<64 - 1})

func (x *element) inverse() element {
	n := x.normal()
	return field.invert(n)
}

// invertAll replaces each element of a by its inverse, with one inversion for all and three
// products each. No element may be zero. scratch is as long as a.
func invertAll(a, scratch []element) {
	product := element{1}
	for i := range a {
		scratch[i] = product
		product.mul(&product, &a[i])
	}
	rest := product.inverse()
	for i := len(a) - 1; i >= 0; i-- {
		product.mul(&rest, &scratch[i])
		rest.mul(&rest, &a[i])
		a[i] = product
	}
}
