package disk

import (
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// StallTime is how long a frame may wait for its sync before the disk is said to hang.
	StallTime = 2 * time.Second
	// MaxWaiting is how many frames may wait at once.
	MaxWaiting = 2048
	// stallPoll is the time between two looks of Patrol.
	stallPoll = 200 * time.Millisecond
)

// timeZero is the origin of all waiting times. They are monotonic: setting the clock does not
// change them.
var timeZero = time.Now()

// Unsynced remembers since when each frame waits that was given to the log and is not durable yet.
// One goroutine calls Begin, one calls Done, and any goroutine may call Age.
type Unsynced struct {
	starts [MaxWaiting]atomic.Int64 // nanoseconds since timeZero, by the frame's number
	begun  atomic.Uint64            // number of the last frame that began to wait
	done   atomic.Uint64            // number of the last frame that does not wait any more
}

// Begin notes that frame no waits from a time on.
func (u *Unsynced) Begin(no uint64, at time.Time) {
	u.starts[no%MaxWaiting].Store(int64(at.Sub(timeZero)))
	u.begun.Store(no)
}

// Done notes that the frames up to no do not wait any more.
func (u *Unsynced) Done(no uint64) { u.done.Store(no) }

// Age is how long the oldest frame has waited; 0 if none waits.
func (u *Unsynced) Age() time.Duration { return u.age(time.Since(timeZero)) }

// age is Age at a time after timeZero.
func (u *Unsynced) age(now time.Duration) time.Duration {
	first := u.done.Load() + 1
	if first > u.begun.Load() {
		return 0
	}
	return max(now-time.Duration(u.starts[first%MaxWaiting].Load()), 1)
}

// Patrol writes to the log once when the disk of path begins to hang, and once when it goes on. It
// returns when one of the two channels is closed.
func (u *Unsynced) Patrol(path string, log *slog.Logger, closing, broken <-chan struct{}) {
	tick := time.NewTicker(stallPoll)
	defer tick.Stop()
	longest := time.Duration(0) // wait of the stall that was logged; 0: none
	for {
		select {
		case <-closing:
			return
		case <-broken:
			return
		case <-tick.C:
		}
		switch age := u.Age(); {
		case age >= StallTime:
			if longest == 0 {
				log.Error("the disk hangs: nothing can be acknowledged", "path", path,
					"frame", u.done.Load()+1, "waits", age.String(), "hint",
					"the node goes on by itself when the disk does; look at dmesg and at what else uses it")
			}
			longest = max(longest, age)
		case longest > 0:
			log.Info("the disk goes on", "path", path, "after", longest.String())
			longest = 0
		}
	}
}
