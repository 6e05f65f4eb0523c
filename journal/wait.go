package journal

import "fmt"

// Wait returns when all frames up to number frame are durable, and shows them to the Tails. It
// waits for frames that are not appended yet. An error is final: that frame and all after it were
// not acknowledged and never will be.
func (j *Journal) Wait(frame uint64) error {
	for j.hub.durable < frame { // only this goroutine moves it
		if failed := j.failed.Load(); failed != nil {
			return *failed
		}
		select {
		case f := <-j.flight:
			err := j.land(&f)
			j.airborne.Done()
			if err != nil {
				return err
			}
		case <-j.broken:
		case <-j.closing:
			return fmt.Errorf("wait for frame %d: %w", frame, ErrClosed)
		}
	}
	return nil
}
