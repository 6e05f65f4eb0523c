package workload

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

// TestDiceAreThoseOfTheLibrary compares the draws with math/rand/v2 on the machine where the
// workloads were first drawn.
func TestDiceAreThoseOfTheLibrary(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the library's last bits are others on this machine")
	}
	const near = 1e-14 // the tails, a few draws in ten thousand, end in a logarithm
	close := func(a, b float64) bool { return math.Abs(a-b) <= near*math.Abs(b) }
	d, r := newDice(7, 7), rand.New(rand.NewPCG(7, 7))
	for i := range 5_000_000 {
		if a, b := d.bellCurve(), r.NormFloat64(); !close(a, b) {
			t.Fatalf("normal %d: %v, the library draws %v", i, a, b)
		}
		if a, b := d.decay(), r.ExpFloat64(); !close(a, b) {
			t.Fatalf("exponential %d: %v, the library draws %v", i, a, b)
		}
	}
}

func TestLogarithmAndPower(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 200_000 {
		x := math.Ldexp(r.Float64()+1e-9, r.IntN(60)-30)
		if a, b := logarithm(x), math.Log(x); math.Abs(a-b) > 4e-16*max(math.Abs(b), 1e-3) {
			t.Fatalf("logarithm of %v: %v, want %v", x, a, b)
		}
		y := 40*r.Float64() - 38
		if a, b := power(y), math.Exp(y); math.Abs(a-b) > 6e-16*b {
			t.Fatalf("power of %v: %v, want %v", y, a, b)
		}
	}
}

func TestRanksFollowZipf(t *testing.T) {
	d, counts, ranks := newDice(1, 1), make([]int, 1000), newRanks(1000, 110)
	for range 200_000 {
		counts[ranks.draw(d)]++
	}
	sum := 0.0
	for k := range counts {
		sum += math.Pow(float64(k+1), -1.1)
	}
	for _, k := range []int{0, 1, 9, 99} {
		want := 200_000 * math.Pow(float64(k+1), -1.1) / sum
		if got := float64(counts[k]); math.Abs(got-want) > 6*math.Sqrt(want) {
			t.Errorf("rank %d was drawn %v times, want about %.0f", k, got, want)
		}
	}
	same := newRanks(10, 0)
	for k, s := range same.sums {
		if s != uint64(k+1)<<40 {
			t.Errorf("without an exponent, rank %d ends at %d", k, s)
		}
	}
}
