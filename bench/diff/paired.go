package diff

import (
	"math"
	"math/rand/v2"
	"slices"
)

// exactPairs is up to how many pairs all assignments of signs are tried: 65,536. More pairs get as
// many assignments at random, always the same ones.
const exactPairs = 16

// rounding is up to which mean of logarithms is 0: values that are equal but for rounding.
const rounding = 1e-12

// shift is by how much the members of pairs differ.
type shift struct {
	ratio     float64 // the geometric mean of the ratios
	low, high float64 // of the ratio, with confidence 1-Alpha; 0 and +Inf if the pairs are too few
	p         float64 // two-sided
}

// paired tests whether the logarithms of the ratios of pairs lie around 0. If A and B did not
// differ, each logarithm could as well have the other sign. So p is the share of the assignments of
// signs whose sum is at least as far from 0 as the sum that was measured.
//
// Flipping a subset of the signs leaves a sum at least as high if the mean of the subset is at most
// 0. So the sorted means of the subsets give p and, as order statistics, the interval: all ratios
// that the same test does not reject (Hartigan's typical values). The interval lacks 1 if p is at
// most Alpha, and only then.
func paired(logs []float64) shift {
	means := subsetMeans(logs)
	all := float64(len(means) + 1) // with the empty subset, which flips nothing
	var atMost, atLeast float64 = 1, 1
	for _, m := range means {
		if m <= rounding {
			atMost++
		}
		if m >= -rounding {
			atLeast++
		}
	}
	sum := 0.
	for _, l := range logs {
		sum += l
	}
	s := shift{ratio: math.Exp(sum / float64(len(logs))), p: min(1, 2*min(atMost, atLeast)/all),
		high: math.Inf(1)}
	slices.Sort(means)
	if beyond := int(Alpha/2*all - 1); Alpha/2*all >= 1 {
		s.low, s.high = math.Exp(means[beyond]), math.Exp(means[len(means)-1-beyond])
	}
	return s
}

// subsetMeans are the means of all subsets that are not empty, or of subsets drawn at random if
// there are more than exactPairs values.
func subsetMeans(values []float64) []float64 {
	exact := len(values) <= exactPairs
	n := 1<<min(len(values), exactPairs) - 1
	means := make([]float64, 0, n)
	dice := rand.New(rand.NewPCG(1, 2))
	for i := 1; len(means) < n; i++ {
		sum, members := 0., 0
		for k, v := range values {
			if exact && i>>k&1 == 1 || !exact && dice.Uint64()&1 == 1 {
				sum += v
				members++
			}
		}
		if members > 0 {
			means = append(means, sum/float64(members))
		}
	}
	return means
}
