package lean

// standstill is a time in which the thread that sends stood still: it was not woken when it had
// asked to be, or it did not get a CPU between two waits. Answers that came meanwhile were read
// late, so nobody knows since when their lanes were free. Times are in ns from the start of the
// load.
type standstill struct{ from, to int64 }

// standstills are those of a load, oldest first.
type standstills []standstill

// pauseFloor is the shortest time that counts as a pause: sending to all lanes takes less.
const pauseFloor = 2_000_000

// note notes a pause, if it is one.
func (s *standstills) note(from, to int64) {
	if to-from >= pauseFloor {
		*s = append(*s, standstill{from, to})
	}
}

// lateness is how long the generator kept a request waiting that was due at an instant, over a lane
// that has been free since another one, and that was sent at a third one. What the request waited
// in pauses while its lane was busy is part of it: the answer that it waited for may have come when
// they began.
func (s standstills) lateness(due, free, sent int64) int64 {
	ready := max(due, free)
	late := sent - ready
	for i := len(s) - 1; i >= 0 && s[i].to > due; i-- {
		at := &s[i]
		late += max(min(at.to, ready)-max(at.from, due), 0)
	}
	return late
}
