package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"clobd/engine"
	"clobd/journal"
)

// Recorded calls each with the frames that the node of a data folder, or of a backup, wrote. A
// frame is valid until each returns. The folder is only read.
func Recorded(ctx context.Context, dir string, each func(*engine.Frame) bool) error {
	j, err := journal.Open(journal.Options{Dir: dir, ReadOnly: true,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("replay %s: %w", dir, err)
	}
	defer j.Close()
	if j.Last() == 0 {
		return fmt.Errorf("replay %s: nothing is recorded in it", dir)
	}
	err = j.Frames(1, func(f *engine.Frame) bool { return each(f) && ctx.Err() == nil })
	if err = errors.Join(err, ctx.Err()); err != nil {
		return fmt.Errorf("replay %s: %w", dir, err)
	}
	return nil
}

// Reel is some frames of a recording, ready for Apply.
type Reel struct {
	Commands []engine.Command
	frames   []reelFrame
}

// reelFrame is what a frame says of its Commands, which end before end.
type reelFrame struct {
	no     uint64
	end    int
	first  engine.Sequence
	time   engine.Time
	digest engine.Digest
}

// add copies a frame. Evidence is left out: Apply does not read it.
func (r *Reel) add(f *engine.Frame) {
	for _, c := range f.Commands {
		r.Commands = append(r.Commands, retained(&c, false))
	}
	r.frames = append(r.frames, reelFrame{f.No, len(r.Commands), f.First, f.Time, f.Digest})
}

// Apply applies the Commands with their recorded Sequences and Times, and adds what comes of them
// to t. After each frame the digest must be the recorded one.
func (r *Reel) Apply(x *engine.Exchange, t *Tally) error {
	var events []engine.Event
	i := 0
	for k := range r.frames {
		f := &r.frames[k]
		for at := f.first; i < f.end; i, at = i+1, at+1 {
			events = x.Apply(&r.Commands[i], at, f.time, events[:0])
			t.Add(events)
		}
		if x.Digest() != f.digest {
			return fmt.Errorf("after frame %d the digest is %016x, the recorded one %016x", f.no,
				uint64(x.Digest()), uint64(f.digest))
		}
	}
	return nil
}

// Film is a recording in reels. One that is small is decoded once.
type Film struct {
	reels    []*Reel
	commands int  // in reels
	whole    bool // reels are all of the recording
}

const (
	reelSize = 8192    // Commands, or a frame more
	filmed   = 500_000 // Commands that a film keeps: some 200 MB
)

// Play calls show with the reels of a folder, while goesOn.
func (m *Film) Play(ctx context.Context, dir string, goesOn func() bool, show func(*Reel)) error {
	if m.whole {
		for i := 0; i < len(m.reels) && goesOn() && ctx.Err() == nil; i++ {
			show(m.reels[i])
		}
		return ctx.Err()
	}
	m.reels, m.commands = nil, 0
	r := &Reel{}
	next := func() {
		if len(r.Commands) == 0 {
			return
		}
		show(r)
		if m.commands += len(r.Commands); m.commands <= filmed {
			m.reels = append(m.reels, r)
			r = &Reel{}
			return
		}
		m.reels = nil
		r = &Reel{r.Commands[:0], r.frames[:0]}
	}
	err := Recorded(ctx, dir, func(f *engine.Frame) bool {
		if r.add(f); len(r.Commands) >= reelSize {
			next()
		}
		return goesOn()
	})
	if err == nil && goesOn() {
		next()
		m.whole = m.commands <= filmed
	}
	return err
}

// retained is a Command that stays when its frame is gone.
func retained(c *engine.Command, evidence bool) engine.Command {
	k := *c
	if k.Proof = nil; evidence {
		k.Proof = bytes.Clone(c.Proof)
	}
	if c.Listing != nil {
		l := *c.Listing
		k.Listing = &l
	}
	return k
}

// Rehearse reads a recording for callers of a Sequencer: first what makes markets, wallets and
// keys, and gives, in the recorded order, which gives them the recorded numbers; then the rest. The
// Sequencer makes Started and Advance itself. Orders that were to end at a time end as long after
// the start as they did when they were recorded.
func Rehearse(ctx context.Context, dir string) (first, rest []engine.Command, err error) {
	began, now := engine.Time(0), engine.Time(time.Now().UnixMilli())
	err = Recorded(ctx, dir, func(f *engine.Frame) bool {
		if began == 0 {
			began = f.Time
		}
		for i := range f.Commands {
			c := retained(&f.Commands[i], true)
			switch c.Kind {
			case engine.Started, engine.Advance:
			case engine.List, engine.Deposit, engine.Link, engine.SetKey:
				first = append(first, c)
			default:
				if c.Deadline = 0; c.Kind == engine.Place && c.Expiry != 0 {
					c.Expiry += now - began
				}
				rest = append(rest, c)
			}
		}
		return len(rest) < MostOps
	})
	return first, rest, err
}
