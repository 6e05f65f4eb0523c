package curve

import "math/bits"

// The curve has an endomorphism: lambda times the point x, y is the point beta·x, y. So k·P is
// h·P + j·(lambda·P) with two numbers of half the length, and half the doublings.
var beta = element{
	0xc1396c28719501ee, 0x9cf0497512f58995, 0x6e64479eac3434e9, 0x7ae96a2b657c0710}

// The pairs h, j with h + j·lambda = 0 modulo n form a lattice. (a1, -b1) and (a2, a1) are a short
// basis of it; quotient1 and quotient2 are a1/n and b1/n, times 2^384 and rounded.
var (
	latticeA1 = [4]uint64{0xe86c90e49284eb15, 0x3086d221a7d46bcd}
	latticeB1 = [4]uint64{0x6f547fa90abfe4c3, 0xe4437ed6010e8828}
	latticeA2 = [4]uint64{0x57c1108d9d44cfd8, 0x14ca50f7a8e2f3f6, 1}
	quotient1 = [4]uint64{
		0xe893209a45dbb031, 0x3daa8a1471e8ca7f, 0xe86c90e49284eb15, 0x3086d221a7d46bcd}
	quotient2 = [4]uint64{
		0x1571b4ae8ac47f71, 0x221208ac9df506c6, 0x6f547fa90abfe4c4, 0xe4437ed6010e8828}
)

// half is a number below 2^128, or its opposite.
type half struct {
	size  scalar
	minus bool
}

// split returns h and j with h + j·lambda = k modulo n: k less the point of the lattice that is
// nearest to it, but for rounding.
func (k *scalar) split() (h, j half) {
	c1, c2 := k.share(&quotient1), k.share(&quotient2)
	h.size = *k
	h.size.less(&c1, &latticeA1)
	h.size.less(&c2, &latticeA2)
	var minus scalar
	minus.less(&c1, &latticeB1)
	j.size.less(&minus, &[4]uint64{1})
	j.size.less(&c2, &latticeA1)
	h.settle()
	j.settle()
	return h, j
}

// share returns k·quotient / 2^384, rounded.
func (k *scalar) share(quotient *[4]uint64) scalar {
	var t [8]uint64
	wide(&t, (*[4]uint64)(k), quotient)
	low, c := bits.Add64(t[6], t[5]>>63, 0)
	return scalar{low, t[7] + c}
}

// less subtracts x·y from z modulo 2^256.
func (z *scalar) less(x *scalar, y *[4]uint64) {
	var t [8]uint64
	wide(&t, (*[4]uint64)(x), y)
	var c uint64
	for i := range z {
		z[i], c = bits.Sub64(z[i], t[i], c)
	}
}

// settle takes the sign of a size that was computed modulo 2^256.
func (h *half) settle() {
	if h.minus = h.size[3]>>63 == 1; h.minus {
		size := h.size
		h.size = scalar{}
		h.size.less(&size, &[4]uint64{1})
	}
}
