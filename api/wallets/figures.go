package wallets

import (
	"math"
	"math/bits"
)

// Routes compute in integers and round once at the end, half away from zero: money and percentages
// to two decimals, prices paid to six.

// ratio is a * by / over, rounded half away from zero; 0 if over is 0. over is not negative.
func ratio(a int64, by, over uint64) int64 {
	if over == 0 {
		return 0
	}
	size := uint64(a)
	if a < 0 {
		size = -size
	}
	hi, lo := bits.Mul64(size, by)
	lo, carry := bits.Add64(lo, over/2, 0)
	hi += carry
	q := uint64(math.MaxInt64)
	if hi < over {
		if q, _ = bits.Div64(hi, lo, over); q > math.MaxInt64 {
			q = math.MaxInt64
		}
	}
	if a < 0 {
		return -int64(q)
	}
	return int64(q)
}

// cents is an amount in base units rounded to hundredths of a unit.
func cents(v int64) int64 { return ratio(v, 1, 10_000) }

func percent(a, of int64) int64 { return ratio(a, 10_000, uint64(max(of, 0))) }
