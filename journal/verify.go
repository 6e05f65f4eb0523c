package journal

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"

	"clobd/engine"
	"clobd/journal/disk"
)

// Finding is a piece of damage: where it is, what is wrong, and what to do.
type Finding struct{ Where, What, Hint string }

// VerifyOptions say what Verify needs and whom it calls.
type VerifyOptions struct {
	// Fresh makes the State that is replayed, and one for each checkpoint.
	Fresh func() *State
	// Each is called with every good frame, in order, also of engine versions that are no longer
	// known; nil: nothing is called. The frame is valid until Each returns. An error ends the check
	// and becomes a Finding.
	Each func(*engine.Frame) error
	// Progress is called now and then with the number of frames done and of all; nil: nothing is.
	Progress func(done, total uint64)
}

// Checked is the result of Verify.
type Checked struct {
	Head             engine.Head // of the last good frame
	Last             uint64      // number of the last frame in the database
	Frames, Commands uint64      // whose chain was checked
	// Replayed is how many Commands gave the recorded Events and Digests. The others were written by
	// an engine version that is no longer known.
	Replayed    uint64
	Checkpoints int  // good ones, read to their end
	Compared    int  // how many of those were compared with the replayed state at their frame
	Marked      bool // there is a high-water mark, and the journal has the frame that it names
	Findings    []Finding
	// Notes are worth knowing, and no damage.
	Notes []string
}

func (v *Checked) find(where string, err error) {
	advice := Advice(err)
	if advice == "" {
		advice = disk.HintDamaged
	}
	what, _, _ := strings.Cut(disk.Plain(err, advice), "\n")
	v.Findings = append(v.Findings, Finding{where, what, advice})
}

func (v *Checked) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// progressFrames is the number of frames between two calls of Progress.
const progressFrames = 256

// verifier is one Verify at work.
type verifier struct {
	Checked
	j       *Journal
	ctx     context.Context
	options *VerifyOptions
	run     replay
	state   *State                   // the owner of run.x; nil while nothing can be replayed
	at      map[uint64][]*Checkpoint // checkpoints that were not checked yet, by frame
}

// Verify checks the whole journal: the chain from the first frame on, the replay of all frames of
// versions from engine.Oldest on, each checkpoint against the replayed state at its frame, and the
// end against the high-water mark. It changes nothing. The journal should be open ReadOnly. Damage
// is in Findings; the error is that of ctx, or ErrClosed.
func (j *Journal) Verify(ctx context.Context, o VerifyOptions) (*Checked, error) {
	if !j.gate.Enter() {
		return nil, ErrClosed
	}
	defer j.gate.Leave()
	v := &verifier{j: j, ctx: ctx, options: &o, at: make(map[uint64][]*Checkpoint)}
	v.Last = j.latest.last()
	good, bad := j.Checkpoints()
	for _, err := range bad {
		v.find(filepath.Join(j.Dir, checkpointFolder), disk.Advise(err, hintCheckpoint))
	}
	for i := range good {
		c := &good[i]
		v.at[c.Head.Frame] = append(v.at[c.Head.Frame], c)
	}
	v.state = empty(o.Fresh)
	v.run = replay{j: j, ctx: ctx, x: v.state.Exchange, each: v.frame, foreign: true}
	err := v.run.all()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	v.Head, v.Frames, v.Commands = v.run.head, v.run.frames, v.run.commands
	if err != nil {
		v.find(j.Path, err)
	}
	v.leftOver(good)
	v.end(err == nil)
	return &v.Checked, nil
}

// frame checks the checkpoints of a frame that was replayed, and hands the frame on.
func (v *verifier) frame(f *engine.Frame) error {
	if v.run.x == nil {
		v.state = nil
	} else {
		v.Replayed += uint64(len(f.Commands))
		if v.state.Each != nil {
			if err := v.state.Each(f); err != nil {
				return err
			}
		}
	}
	for _, c := range v.at[f.No] {
		v.checkpoint(c, f)
	}
	delete(v.at, f.No)
	if v.options.Each != nil {
		if err := v.options.Each(f); err != nil {
			return err
		}
	}
	if v.options.Progress != nil && (f.No%progressFrames == 0 || f.No == v.Last) {
		v.options.Progress(f.No, v.Last)
	}
	return nil
}

const hintCheckpoint = "nothing is lost, a start passes it over: delete the file; if no other one is " +
	"good, clobd checkpoint makes one"

// checkpoint checks a checkpoint after its frame f was replayed.
func (v *verifier) checkpoint(c *Checkpoint, f *engine.Frame) {
	loaded := v.options.Fresh()
	err := v.j.load(v.ctx, c, loaded)
	if err == nil && c.Engine >= engine.Oldest && c.Head != f.Head() {
		err = fmt.Errorf("checkpoint %s: it says that frame %d ends with %+v, which ends with %+v",
			c.Path, f.No, c.Head, f.Head())
	}
	if err == nil && v.state != nil && c.Engine >= engine.Oldest {
		if v.Compared++; v.differs(loaded) {
			err = fmt.Errorf("checkpoint %s: it holds another state than the frames up to %d make",
				c.Path, f.No)
		}
	}
	if err != nil {
		if v.ctx.Err() == nil {
			v.find(c.Path, disk.Advise(err, hintCheckpoint))
		}
		return
	}
	v.Checkpoints++
	if v.run.x == nil {
		v.state, v.run.x = loaded, loaded.Exchange
	}
}

func (v *verifier) differs(loaded *State) bool {
	a, err := hashState(v.state)
	b, errToo := hashState(loaded)
	return err != nil || errToo != nil || a != b
}

func hashState(s *State) (sum [32]byte, err error) {
	h := sha256.New()
	sink := func(b []byte) error { h.Write(b); return nil }
	err = s.save(sink)
	return [32]byte(h.Sum(nil)), err
}

// leftOver checks the checkpoints whose frames were not found.
func (v *verifier) leftOver(good []Checkpoint) {
	for i := range good {
		c := &good[i]
		if len(v.at[c.Head.Frame]) == 0 {
			continue
		}
		if err := v.j.load(v.ctx, c, v.options.Fresh()); err != nil {
			v.find(c.Path, disk.Advise(err, hintCheckpoint))
			continue
		}
		v.Checkpoints++
		v.note("checkpoint %s is whole; the frames before it are not, so it was not compared", c.Path)
	}
}

// end checks the journal's end against the mark, if the frames before it are good.
func (v *verifier) end(whole bool) {
	if v.Replayed < v.Commands {
		v.note("%d of %d commands were written by an engine version before %d: their chain was "+
			"checked, they were not replayed", v.Commands-v.Replayed, v.Commands, engine.Oldest)
	}
	if whole && v.state == nil {
		v.find(v.j.Path, disk.Advise(fmt.Errorf("its last frames were written by an engine "+
			"version before %d, and there is no checkpoint to go on from", engine.Oldest),
			"run clobd checkpoint of the version that wrote it"))
	}
	path := filepath.Join(v.j.Dir, markName)
	m, err := readMark(v.j.Options.FS, path)
	switch {
	case err != nil:
		v.find(path, err)
		return
	case m.good == 0 && v.Head.Frame > 0:
		v.note("there is no high-water mark: if the journal has lost its end nobody can tell")
	case m.good == 1:
		v.note("%s: one of its two slots cannot be read, the other one serves", path)
	}
	if !whole {
		return // the damage was reported
	}
	if err := v.j.checkMark(v.Head); err != nil {
		if m.good == 0 {
			path = v.j.Path
		}
		v.find(path, err)
		return
	}
	v.Marked = m.good > 0
}
