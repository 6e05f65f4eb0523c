package conn

import "time"

// arrivals counts what addresses do within a period.
type arrivals struct {
	period int64 // which one after 1970
	of     map[[20]byte]int
}

const (
	periodSeconds = 10
	// arrivalsMost is how many addresses are counted within a period. Those beyond count as new.
	arrivalsMost = 1 << 15
)

// count counts one more of an address, and returns how many there were in this period.
func (a *arrivals) count(key [20]byte, now time.Time) int {
	if p := now.Unix() / periodSeconds; p != a.period || a.of == nil {
		a.period = p
		if len(a.of) > crowd || a.of == nil {
			a.of = make(map[[20]byte]int) // the room of a large one is given back
		}
		clear(a.of)
	}
	if n := a.of[key]; n > 0 || len(a.of) < arrivalsMost {
		a.of[key] = n + 1
		return n + 1
	}
	return 1
}
