package wallets

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestRatio: against exact fractions, far beyond 64 bits, and where it saturates.
func TestRatio(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		a := r.Int64() >> r.IntN(63)
		if r.IntN(2) == 0 {
			a = -a
		}
		by, over := uint64(r.IntN(1_000_001)), uint64(r.Int64()>>r.IntN(63))
		want := int64(0)
		if over != 0 {
			x := new(big.Int).Mul(big.NewInt(a), new(big.Int).SetUint64(by))
			half, whole := new(big.Int).SetUint64(over/2), new(big.Int).SetUint64(over)
			sign := x.Sign()
			x.Quo(x.Add(x.Abs(x), half), whole)
			if want = math.MaxInt64; x.IsInt64() {
				want = x.Int64()
			}
			if sign < 0 {
				want = -want
			}
		}
		if got := ratio(a, by, over); got != want {
			t.Fatalf("ratio(%d, %d, %d) = %d, want %d", a, by, over, got, want)
		}
	}
	for v, want := range map[int64]int64{4999: 0, 5000: 1, -4999: 0, -5000: -1, 10_000: 1} {
		if got := cents(v); got != want {
			t.Errorf("cents(%d) = %d", v, got)
		}
	}
}

// TestAmounts: decimal numbers become base units exactly, and what is finer is rounded up.
func TestAmounts(t *testing.T) {
	for text, want := range map[string]int64{
		"": 7, "0": 0, "1": 1e6, "0.1": 1e5, "0.000001": 1, "0.0000001": 1, "1e-6": 1,
		"123456789.012345": 123456789012345, "0.29": 290_000, "+1": 1e6, "1E3": 1e9,
		"-1": -1, "1_0": -1, "0x10": -1, "inf": -1, "nan": -1, "1e30": -1, " 1": -1, ".": -1,
		"-0": 0, "1,5": -1,
	} {
		var ctx fasthttp.RequestCtx
		ctx.QueryArgs().Set("n", text)
		a := askFor(&ctx, "n")
		got := a.amount("n", 7)
		if bad := a.Refused != nil; bad != (want < 0) || !bad && got != want {
			t.Errorf("%q: %d, bad %v, want %d", text, got, bad, want)
		}
	}
}

// TestContainsFold: any letter case, and letters beyond ASCII.
func TestContainsFold(t *testing.T) {
	for _, c := range []struct {
		s, part string
		want    bool
	}{
		{"Will it Rain?", "rain?", true}, {"Will it Rain?", "", true}, {"", "a", false},
		{"Will it Rain?", "rain!", false}, {"abab", "babb", false}, {"ÉTÉ", "été", true},
		{"Will it rain in ÖREBRO?", "örebro", true}, {"ab", "abc", false},
	} {
		if got := containsFold(c.s, c.part); got != c.want {
			t.Errorf("%q in %q: %v", c.part, c.s, got)
		}
	}
}
