package journal

import (
	"sync/atomic"
	"time"
)

// StallTime is how long a frame may wait for its sync until the disk is said to hang.
const StallTime = 2 * time.Second

// stallPoll is how often it is looked at.
const stallPoll = 200 * time.Millisecond

// timeZero is where times of waiting are counted from. Unlike the time of day nobody sets them.
var timeZero = time.Now()

// unsynced knows since when each frame waits that was given to the log and is not durable. The
// appender begins, the committer ends, anybody asks.
type unsynced struct {
	starts [2 * inFlight]atomic.Int64 // nanoseconds since timeZero, by the frame's number
	begun  atomic.Uint64              // number of the last frame that began to wait
	done   atomic.Uint64              // and of the last one that need not any more
}

// begin notes that frame no begins to wait, so long after timeZero.
func (u *unsynced) begin(no uint64, at time.Duration) {
	u.starts[no%uint64(len(u.starts))].Store(int64(at))
	u.begun.Store(no)
}

// age is how long the oldest frame has waited at a time after timeZero; 0 if none waits.
func (u *unsynced) age(now time.Duration) time.Duration {
	first := u.done.Load() + 1
	if first > u.begun.Load() {
		return 0
	}
	return max(now-time.Duration(u.starts[first%uint64(len(u.starts))].Load()), 1)
}

// Unsynced is how long the oldest frame has waited that was appended and is not durable yet; 0 if
// there is none. From StallTime on the disk hangs: nothing is acknowledged.
func (j *Journal) Unsynced() time.Duration { return j.unsynced.age(time.Since(timeZero)) }

// patrol tells the log once when the disk begins to hang, and once when it goes on.
func (j *Journal) patrol() {
	tick := time.NewTicker(stallPoll)
	defer tick.Stop()
	longest := time.Duration(0) // of the stall that was told; 0: none
	for {
		select {
		case <-j.closing:
			return
		case <-j.broken:
			return
		case <-tick.C:
		}
		switch age := j.Unsynced(); {
		case age >= StallTime:
			if longest == 0 {
				j.options.Log.Error("the disk hangs: nothing can be acknowledged", "path", j.Path,
					"frame", j.unsynced.done.Load()+1, "waits", age.String(), "hint",
					"the node goes on by itself when the disk does; look at dmesg and at what else uses it")
			}
			longest = max(longest, age)
		case longest > 0:
			j.options.Log.Info("the disk goes on", "path", j.Path, "after", longest.String())
			longest = 0
		}
	}
}
