package sequencer

import (
	"time"

	"clobd/engine"
)

// slew is how many nanoseconds must pass for the clock to be moved by one: 1 ms per second.
const slew = 1000

// NewClock returns a clock that starts at the wall clock, or at last, the last journaled Time, if
// that is later. It runs with the monotonic clock and approaches the wall clock by at most 1 ms per
// second. So a step of the wall clock never becomes a step of Time, and Time never runs backwards.
// Only one goroutine may call the clock.
func NewClock(last engine.Time) func() engine.Time {
	start := time.Now()
	return newClock(last, func() (wall, elapsed int64) {
		now := time.Now()
		return now.UnixNano(), int64(now.Sub(start))
	})
}

// newClock is NewClock over any wall clock and monotonic clock, both in nanoseconds.
func newClock(last engine.Time, read func() (wall, elapsed int64)) func() engine.Time {
	wall, elapsed := read()
	offset := max(int64(last)*int64(time.Millisecond), wall) - elapsed
	granted := elapsed // the allowance for the time up to here has been used
	return func() engine.Time {
		wall, elapsed := read()
		allowance := (elapsed - granted) / slew
		granted += allowance * slew
		offset += min(max(wall-offset-elapsed, -allowance), allowance)
		return engine.Time((offset + elapsed) / int64(time.Millisecond))
	}
}
