package bench

import (
	"context"
	"fmt"

	"clobd/engine"
	"clobd/journal"
)

// replay is what the frames of a journal say about a run.
type replay struct {
	placed     map[engine.OrderID]bool
	fills      int64
	bookkeeper *bookkeeper // nil: nobody asks what wallets hold
}

func newReplay() *replay { return &replay{placed: map[engine.OrderID]bool{}} }

// scan counts a replayed frame.
func (p *replay) scan(f *engine.Frame) {
	for i := range f.Commands {
		if f.Commands[i].Kind == engine.Place {
			p.placed[f.Commands[i].ID] = true
		}
		if p.bookkeeper != nil {
			p.bookkeeper.add(&f.Commands[i], f.EventsOf(i))
		}
		for _, e := range f.EventsOf(i) {
			if e.Kind == engine.Filled {
				p.fills++
			}
		}
	}
}

// frames applies encoded frames to x; each must end with the digest that it carries.
func (p *replay) frames(ctx context.Context, frames [][]byte, x *engine.Exchange) error {
	var f engine.Frame
	for _, b := range frames {
		if err := engine.DecodeFrame(b, &f); err != nil {
			return err
		}
		if err := x.ApplyFrame(&f); err != nil {
			return err
		}
		p.scan(&f)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// replayFolder opens the journal of a stopped writer in dir, as a restart would, and replays it
// into x. It returns nil and an error if there was nothing to replay. With a replay, the error says
// what the check found.
func replayFolder(ctx context.Context, dir string, x *engine.Exchange) (*replay, error) {
	return newReplay().folder(ctx, dir, x)
}

// folder is replayFolder, for a replay that may have a bookkeeper.
func (p *replay) folder(ctx context.Context, dir string, x *engine.Exchange) (*replay, error) {
	j, err := journal.Open(journal.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	defer j.Close()
	_, err = j.Recover(x, func(f *engine.Frame) error {
		p.scan(f)
		return ctx.Err()
	})
	return p, err
}

// check compares the live state with the replayed one.
func (r *Report) check(live, replayed *engine.Exchange, err error) {
	r.Digest = fmt.Sprintf("%016x", uint64(live.Digest()))
	r.Checked = "the journal replays to the same digest, frame by frame"
	switch {
	case err != nil:
		r.Failure = "replay: " + err.Error()
	case live.Digest() != replayed.Digest():
		r.Failure = fmt.Sprintf("the journal replays to digest %016x, the run ended with %016x",
			uint64(replayed.Digest()), uint64(live.Digest()))
	}
}

// missing fails the report if an acknowledged order is not in the journal.
func (r *Report) missing(acknowledged []engine.OrderID, seen *replay) {
	for _, id := range acknowledged {
		if !seen.placed[id] {
			r.Failure = "acknowledged order " + id.Hex() + " is not in the journal"
		}
	}
}
