package engine

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestFeeGoldens are the published examples: 4.41 % of 100 shares at exponent 1.
func TestFeeGoldens(t *testing.T) {
	for _, c := range []struct {
		fee  Fee
		size Size
		p    Price
		want Cash
	}{
		{Fee{441, 1}, 100 * Unit, 5000, 1_102_500},
		{Fee{441, 1}, 100 * Unit, 1000, 396_900},
		{Fee{441, 1}, 100 * Unit, 9000, 396_900},
		{Fee{441, 1}, 100 * Unit, 100, 43_660}, // 43,659
		{Fee{441, 1}, 100 * Unit, 9900, 43_660},
		{Fee{441, 0}, 100 * Unit, 100, 4_410_000},
		{Fee{2500, 2}, 100 * Unit, 5000, 1_562_500},
		{Fee{9999, 3}, 100 * Unit, 5000, 1_562_340}, // 1,562,343.75
		{Fee{1, 0}, 4 * Lot, 5000, 0},
		{Fee{1, 0}, 5 * Lot, 5000, 10},
		{Fee{}, MaxOrder, 5000, 0},
	} {
		if got := c.fee.on(c.size, c.p); got != c.want {
			t.Errorf("%+v on %v at %v: %d, want %d", c.fee, c.size, c.p, got, c.want)
		}
	}
}

// exactFee is the fee in base units as a fraction.
func exactFee(f Fee, size Size, p Price) *big.Rat {
	fee := big.NewRat(int64(size)*int64(f.Rate), 10_000)
	for range f.Exponent {
		fee.Mul(fee, big.NewRat(int64(p)*int64(PriceOne-p), 100_000_000))
	}
	return fee
}

// floorRat is the largest whole number that is not above r.
func floorRat(r *big.Rat) int64 { return new(big.Int).Div(r.Num(), r.Denom()).Int64() }

func drawFee(t *rapid.T) Fee {
	return Fee{Rate: rapid.Uint16Range(0, 9999).Draw(t, "rate"),
		Exponent: rapid.Uint8Range(0, 3).Draw(t, "exponent")}
}

// TestFeeAgainstFractions compares both roundings with fractions, up to the largest order.
func TestFeeAgainstFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, lots := drawFee(t), rapid.Int64Range(0, int64(MaxOrder/Lot)).Draw(t, "lots")
		lots >>= rapid.IntRange(0, 32).Draw(t, "smaller")
		size, p := Size(lots)*Lot, Price(rapid.IntRange(1, 9999).Draw(t, "price"))
		steps := exactFee(f, size, p)
		steps.Quo(steps, big.NewRat(feeStep, 1))
		half := new(big.Rat).Add(steps, big.NewRat(1, 2))
		up := new(big.Rat).Neg(steps)
		if got, want := f.on(size, p), Cash(floorRat(half)*feeStep); got != want {
			t.Fatalf("%+v on %d at %d: %d, want %d", f, size, p, got, want)
		}
		if got, want := f.most(size, p), Cash(-floorRat(up)*feeStep); got != want {
			t.Fatalf("%+v on %d at %d: at most %d, want %d", f, size, p, got, want)
		}
		if f.on(size, p) != f.on(size, PriceOne-p) {
			t.Fatal("the complement pays another fee")
		}
	})
}

// TestFeeGrows: cost plus exact fee grows with the price. So the amount that suffices at the limit
// suffices at every better price, apart from rounding.
func TestFeeGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFee(t)
		size := Size(rapid.Int64Range(1, int64(MaxOrder/Lot)).Draw(t, "lots")) * Lot
		p := Price(rapid.IntRange(1, 9998).Draw(t, "price"))
		all := func(p Price) *big.Rat {
			return new(big.Rat).Add(big.NewRat(int64(Cost(size, p)), 1), exactFee(f, size, p))
		}
		if all(p).Cmp(all(p+1)) >= 0 {
			t.Fatalf("%+v: %v at %d, %v at the next price", f, all(p), p, all(p+1))
		}
	})
}

// TestEnough: enough, which ignores the exact fee, is never less than need.
func TestEnough(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lots := rapid.Int64Range(1, int64(MaxOrder/Lot)).Draw(rt, "lots")
		price := Price(rapid.IntRange(1, int(PriceOne)-1).Draw(rt, "price"))
		m := market{}
		m.fee.Rate = uint16(rapid.IntRange(0, MaxFeeRate).Draw(rt, "rate"))
		m.fee.Exponent = uint8(rapid.IntRange(0, MaxFeeExponent).Draw(rt, "exponent"))
		c := Command{Side: Side(rapid.IntRange(0, 1).Draw(rt, "side"))}
		c.PostOnly = rapid.Bool().Draw(rt, "post")
		k := taker{c: &c, market: &m, size: Size(lots) * Lot, price: price}
		most := rapid.SampledFrom([]int64{0, 1, MaxAmount}).Draw(rt, "at most")
		c.Cash = Cost(k.size, price) + Cash(rapid.Int64Range(0, most).Draw(rt, "more"))
		k.budget = c.Side == Buy && rapid.Bool().Draw(rt, "budget")
		if k.enough() < k.need() {
			rt.Fatalf("%d is called enough, %d is needed", k.enough(), k.need())
		}
	})
}
