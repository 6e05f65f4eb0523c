package engine

import "math/bits"

// feeStep is what fees are rounded to, in base units of collateral: five decimals.
const feeStep = 10

// on is the fee for size shares at price p, rounded to the nearest step, a half of one up. size is
// a multiple of Lot, at most MaxOrder. Which of the two complementary prices p is does not matter.
//
// Each fill is rounded by itself, since each is posted and published by itself: a taker who meets
// many small orders may pay less than for one large one, or more. 100 shares at 0.01 for 441 basis
// points and exponent 1 cost 0.04366 in one fill, and nothing in fills of a lot each.
func (f Fee) on(size Size, p Price) Cash { return f.round(size, p, false) }

// most is the same rounded up. Because a Rate is less than 1, cost and fee together grow with the
// price: what is free for the limit is enough at every better price, but for the rounding of fills.
func (f Fee) most(size Size, p Price) Cash { return f.round(size, p, true) }

// round is n / d steps, up or to the nearest.
//
// With prices in 1/10,000, rates in basis points and lots of 1/100, n = lots * Rate *
// (p*(1-p))^Exponent counts base units times 100,000,000^Exponent. It has 120 bits at most.
func (f Fee) round(size Size, p Price, up bool) Cash {
	n, q := uint64(size/Lot)*uint64(f.Rate), uint64(p)*uint64(PriceOne-p)
	hi, lo, d, d2 := uint64(0), n, uint64(feeStep), uint64(1)
	switch f.Exponent {
	case 1:
		hi, lo = bits.Mul64(n, q)
		d *= 1e8
	case 2:
		hi, lo = bits.Mul64(n, q*q)
		d *= 1e16
	case 3:
		high, low := bits.Mul64(n, q*q)
		hi, lo = bits.Mul64(low, q)
		hi += high * q
		d, d2 = d*1e16, 1e8 // 10^25 takes two divisions
	}
	addHi, addLo := bits.Mul64(d/2, d2)
	if up {
		addHi, addLo = bits.Mul64(d, d2)
		borrow := uint64(0)
		addLo, borrow = bits.Sub64(addLo, 1, 0)
		addHi -= borrow
	}
	lo, carry := bits.Add64(lo, addLo, 0)
	hi, lo = divide(hi+addHi+carry, lo, d)
	if d2 != 1 {
		_, lo = divide(hi, lo, d2)
	}
	return Cash(lo * feeStep)
}

// divide is a number of 128 bits divided by one of 64, rounded down.
func divide(hi, lo, by uint64) (uint64, uint64) {
	if hi == 0 {
		return 0, lo / by
	}
	low, _ := bits.Div64(hi%by, lo, by)
	return hi / by, low
}
