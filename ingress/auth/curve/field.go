package curve

import (
	"encoding/binary"
	"math/bits"
)

// fieldFold is 2^256 - p, where p is the prime of the curve's field. It is the value modulo p of a
// carry out of the fourth limb.
const fieldFold = 0x1000003d1

// element is a number modulo p, least significant limb first. Its value may be any below 2^256, so
// that sums need no comparison with p; normal brings it below p.
type element [4]uint64

// elementOf reads 32 bytes, big endian.
func elementOf(b []byte) element {
	return element{
		binary.BigEndian.Uint64(b[24:32]), binary.BigEndian.Uint64(b[16:24]),
		binary.BigEndian.Uint64(b[8:16]), binary.BigEndian.Uint64(b[:8]),
	}
}

// normal returns x reduced below p.
func (x *element) normal() element {
	var y element
	var c uint64
	y[0], c = bits.Add64(x[0], fieldFold, 0)
	y[1], c = bits.Add64(x[1], 0, c)
	y[2], c = bits.Add64(x[2], 0, c)
	y[3], c = bits.Add64(x[3], 0, c)
	if c == 1 { // x + (2^256 - p) reaches 2^256, so x reaches p
		return y
	}
	return *x
}

func (x *element) isZero() bool {
	return x[0]|x[1]|x[2]|x[3] == 0 ||
		x[0] == 1<<64-fieldFold && x[1]&x[2]&x[3] == 1<<64-1
}

func (z *element) add(x, y *element) {
	t0, c := bits.Add64(x[0], y[0], 0)
	t1, c := bits.Add64(x[1], y[1], c)
	t2, c := bits.Add64(x[2], y[2], c)
	t3, c := bits.Add64(x[3], y[3], c)
	t0, c = bits.Add64(t0, -c&fieldFold, 0)
	t1, c = bits.Add64(t1, 0, c)
	t2, c = bits.Add64(t2, 0, c)
	t3, c = bits.Add64(t3, 0, c)
	// A second carry leaves less than fieldFold, so this sum stays in its limb.
	z[0], z[1], z[2], z[3] = t0+(-c&fieldFold), t1, t2, t3
}

func (z *element) sub(x, y *element) {
	t0, c := bits.Sub64(x[0], y[0], 0)
	t1, c := bits.Sub64(x[1], y[1], c)
	t2, c := bits.Sub64(x[2], y[2], c)
	t3, c := bits.Sub64(x[3], y[3], c)
	t0, c = bits.Sub64(t0, -c&fieldFold, 0)
	t1, c = bits.Sub64(t1, 0, c)
	t2, c = bits.Sub64(t2, 0, c)
	t3, c = bits.Sub64(t3, 0, c)
	// A second borrow leaves nearly 2^256, so this difference stays in its limb.
	z[0], z[1], z[2], z[3] = t0-(-c&fieldFold), t1, t2, t3
}

// subTwice sets z to x - y - 2·w.
func (z *element) subTwice(x, y, w *element) {
	t0, c := bits.Sub64(x[0], y[0], 0)
	t1, c := bits.Sub64(x[1], y[1], c)
	t2, c := bits.Sub64(x[2], y[2], c)
	t3, c := bits.Sub64(x[3], y[3], c)
	borrowed := c + w[3]>>63
	t0, c = bits.Sub64(t0, w[0]<<1, 0)
	t1, c = bits.Sub64(t1, w[1]<<1|w[0]>>63, c)
	t2, c = bits.Sub64(t2, w[2]<<1|w[1]>>63, c)
	t3, c = bits.Sub64(t3, w[3]<<1|w[2]>>63, c)
	t0, c = bits.Sub64(t0, (borrowed+c)*fieldFold, 0)
	t1, c = bits.Sub64(t1, 0, c)
	t2, c = bits.Sub64(t2, 0, c)
	t3, c = bits.Sub64(t3, 0, c)
	// Another borrow leaves nearly 2^256, so this difference stays in its limb.
	z[0], z[1], z[2], z[3] = t0-(-c&fieldFold), t1, t2, t3
}

// threeHalves sets z to x·3/2: x and the half of x, or of x + p if x is odd.
func (z *element) threeHalves(x *element) {
	odd := -(x[0] & 1)
	t0, c := bits.Add64(x[0], odd&(1<<64-fieldFold), 0)
	t1, c := bits.Add64(x[1], odd, c)
	t2, c := bits.Add64(x[2], odd, c)
	t3, c := bits.Add64(x[3], odd, c)
	h := element{t0>>1 | t1<<63, t1>>1 | t2<<63, t2>>1 | t3<<63, t3>>1 | c<<63}
	z.add(x, &h)
}

// put writes z in 32 bytes, big endian.
func (z *element) put(b []byte) {
	n := z.normal()
	for i := range n {
		binary.BigEndian.PutUint64(b[24-8*i:], n[i])
	}
}

// mul sets z to x·y: sixteen products, row by row. The words from 2^256 on come back times
// fieldFold. A function for that, which square could share, would cost a tenth of the product.
func (z *element) mul(x, y *element) {
	y0, y1, y2, y3 := y[0], y[1], y[2], y[3]
	a := x[0]
	h0, t0 := bits.Mul64(a, y0)
	h1, l1 := bits.Mul64(a, y1)
	h2, l2 := bits.Mul64(a, y2)
	h3, l3 := bits.Mul64(a, y3)
	t1, c := bits.Add64(h0, l1, 0)
	t2, c := bits.Add64(h1, l2, c)
	t3, c := bits.Add64(h2, l3, c)
	t4 := h3 + c
	a = x[1]
	h0, low1 := bits.Mul64(a, y0)
	h1, l1 = bits.Mul64(a, y1)
	h2, l2 = bits.Mul64(a, y2)
	h3, l3 = bits.Mul64(a, y3)
	t1, c = bits.Add64(t1, low1, 0)
	t2, c = bits.Add64(t2, l1, c)
	t3, c = bits.Add64(t3, l2, c)
	t4, c = bits.Add64(t4, l3, c)
	t2, d := bits.Add64(t2, h0, 0)
	t3, d = bits.Add64(t3, h1, d)
	t4, d = bits.Add64(t4, h2, d)
	t5 := h3 + c + d
	a = x[2]
	h0, low2 := bits.Mul64(a, y0)
	h1, l1 = bits.Mul64(a, y1)
	h2, l2 = bits.Mul64(a, y2)
	h3, l3 = bits.Mul64(a, y3)
	t2, c = bits.Add64(t2, low2, 0)
	t3, c = bits.Add64(t3, l1, c)
	t4, c = bits.Add64(t4, l2, c)
	t5, c = bits.Add64(t5, l3, c)
	t3, d = bits.Add64(t3, h0, 0)
	t4, d = bits.Add64(t4, h1, d)
	t5, d = bits.Add64(t5, h2, d)
	t6 := h3 + c + d
	a = x[3]
	h0, low3 := bits.Mul64(a, y0)
	h1, l1 = bits.Mul64(a, y1)
	h2, l2 = bits.Mul64(a, y2)
	h3, l3 = bits.Mul64(a, y3)
	t3, c = bits.Add64(t3, low3, 0)
	t4, c = bits.Add64(t4, l1, c)
	t5, c = bits.Add64(t5, l2, c)
	t6, c = bits.Add64(t6, l3, c)
	t4, d = bits.Add64(t4, h0, 0)
	t5, d = bits.Add64(t5, h1, d)
	t6, d = bits.Add64(t6, h2, d)
	t7 := h3 + c + d
	h4, l4 := bits.Mul64(t4, fieldFold)
	h5, l5 := bits.Mul64(t5, fieldFold)
	h6, l6 := bits.Mul64(t6, fieldFold)
	h7, l7 := bits.Mul64(t7, fieldFold)
	t0, c = bits.Add64(t0, l4, 0)
	t1, c = bits.Add64(t1, l5, c)
	t2, c = bits.Add64(t2, l6, c)
	t3, c = bits.Add64(t3, l7, c)
	t1, d = bits.Add64(t1, h4, 0)
	t2, d = bits.Add64(t2, h5, d)
	t3, d = bits.Add64(t3, h6, d)
	h, l := bits.Mul64(h7+c+d, fieldFold)
	t0, c = bits.Add64(t0, l, 0)
	t1, c = bits.Add64(t1, h, c)
	t2, c = bits.Add64(t2, 0, c)
	t3, c = bits.Add64(t3, 0, c)
	// A second carry leaves less than 2^67.
	t0, c = bits.Add64(t0, -c&fieldFold, 0)
	z[0], z[1], z[2], z[3] = t0, t1+c, t2, t3
}

// square sets z to x·x: of the sixteen products six occur twice.
func (z *element) square(x *element) {
	x0, x1, x2, x3 := x[0], x[1], x[2], x[3]
	var c, t1, t2, t3, t4, t5, t6, t7 uint64
	h1, t1 := bits.Mul64(x0, x1)
	h2, l2 := bits.Mul64(x0, x2)
	h3, l3 := bits.Mul64(x0, x3)
	t2, c = bits.Add64(h1, l2, 0)
	t3, c = bits.Add64(h2, l3, c)
	t4 = h3 + c
	h1, l1 := bits.Mul64(x1, x2)
	h2, l2 = bits.Mul64(x1, x3)
	l2, c = bits.Add64(l2, h1, 0)
	h2 += c
	t3, c = bits.Add64(t3, l1, 0)
	t4, c = bits.Add64(t4, l2, c)
	t5 = h2 + c
	h1, l1 = bits.Mul64(x2, x3)
	t5, c = bits.Add64(t5, l1, 0)
	t6 = h1 + c

	t1, c = bits.Add64(t1, t1, 0)
	t2, c = bits.Add64(t2, t2, c)
	t3, c = bits.Add64(t3, t3, c)
	t4, c = bits.Add64(t4, t4, c)
	t5, c = bits.Add64(t5, t5, c)
	t6, t7 = bits.Add64(t6, t6, c)
	h0, t0 := bits.Mul64(x0, x0)
	h1, l1 = bits.Mul64(x1, x1)
	h2, l2 = bits.Mul64(x2, x2)
	h3, l3 = bits.Mul64(x3, x3)
	t1, c = bits.Add64(t1, h0, 0)
	t2, c = bits.Add64(t2, l1, c)
	t3, c = bits.Add64(t3, h1, c)
	t4, c = bits.Add64(t4, l2, c)
	t5, c = bits.Add64(t5, h2, c)
	t6, c = bits.Add64(t6, l3, c)
	t7 += h3 + c
	h4, l4 := bits.Mul64(t4, fieldFold)
	h5, l5 := bits.Mul64(t5, fieldFold)
	h6, l6 := bits.Mul64(t6, fieldFold)
	h7, l7 := bits.Mul64(t7, fieldFold)
	t0, c = bits.Add64(t0, l4, 0)
	t1, c = bits.Add64(t1, l5, c)
	t2, c = bits.Add64(t2, l6, c)
	t3, c = bits.Add64(t3, l7, c)
	t1, d := bits.Add64(t1, h4, 0)
	t2, d = bits.Add64(t2, h5, d)
	t3, d = bits.Add64(t3, h6, d)
	h, l := bits.Mul64(h7+c+d, fieldFold)
	t0, c = bits.Add64(t0, l, 0)
	t1, c = bits.Add64(t1, h, c)
	t2, c = bits.Add64(t2, 0, c)
	t3, c = bits.Add64(t3, 0, c)
	// A second carry leaves less than 2^67.
	t0, c = bits.Add64(t0, -c&fieldFold, 0)
	z[0], z[1], z[2], z[3] = t0, t1+c, t2, t3
}
