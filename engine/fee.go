package engine

import "math/bits"

// feeStep is the unit of fees in base units of collateral: five decimals.
const feeStep = 10

// on returns the fee for size shares at price p, rounded to the nearest step, half a step up. size
// is a multiple of Lot, at most MaxOrder. The complementary prices p and 1-p have the same fee.
// Many small fills may cost more or less than one large fill, because each is rounded.
func (f Fee) on(size Size, p Price) Cash { return f.round(size, p, false) }

// most is on rounded up. A Rate is less than 1, so that cost plus fee grows with the price.
func (f Fee) most(size Size, p Price) Cash { return f.round(size, p, true) }

// round returns n / d steps, rounded up or to the nearest, where n = lots * Rate *
// (p*(1-p))^Exponent counts base units times 100,000,000^Exponent. n has at most 120 bits.
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

func divide(hi, lo, by uint64) (uint64, uint64) {
	if hi == 0 {
		return 0, lo / by
	}
	low, _ := bits.Div64(hi%by, lo, by)
	return hi / by, low
}
