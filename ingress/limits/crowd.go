package limits

import "time"

// A caller counts in a Crowd for one to two of these.
const crowdSpan = 100 * time.Millisecond

// Crowd counts the different callers of the last moment. Its user guards it.
type Crowd struct {
	began   time.Time
	span    int64  // the present one, from 1
	callers [2]int // of the last span, and of the present one
}

// NewCrowd makes an empty Crowd.
func NewCrowd() Crowd { return Crowd{began: time.Now()} }

// Note counts a caller whose own seen is 0 at first.
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

// Size returns how many callers the last span had, or the present one if those are more.
func (c *Crowd) Size() int { return max(c.callers[0], c.callers[1]) }
