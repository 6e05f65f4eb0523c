package journal

import (
	"context"
	"errors"
	"fmt"

	"clobd/engine"
)

// Last is the number of the last durable frame, 0 if there is none.
func (j *Journal) Last() uint64 { return j.latest.last() }

// Sequence is the last durable Sequence, 0 if there is none or the end is not known yet.
func (j *Journal) Sequence() engine.Sequence { return engine.Sequence(j.gauges.sequence.Load()) }

// Frames decodes the frames from number from on and calls each with them, in order, until the last
// frame or until each returns false. It checks each frame and that none is missing, but not the
// chain, and replays nothing. A frame is valid until each returns.
func (j *Journal) Frames(from uint64, each func(*engine.Frame) bool) (err error) {
	if !j.gate.Enter() {
		return ErrClosed
	}
	defer j.gate.Leave()
	from = max(from, 1)
	it, err := j.db.NewIter(shown(j, from))
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var f engine.Frame
	broken := func(no uint64, what string, err error) error {
		return &Break{Frame: no, Key: frameText(no), Path: j.Path, Last: j.latest.last(), What: what,
			Err: err, Hint: "clobd verify says what else is wrong"}
	}
	for ok := it.First(); ok; ok = it.Next() {
		if no, known := frameNo(it.Key()); !known || no != from {
			return broken(from, "missing", nil)
		}
		b, err := it.ValueAndErr()
		if err == nil {
			err = engine.DecodeFrame(b, &f)
		}
		if err != nil {
			return broken(from, "damaged", err)
		}
		if !each(&f) {
			return nil
		}
		from++
	}
	if err := it.Error(); err != nil {
		return broken(from, "cannot be read", err)
	}
	return nil
}

// Has reports whether frame no, which must be there, has that hash.
func (j *Journal) Has(no uint64, hash engine.Hash) (bool, error) {
	b, err := j.read(nil, no, no)
	if err != nil {
		return false, err
	}
	var f engine.Frame
	if err := engine.DecodeFrame(b[0], &f); err != nil {
		return false, fmt.Errorf("frame %d: %w", no, err)
	}
	return f.Hash == hash, nil
}

// errEnough ends a replay at the frame given by until.
var errEnough = errors.New("far enough")

// StateAt makes the State after Sequence seq, which may lie within a frame, from the newest
// checkpoint before seq and the Commands after that checkpoint. It calls the State's Each with
// whole frames only. It returns the Sequence that it reached: seq, or the journal's last Sequence.
func (j *Journal) StateAt(ctx context.Context, seq engine.Sequence, fresh func() *State) (
	*State, engine.Sequence, error) {
	if !j.gate.Enter() {
		return nil, 0, ErrClosed
	}
	defer j.gate.Leave()
	var s *State
	var from *Checkpoint
	good, _ := j.Checkpoints()
	for i := range good {
		if good[i].Head.Sequence > seq {
			continue
		}
		if s = fresh(); j.load(ctx, &good[i], s) == nil {
			from = &good[i]
			break
		}
	}
	if from == nil {
		s = empty(fresh)
	}
	var part *engine.Frame
	run := j.replay(ctx, s, from)
	run.until = func(f *engine.Frame) bool {
		if f.Last() > seq {
			part = f
		}
		return part != nil
	}
	if err := run.all(); err != nil && !errors.Is(err, errEnough) {
		return nil, run.head.Sequence, err
	}
	at := run.head.Sequence
	if part != nil {
		var events []engine.Event
		for i := range part.Commands {
			if at >= seq {
				break
			}
			at++
			events = s.Exchange.Apply(&part.Commands[i], at, part.Time, events[:0])
		}
	}
	return s, at, nil
}

// FrameOf returns the number of the durable frame that has a Sequence, or of the next frame to come
// if none has it yet.
func FrameOf(j *Journal, seq engine.Sequence) (uint64, error) {
	low, high := uint64(1), j.Last()+1
	var f engine.Frame
	for low < high {
		middle := low + (high-low)/2
		frames, err := j.read(nil, middle, middle)
		if err == nil {
			err = engine.DecodeUnhashed(frames[0], &f)
		}
		if err != nil {
			return 0, fmt.Errorf("find the frame of Sequence %d: %w", seq, err)
		}
		if f.Last() < seq {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, nil
}
