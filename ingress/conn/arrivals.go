package conn

import "time"

// arrivals counts what addresses do within a second.
type arrivals struct {
	second int64 // after 1970
	of     map[[20]byte]int
}

// arrivalsMost is how many addresses are counted within a second. Those beyond count as new.
const arrivalsMost = 1 << 15

// count counts one more of an address, and returns how many there were in this second.
func (a *arrivals) count(key [20]byte, now time.Time) int {
	if s := now.Unix(); s != a.second || a.of == nil {
		a.second = s
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
