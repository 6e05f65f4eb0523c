package journal

import (
	"errors"
	"fmt"
	"time"
)

// Wait returns when all frames up to number frame are durable, and shows them to the Tails. It also
// waits for frames that are not appended yet. An error is final: that frame and all later frames
// were not acknowledged and never will be.
func (j *Journal) Wait(frame uint64) error {
	for j.latest.durable < frame { // only this goroutine moves it
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

// land waits for the sync of one frame and publishes it to the Tails.
func (j *Journal) land(f *flight) error {
	if !j.Options.Async {
		if err := f.batch.SyncWait(); err != nil {
			return j.fail(f.number, f.last, fmt.Errorf("sync frame %d: %w", f.number, err))
		}
	}
	if failed := j.failed.Load(); failed != nil {
		return *failed
	}
	if err := f.batch.Close(); err != nil {
		return j.fail(f.number, f.last, fmt.Errorf("sync frame %d: %w", f.number, err))
	}
	j.unsynced.Done(f.number)
	j.gauges.synced(time.Since(f.start), f.last)
	j.latest.push(f.number, f.bytes)
	if j.mark != nil {
		j.mark.note(f, j.ID)
	}
	return nil
}

// Unsynced is how long the oldest frame that was appended has waited to be durable; 0 if none
// waits. From disk.StallTime on the disk is said to hang.
func (j *Journal) Unsynced() time.Duration { return j.unsynced.Age() }

// Close waits for what is in flight, wakes all Tails and gives the folder back. Append and Wait
// say ErrClosed from then on.
func (j *Journal) Close() error {
	if !j.gate.Shut() {
		return ErrClosed
	}
	close(j.closing)
	j.guard.Hurry()
	j.latest.close()
	err := j.drain()
	if j.agreed != nil {
		err = errors.Join(err, j.agreed.close())
	}
	j.airborne.Wait() // for the frame that a concurrent Wait may have taken
	if j.mark != nil {
		err = errors.Join(err, j.mark.close())
	}
	j.guard.Retire()
	if err = errors.Join(err, j.guard.Close(j.db)); err != nil {
		return fmt.Errorf("close journal %s: %w", j.Path, err)
	}
	return nil
}

// drain waits for the syncs of all frames in flight. A concurrent Wait may take some of them.
func (j *Journal) drain() error {
	var problems []error
	for {
		select {
		case f := <-j.flight:
			if !j.Options.Async {
				problems = append(problems, f.batch.SyncWait())
			}
			problems = append(problems, f.batch.Close())
			j.airborne.Done()
		default:
			return errors.Join(problems...)
		}
	}
}
