package limits

import "time"

// A Crowd counts a caller for one to two spans after the caller has asked.
const crowdSpan = 100 * time.Millisecond

// Crowd counts how many different callers have asked lately. Only one goroutine at a time may use a
// Crowd.
type Crowd struct {
	began   time.Time
	span    int64  // the present one, from 1
	callers [2]int // of the last span, and of the present one
}

// NewCrowd makes an empty Crowd.
func NewCrowd() Crowd { return Crowd{began: time.Now()} }

// Note counts a caller who asks now. Each caller has a number of its own, at first 0, in which the
// Crowd keeps the span that has counted this caller last: seen points to that number.
func (c *Crowd) Note(seen *int64, now time.Time) {
	if span := int64(now.Sub(c.began)/crowdSpan) + 1; span != c.span {
		if c.callers[0] = c.callers[1]; span != c.span+1 {
			c.callers[0] = 0
		}
		c.span, c.callers[1] = span, 0
	}
	if *seen != c.span {
		*seen = c.span
		c.callers[1]++
	}
}

// Size returns how many callers asked in the present span, or in the last one if more did then.
func (c *Crowd) Size() int { return max(c.callers[0], c.callers[1]) }
