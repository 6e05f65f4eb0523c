package curve

import "math/bits"

// The order n of the curve and its half, big endian.
const (
	orderBytes = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe" +
		"\xba\xae\xdc\xe6\xaf\x48\xa0\x3b\xbf\xd2\x5e\x8c\xd0\x36\x41\x41"
	halfBytes = "\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" +
		"\x5d\x57\x6e\x73\x57\xa4\x50\x1d\xdf\xe9\x2f\x46\x68\x1b\x20\xa0"
)

// InRange reports whether the 32 bytes b, big endian, are in [1, n-1]: what a private key and the r
// and s of a signature must be.
func InRange(b []byte) bool {
	return [32]byte(b) != [32]byte{} && string(b) < orderBytes
}

// IsHigh reports whether the 32 bytes s, big endian, are above n/2. Every signature has a twin with
// n-s for s; exactly one of the two is high.
func IsHigh(s []byte) bool { return string(s) > halfBytes }

// scalar is a number below n, the order of the curve, least significant limb first.
type scalar [4]uint64

// scalarFold is 2^256 - n. A variable because Go has no constant arrays.
var scalarFold = [3]uint64{0x402da1732fc9bebf, 0x4551231950b75fc4, 1}

// orderInverter inverts scalars.
var orderInverter = newInverter([4]uint64{
	-scalarFold[0], ^scalarFold[1], ^scalarFold[2], ^uint64(0)})

// scalarOf reads 32 bytes, big endian, modulo n.
func scalarOf(b []byte) scalar {
	s := scalar(elementOf(b))
	return s.reduced(0)
}

// reduced returns s + carry·2^256, which must be below 2n, modulo n.
func (s *scalar) reduced(carry uint64) scalar {
	var less scalar
	var c uint64
	less[0], c = bits.Add64(s[0], scalarFold[0], 0)
	less[1], c = bits.Add64(s[1], scalarFold[1], c)
	less[2], c = bits.Add64(s[2], scalarFold[2], c)
	less[3], c = bits.Add64(s[3], 0, c)
	if c|carry != 0 {
		return less
	}
	return *s
}

func (z *scalar) mul(x, y *scalar) {
	var t [8]uint64
	wide(&t, (*[4]uint64)(x), (*[4]uint64)(y))
	// 512 bits fold to 386, to 260, to 256 and a carry.
	foldScalar(&t, 4)
	foldScalar(&t, 3)
	foldScalar(&t, 1)
	*z = scalar(t[:4])
	*z = z.reduced(t[4])
}

// foldScalar replaces the n words of t from 2^256 on by their product with scalarFold, added to
// the rest. n is 1, 3 or 4; the words above these must be 0.
func foldScalar(t *[8]uint64, n int) {
	high := [4]uint64(t[4:])
	t[5], t[6], t[7] = 0, 0, 0
	t[4] = addFolded((*[4]uint64)(t[:]), high[0])
	if n == 1 {
		return
	}
	t[5] = addFolded((*[4]uint64)(t[1:]), high[1])
	t[6] = addFolded((*[4]uint64)(t[2:]), high[2])
	if n == 4 {
		t[7] = addFolded((*[4]uint64)(t[3:]), high[3])
	}
}

// addFolded adds a times scalarFold to t and returns the carry.
func addFolded(t *[4]uint64, a uint64) (carry uint64) {
	h0, l0 := bits.Mul64(a, scalarFold[0])
	h1, l1 := bits.Mul64(a, scalarFold[1])
	l1, c := bits.Add64(l1, h0, 0)
	l2, h2 := bits.Add64(h1, a, c)
	t[0], c = bits.Add64(t[0], l0, 0)
	t[1], c = bits.Add64(t[1], l1, c)
	t[2], c = bits.Add64(t[2], l2, c)
	t[3], carry = bits.Add64(t[3], h2, c)
	return carry
}

// wide sets z to the product of x and y: sixteen products, row by row.
func wide(z *[8]uint64, x, y *[4]uint64) {
	x0, y0, y1, y2, y3 := x[0], y[0], y[1], y[2], y[3]
	var c, t0, t1, t2, t3, t4, t5, t6, t7 uint64
	h0, t0 := bits.Mul64(x0, y0)
	h1, l1 := bits.Mul64(x0, y1)
	h2, l2 := bits.Mul64(x0, y2)
	h3, l3 := bits.Mul64(x0, y3)
	t1, c = bits.Add64(h0, l1, 0)
	t2, c = bits.Add64(h1, l2, c)
	t3, c = bits.Add64(h2, l3, c)
	t4 = h3 + c
	x1 := x[1]
	h0, l0 := bits.Mul64(x1, y0)
	h1, l1 = bits.Mul64(x1, y1)
	h2, l2 = bits.Mul64(x1, y2)
	h3, l3 = bits.Mul64(x1, y3)
	l1, c = bits.Add64(l1, h0, 0)
	l2, c = bits.Add64(l2, h1, c)
	l3, c = bits.Add64(l3, h2, c)
	h3 += c
	t1, c = bits.Add64(t1, l0, 0)
	t2, c = bits.Add64(t2, l1, c)
	t3, c = bits.Add64(t3, l2, c)
	t4, c = bits.Add64(t4, l3, c)
	t5 = h3 + c
	x2 := x[2]
	h0, l0 = bits.Mul64(x2, y0)
	h1, l1 = bits.Mul64(x2, y1)
	h2, l2 = bits.Mul64(x2, y2)
	h3, l3 = bits.Mul64(x2, y3)
	l1, c = bits.Add64(l1, h0, 0)
	l2, c = bits.Add64(l2, h1, c)
	l3, c = bits.Add64(l3, h2, c)
	h3 += c
	t2, c = bits.Add64(t2, l0, 0)
	t3, c = bits.Add64(t3, l1, c)
	t4, c = bits.Add64(t4, l2, c)
	t5, c = bits.Add64(t5, l3, c)
	t6 = h3 + c
	x3 := x[3]
	h0, l0 = bits.Mul64(x3, y0)
	h1, l1 = bits.Mul64(x3, y1)
	h2, l2 = bits.Mul64(x3, y2)
	h3, l3 = bits.Mul64(x3, y3)
	l1, c = bits.Add64(l1, h0, 0)
	l2, c = bits.Add64(l2, h1, c)
	l3, c = bits.Add64(l3, h2, c)
	h3 += c
	t3, c = bits.Add64(t3, l0, 0)
	t4, c = bits.Add64(t4, l1, c)
	t5, c = bits.Add64(t5, l2, c)
	t6, c = bits.Add64(t6, l3, c)
	t7 = h3 + c
	*z = [8]uint64{t0, t1, t2, t3, t4, t5, t6, t7}
}

// window returns the width bits of s from bit at on.
func (s *scalar) window(at, width int) uint64 {
	i, shift := at/64, at%64
	w := s[i] >> shift
	if i < 3 {
		w |= s[i+1] << (64 - shift)
	}
	return w & (1<<width - 1)
}
