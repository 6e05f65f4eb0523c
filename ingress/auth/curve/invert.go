package curve

import "math/bits"

// inverter computes inverses modulo an odd number by the division steps of Bernstein and Yang, a
// gcd that looks at low bits only. 62 steps on single words make a 2×2 matrix for the long numbers.
type inverter struct {
	modulus long
	odd     uint64 // -1/modulus modulo 2^62
}

// long is a signed number: the sum of long[i]·2^62i. All limbs but the last are in [0, 2^62).
type long [5]int64

const longMask = 1<<62 - 1

func newInverter(modulus [4]uint64) inverter {
	inverse := modulus[0] // right in the lowest 3 bits; each round doubles that
	for range 5 {
		inverse *= 2 - modulus[0]*inverse
	}
	return inverter{longOf(modulus), -inverse & longMask}
}

func longOf(x [4]uint64) long {
	return long{
		int64(x[0] & longMask),
		int64((x[0]>>62 | x[1]<<2) & longMask),
		int64((x[1]>>60 | x[2]<<4) & longMask),
		int64((x[2]>>58 | x[3]<<6) & longMask),
		int64(x[3] >> 56),
	}
}

// short returns the limbs of a number in [0, 2^256): the inverse of longOf.
func (a *long) short() [4]uint64 {
	a0, a1, a2, a3, a4 := uint64(a[0]), uint64(a[1]), uint64(a[2]), uint64(a[3]), uint64(a[4])
	return [4]uint64{a0 | a1<<62, a1>>2 | a2<<60, a2>>4 | a3<<58, a3>>6 | a4<<56}
}

// steps is the matrix of 62 division steps: (f, g) becomes (u·f + v·g, q·f + r·g) / 2^62. |u| + |v|
// and |q| + |r| are at most 2^62.
type steps struct{ u, v, q, r int64 }

// run makes 62 division steps on the low words of f and g; f is odd. A step halves g. If g is odd,
// the step first adds f to it; and before that f and g change places if delta is positive. delta
// estimates by how many bits f is longer than g. run returns the new delta.
func (s *steps) run(delta int64, f, g uint64) int64 {
	var u, v, q, r uint64 = 1, 0, 0, 1
	for left := 62; ; {
		zeros := bits.TrailingZeros64(g | ^uint64(0)<<left)
		g >>= zeros
		u <<= zeros
		v <<= zeros
		delta += int64(zeros)
		if left -= zeros; left == 0 {
			break
		}
		if delta > 0 {
			delta = -delta
			f, g = g, -f
			u, q = q, -u
			v, r = r, -v
		}
		// No exchange can come for another 1 - delta steps, so that many bits of g can be cleared
		// at once by a multiple of f. f·(2 - f²) inverts f modulo 64.
		clear := min(1-delta, int64(left), 6)
		w := g * f * (f*f - 2) & (1<<clear - 1)
		g += f * w
		q += u * w
		r += v * w
	}
	*s = steps{int64(u), int64(v), int64(q), int64(r)}
	return delta
}

// product adds a·b to the signed number of two words.
func product(hi, lo uint64, a, b int64) (uint64, uint64) {
	h, l := bits.Mul64(uint64(a), uint64(b))
	h -= uint64(a>>63)&uint64(b) + uint64(b>>63)&uint64(a)
	lo, c := bits.Add64(lo, l, 0)
	hi, _ = bits.Add64(hi, h, c)
	return hi, lo
}

// apply makes the 62 steps on f and g. Only their lowest n limbs count.
func (s *steps) apply(f, g *long, n int) {
	var fh, fl, gh, gl uint64
	for i := range n {
		a, b := f[i], g[i]
		fh, fl = product(fh, fl, s.u, a)
		fh, fl = product(fh, fl, s.v, b)
		gh, gl = product(gh, gl, s.q, a)
		gh, gl = product(gh, gl, s.r, b)
		if i > 0 { // the lowest limb of the sums is 0: that is what the steps are for
			f[i-1], g[i-1] = int64(fl&longMask), int64(gl&longMask)
		}
		fl, fh = fl>>62|fh<<2, uint64(int64(fh)>>62)
		gl, gh = gl>>62|gh<<2, uint64(int64(gh)>>62)
	}
	f[n-1], g[n-1] = int64(fl), int64(gl)
}

// applyModulo makes the 62 steps on d and e, modulo m. To make a sum divisible by 2^62 it adds a
// multiple of m from [-2^61, 2^61), so d and e grow by at most m/2 each time. 12 times are enough
// for numbers of 256 bits.
func (s *steps) applyModulo(d, e *long, m *inverter) {
	var dh, dl, eh, el uint64
	var kd, ke int64
	for i := range d {
		a, b, c := d[i], e[i], m.modulus[i]
		dh, dl = product(dh, dl, s.u, a)
		dh, dl = product(dh, dl, s.v, b)
		eh, el = product(eh, el, s.q, a)
		eh, el = product(eh, el, s.r, b)
		if i == 0 {
			kd, ke = int64(dl*m.odd<<2)>>2, int64(el*m.odd<<2)>>2
		}
		dh, dl = product(dh, dl, kd, c)
		eh, el = product(eh, el, ke, c)
		if i > 0 {
			d[i-1], e[i-1] = int64(dl&longMask), int64(el&longMask)
		}
		dl, dh = dl>>62|dh<<2, uint64(int64(dh)>>62)
		el, eh = el>>62|eh<<2, uint64(int64(eh)>>62)
	}
	d[4], e[4] = int64(dl), int64(el)
}

// plus returns a + sign·b.
func (a *long) plus(sign int64, b *long) long {
	var sum long
	var carry int64
	for i := range sum {
		carry += a[i] + sign*b[i]
		sum[i] = carry & longMask
		carry >>= 62
	}
	sum[4] += carry << 62
	return sum
}

// invert returns 1/x modulo m for x in [0, m), and 0 for 0.
func (m *inverter) invert(x [4]uint64) [4]uint64 {
	var s steps
	f, g := m.modulus, longOf(x)
	d, e := long{}, long{1} // f = d·x and g = e·x modulo m, always
	delta, n := int64(1), len(f)
	for g != (long{}) {
		delta = s.run(delta, uint64(f[0])|uint64(f[1])<<62, uint64(g[0])|uint64(g[1])<<62)
		s.applyModulo(&d, &e, m)
		s.apply(&f, &g, n)
		// A top limb that is but a sign goes into the one below.
		if n > 2 && (f[n-1] == 0 || f[n-1] == -1) && (g[n-1] == 0 || g[n-1] == -1) {
			n--
			f[n-1] |= f[n] << 62
			g[n-1] |= g[n] << 62
			f[n], g[n] = 0, 0
		}
	}
	if f[n-1] < 0 { // f is -1, else 1
		d = (&long{}).plus(-1, &d)
	}
	for d[4] < 0 {
		d = d.plus(1, &m.modulus)
	}
	for {
		less := d.plus(-1, &m.modulus)
		if less[4] < 0 {
			return d.short()
		}
		d = less
	}
}
