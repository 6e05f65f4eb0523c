package sequencer

import (
	"testing"
	"time"

	"clobd/engine"
)

// TestClock drives a clock over readings of its own: it starts at the later of journal and wall,
// follows the monotonic clock, and takes a step of the wall clock 1 ms per second.
func TestClock(t *testing.T) {
	const second = int64(time.Second)
	var wall, elapsed int64
	pass := func(d int64) { wall, elapsed = wall+d, elapsed+d }
	for _, c := range []struct {
		name       string
		last, step int64 // ms before the start; ms that the wall clock is stepped after it
		start      int64 // ms
		after      int64 // ms, 10 s later
	}{
		{"wall ahead of the journal", 500, 0, 1000, 11_000},
		{"journal ahead of the wall", 3000, 0, 3000, 12_990},
		{"journal ahead by less than the slew", 1004, 0, 1004, 11_000},
		{"wall stepped forwards", 0, 3_600_000, 1000, 11_010},
		{"wall stepped back", 0, -3_600_000, 1000, 10_990},
	} {
		wall, elapsed = 1000*int64(time.Millisecond), 77
		now := newClock(engine.Time(c.last), func() (int64, int64) { return wall, elapsed })
		if got := now(); int64(got) != c.start {
			t.Errorf("%s: starts at %d, want %d", c.name, got, c.start)
		}
		wall += c.step * int64(time.Millisecond)
		before := now()
		for elapsed < 77+10*second {
			pass(333) // the allowance must not get lost in short intervals
			if elapsed%7 == 0 {
				pass(min(second/100, 77+10*second-elapsed))
			}
			at := now()
			if at < before {
				t.Fatalf("%s: %d after %d", c.name, at, before)
			}
			before = at
		}
		if int64(before) != c.after {
			t.Errorf("%s: %d after 10 s, want %d", c.name, before, c.after)
		}
	}
}

// TestNewClock: the real one begins at the wall clock, or at the journal's end.
func TestNewClock(t *testing.T) {
	wall := time.Now().UnixMilli()
	got := int64(NewClock(0)())
	if after := time.Now().UnixMilli(); got < wall || got > after+10_000 {
		t.Fatalf("%d, wall %d to %d", got, wall, after)
	}
	if last := engine.Time(wall + 1_000_000); NewClock(last)() < last {
		t.Fatal("before the journal's end")
	}
}
