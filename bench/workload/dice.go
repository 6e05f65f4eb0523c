package workload

import (
	"math"
	"math/rand/v2"
	"sort"
	"sync"
)

// drawer draws numbers from a seed, the same on every machine. math/rand/v2 does so for integers
// and uniform numbers. Its normal, exponential and Zipf draws call math.Exp and math.Log, which are
// written in assembly on some machines and compiled to fused multiplications and additions on
// others, and end in other last bits there. Here every product that is added to something is
// converted to float64 first, which the language rounds; divisions, roots, Frexp and Ldexp are
// exact everywhere.
type drawer struct {
	*rand.Rand
	z *ziggurat
}

func newDice(seed, stream uint64) drawer {
	return drawer{rand.New(rand.NewPCG(seed, stream)), theZiggurat()}
}

// ziggurat are the tables of Marsaglia and Tsang, "The Ziggurat Method for Generating Random
// Variables" (2000): layers of one area under a density. Their sizes are those of math/rand/v2, so
// that a stream of a drawer is a stream of that package too: old operations are drawn again.
type ziggurat struct {
	normal      layers
	exponential layers
}

// layers are one density's: a draw j of 32 bits in layer i is j*width[i], and lies under the
// density if j is below the limit.
type layers struct {
	limit  []uint32
	width  []float32
	height []float32
}

const (
	normalTail      = 3.442619855899 // where the last of 128 layers begins
	normalArea      = 9.91256303526217e-3
	exponentialTail = 7.69711747013104972 // of 256
	exponentialArea = 3.949659822581572e-3
)

// theZiggurat makes the tables once.
var theZiggurat = sync.OnceValue(func() *ziggurat {
	return &ziggurat{
		normal: slope{tail: normalTail, area: normalArea, density: bell, at: func(f float64) float64 {
			return math.Sqrt(float64(-2 * logarithm(f)))
		}}.layers(128, 1<<31),
		exponential: slope{tail: exponentialTail, area: exponentialArea,
			density: func(x float64) float64 { return power(-x) },
			at:      func(f float64) float64 { return -logarithm(f) }}.layers(256, 1<<32),
	}
})

func bell(x float64) float64 { return power(float64(float64(-.5*x) * x)) }

// slope is a density, with where its last layer begins and the area of each; at is where it has a
// height.
type slope struct {
	tail, area  float64
	density, at func(float64) float64
}

// layers cuts the curve into n layers, for draws below scale.
func (c slope) layers(n int, scale float64) layers {
	tail, density := c.tail, c.density
	l := layers{make([]uint32, n), make([]float32, n), make([]float32, n)}
	base := c.area / density(tail)
	l.limit[0], l.limit[1] = uint32(float64((tail/base)*scale)), 0
	l.width[0], l.width[n-1] = float32(base/scale), float32(tail/scale)
	l.height[0], l.height[n-1] = 1, float32(density(tail))
	x, before := tail, tail
	for i := n - 2; i > 0; i-- {
		x = c.at(c.area/x + density(x))
		l.limit[i+1] = uint32(float64((x / before) * scale))
		before = x
		l.height[i], l.width[i] = float32(density(x)), float32(x/scale)
	}
	return l
}

// under reports whether a point of layer i, so far from its floor, lies under the density there.
func (l *layers) under(i int, u, density float64) bool {
	risen := float32(float32(u) * (l.height[i-1] - l.height[i]))
	return l.height[i]+risen < float32(density)
}

// bellCurve draws from the normal distribution with mean 0 and deviation 1.
func (d drawer) bellCurve() float64 {
	l := &d.z.normal
	for {
		u := d.Uint64()
		j, i := int32(u), int(u>>32&127)
		x := float64(float64(j) * float64(l.width[i]))
		if uint32(max(int64(j), -int64(j))) < l.limit[i] {
			return x
		}
		if i > 0 {
			if l.under(i, d.Float64(), bell(x)) {
				return x
			}
			continue
		}
		for { // the tail beyond the last layer
			x = float64(-logarithm(d.Float64()) * (1.0 / normalTail))
			if y := -logarithm(d.Float64()); y+y >= float64(x*x) {
				break
			}
		}
		if j > 0 {
			return normalTail + x
		}
		return -normalTail - x
	}
}

// decay draws from the exponential distribution with mean 1.
func (d drawer) decay() float64 {
	l := &d.z.exponential
	for {
		u := d.Uint64()
		j, i := uint32(u), int(u>>32&255)
		x := float64(float64(j) * float64(l.width[i]))
		if j < l.limit[i] {
			return x
		}
		if i == 0 {
			return exponentialTail - logarithm(d.Float64())
		}
		if l.under(i, d.Float64(), power(-x)) {
			return x
		}
	}
}

// ranks draws numbers below n, number k with a weight of 1 / (k+1)^s, s in hundredths: Zipf's law.
// The weights are integers, so that a draw is a search among integers.
type ranks struct{ sums []uint64 }

func newRanks(n, s int) *ranks {
	r := &ranks{make([]uint64, n)}
	sum := uint64(0)
	for k := range r.sums {
		away := float64(float64(s)/100) * logarithm(float64(k+1))
		sum += max(uint64(math.Ldexp(power(-away), 40)), 1)
		r.sums[k] = sum
	}
	return r
}

func (r *ranks) draw(d drawer) int {
	at := d.Uint64N(r.sums[len(r.sums)-1])
	return sort.Search(len(r.sums), func(k int) bool { return r.sums[k] > at })
}

// ln2 is the logarithm of 2 in two parts: the first has so few bits that its products with small
// integers are exact.
const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// logarithm is the natural logarithm of a positive number, to about the last bit.
func logarithm(x float64) float64 {
	m, e := math.Frexp(x) // x = m * 2^e, m in [1/2, 1)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	// log m = 2 (s + s^3/3 + s^5/5 …) with s = (m-1)/(m+1), which is at most 0.172.
	s := (m - 1) / (m + 1)
	square, sum := float64(s*s), 0.0
	for k := 23; k >= 3; k -= 2 {
		sum = float64(square * (1/float64(k) + sum))
	}
	k := float64(e)
	rest := float64(k*ln2Low) + float64(2*float64(s*sum))
	return float64(k*ln2High) + (2*s + rest)
}

// power is e to the power of x, to about the last bit, for results that are normal numbers.
func power(x float64) float64 {
	k := math.Round(x / math.Ln2)
	r := (x - float64(k*ln2High)) - float64(k*ln2Low) // at most 0.347
	sum := 0.0
	for i := 15; i >= 1; i-- {
		sum = float64(r / float64(i) * (1 + sum))
	}
	return math.Ldexp(1+sum, int(k))
}
