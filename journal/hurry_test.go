//go:build !race

package journal

import (
	"runtime"
	"testing"
	"time"
)

// TestTailHurries: of two Tails that wait for a frame, the one that hurries has the frame first, if
// the committer then wakes a caller, which runs before both. With the race detector, the scheduler
// chooses at random.
func TestTailHurries(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	j := &Journal{}
	j.latest.init(1 << 20)
	hasty := j.Tail(1)
	hasty.Hurry()
	got, answer := make(chan *Tail, 2), make(chan struct{})
	for _, tail := range []*Tail{j.Tail(1), hasty} {
		go func() {
			for {
				if _, err := tail.Next(); err != nil {
					return
				}
				got <- tail
			}
		}()
		time.Sleep(time.Millisecond) // until it waits
	}
	go func() {
		for range answer { // a caller
		}
	}()
	const frames = 40
	first := 0
	for no := range uint64(frames) {
		time.Sleep(time.Millisecond)
		j.latest.push(no+1, []byte("frame"))
		answer <- struct{}{}
		if <-got == hasty {
			first++
		}
		<-got
	}
	close(answer)
	j.latest.close()
	if first < frames*3/4 {
		t.Errorf("it was first for %d of %d frames", first, frames)
	}
}
