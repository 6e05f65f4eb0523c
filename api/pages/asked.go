package pages

// asked estimates how often pages were asked for lately. It takes the same room however many there
// are: pages share counters, so an estimate is never too low but for the halving.
type asked struct {
	counters [2][counters]uint8
	total    int
}

const (
	counters = 1 << 13
	most     = 255
	// halving is after how many requests all estimates are halved, so that what was popular once
	// gives way.
	halving = 10 * counters
)

// count counts a request, and returns the estimate.
func (a *asked) count(hash uint64) int {
	if a.total++; a.total >= halving {
		a.total = 0
		for row := range a.counters {
			for i := range a.counters[row] {
				a.counters[row][i] /= 2
			}
		}
	}
	for row, at := range places(hash) {
		if c := &a.counters[row][at]; *c < most {
			*c++
		}
	}
	return a.of(hash)
}

// of returns the estimate.
func (a *asked) of(hash uint64) int {
	at := places(hash)
	return int(min(a.counters[0][at[0]], a.counters[1][at[1]]))
}

func places(hash uint64) [2]uint64 { return [2]uint64{hash % counters, hash >> 32 % counters} }
