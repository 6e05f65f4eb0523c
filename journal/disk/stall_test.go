package disk

import (
	"testing"
	"time"
)

// TestWaitIsNoTimeOfDay: how long a frame waits is counted from a time that nobody sets.
func TestWaitIsNoTimeOfDay(t *testing.T) {
	var u Unsynced
	u.Begin(1, timeZero.Add(time.Second))
	if age := u.age(time.Second + time.Millisecond); age != time.Millisecond {
		t.Errorf("after 1 ms it has waited for %v", age)
	}
	if timeZero == timeZero.Round(0) { // which has lost what no setting changes
		t.Error("times are counted from one of the day, which is set")
	}
}
