package engine

import "fmt"

// ApplyFrame replays a decoded frame and compares the Events and the Digest with the recorded ones.
// An error names the first Sequence that differs; then do not use the Exchange. Frames must follow
// each other without a gap. Where Apply panics it panics with an error that names the Sequence.
func (x *Exchange) ApplyFrame(f *Frame) error {
	switch {
	case f.Engine < Oldest || f.Engine > Version:
		return fmt.Errorf("frame %d was made by engine version %d: this program knows %d to %d", f.No,
			f.Engine, Oldest, Version)
	case f.First != x.last+1:
		return fmt.Errorf("frame %d begins at Sequence %d: expected %d", f.No, f.First, x.last+1)
	}
	seq := f.First
	defer func() {
		if cause := recover(); cause != nil {
			panic(fmt.Errorf("replay of Sequence %d in frame %d: %v", seq, f.No, cause))
		}
	}()
	for i := range f.Commands {
		if i%TouchAhead == 0 {
			var ahead [TouchAhead]*Command
			n := min(TouchAhead, len(f.Commands)-i)
			for j := range n {
				ahead[j] = &f.Commands[i+j]
			}
			x.Touch(ahead[:n])
		}
		seq = f.First + Sequence(i)
		x.replayed = x.Apply(&f.Commands[i], seq, f.Time, x.replayed[:0])
		if err := compare(x.replayed, f.EventsOf(i)); err != nil {
			return fmt.Errorf("replay of Sequence %d in frame %d: %w", seq, f.No, err)
		}
	}
	if x.version != f.Engine {
		return fmt.Errorf("frame %d is of engine version %d, and version %d is in force", f.No, f.Engine,
			x.version)
	}
	if x.Digest() != f.Digest {
		return fmt.Errorf("replay up to Sequence %d in frame %d: Digest %016x, recorded %016x",
			f.Last(), f.No, x.Digest(), f.Digest)
	}
	return nil
}

func compare(got, recorded []Event) error {
	for i := range min(len(got), len(recorded)) {
		if got[i] != recorded[i] {
			return fmt.Errorf("event %d is %+v, recorded %+v", i, got[i], recorded[i])
		}
	}
	if len(got) != len(recorded) {
		return fmt.Errorf("%d events, recorded %d", len(got), len(recorded))
	}
	return nil
}
