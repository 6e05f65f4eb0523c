package limits

import (
	"testing"
	"time"
)

// TestCrowd: a caller counts once a span, and until the end of the next one.
func TestCrowd(t *testing.T) {
	c := NewCrowd()
	seen := make([]int64, 9)
	for _, step := range []struct {
		at       time.Duration
		from, to int // callers
		want     int
	}{
		{0, 0, 3, 3}, {crowdSpan - 1, 2, 5, 5}, {crowdSpan, 0, 1, 5}, {crowdSpan + 1, 0, 9, 9},
		{2 * crowdSpan, 0, 1, 9}, {3 * crowdSpan, 0, 1, 1}, {4 * crowdSpan, 0, 7, 7},
		{9 * crowdSpan, 0, 2, 2}, {99 * crowdSpan, 0, 1, 1},
	} {
		for i := step.from; i < step.to; i++ {
			c.Note(&seen[i], c.began.Add(step.at))
			c.Note(&seen[i], c.began.Add(step.at))
		}
		if c.Size() != step.want {
			t.Errorf("at %v: %d callers, want %d", step.at, c.Size(), step.want)
		}
	}
}
