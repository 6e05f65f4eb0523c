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
	addProduct(t[:], x[:], y[:])
	// 512 bits fold to 386, to 260, to 256 and a carry.
	u := [8]uint64{t[0], t[1], t[2], t[3]}
	addProduct(u[:], t[4:], scalarFold[:])
	v := [7]uint64{u[0], u[1], u[2], u[3]}
	addProduct(v[:], u[4:7], scalarFold[:])
	w := [5]uint64{v[0], v[1], v[2], v[3]}
	addProduct(w[:], v[4:5], scalarFold[:])
	*z = scalar(w[:4])
	*z = z.reduced(w[4])
}

// addProduct adds x·y to z, which must have room for the sum.
func addProduct(z, x, y []uint64) {
	for i, a := range x {
		var carry, c uint64
		for j, b := range y {
			h, l := bits.Mul64(a, b)
			l, c = bits.Add64(l, carry, 0)
			h += c
			z[i+j], c = bits.Add64(z[i+j], l, 0)
			carry = h + c
		}
		for j := i + len(y); carry != 0; j++ {
			z[j], carry = bits.Add64(z[j], carry, 0)
		}
	}
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
