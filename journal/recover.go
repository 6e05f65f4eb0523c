package journal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// Break is the error of a journal that is damaged: it says where and how.
type Break struct {
	Frame    uint64          // number of the frame that is wrong or missing
	Sequence engine.Sequence // the first Sequence that cannot be trusted, 0 if unknown
	Key      string          // its key in the database
	Path     string          // the database's folder
	Last     uint64          // number of the last frame in the journal, 0 if unknown
	What     string          // what is wrong
	Hint     string          // what to do; empty: run clobd recover
	Err      error           // the cause, or nil
}

// Error says what is wrong, where, and what to do.
func (b *Break) Error() string {
	s := fmt.Sprintf("journal %s is broken at frame %d (key %s", b.Path, b.Frame, b.Key)
	if b.Sequence > 0 {
		s += fmt.Sprintf(", from Sequence %d on", b.Sequence)
	}
	s += "): " + b.What
	if b.Err != nil {
		s += ": " + b.Err.Error()
	}
	if b.Last > b.Frame {
		s += fmt.Sprintf("; the %d frames after it cannot be used", b.Last-b.Frame)
	}
	return s + "; " + b.advice()
}

func (b *Break) advice() string {
	if b.Hint != "" {
		return b.Hint
	}
	return "nothing was changed: " + disk.HintDamaged
}

// Unwrap gives the cause.
func (b *Break) Unwrap() error { return b.Err }

// How much is decoded ahead of the replay. Frames are handed over in chunks, so that the two
// goroutines meet once for many small frames.
const (
	chunkFrames = 64
	chunkBytes  = 256 << 10
	chunkSlack  = 96 << 10 // room for the last frame, so that a chunk seldom has to grow
	chunks      = 4
)

// chunk is some decoded frames on their way to the replay.
type chunk struct {
	frames  []engine.Frame // as long as chunkFrames: their slices are used again
	numbers []uint64       // their keys
	arena   []byte         // their bytes, used again
	broken  *Break         // what is wrong with the frame after them; nil: nothing
}

// Restored is the result of Restore.
type Restored struct {
	State *State      // after Head; nil beside an error
	Head  engine.Head // of the last good frame
	// From is the checkpoint that was loaded; nil: the replay began with the first frame.
	From *Checkpoint
	// Frames and Commands are how many were replayed.
	Frames, Commands uint64
	// Skipped says why newer checkpoints were not used.
	Skipped []error
}

// Restore makes a State: it loads the newest good checkpoint and replays the frames after it. A
// checkpoint that is damaged, of another journal or ahead of this one is skipped, which the log
// says. Without a good one Restore replays the whole journal. It checks the frames that it replays
// as Recover does. Restored is never nil. Restore calls fresh for each checkpoint that it tries.
func (j *Journal) Restore(ctx context.Context, fresh func() *State) (*Restored, error) {
	r := &Restored{}
	if !j.gate.Enter() {
		return r, ErrClosed
	}
	defer j.gate.Leave()
	defer runtime.KeepAlive(j.headroom())
	s, from, skipped := j.begin(ctx, fresh)
	r.From, r.Skipped = from, skipped
	run := j.replay(ctx, s, from)
	err := run.all()
	if err == nil {
		err = j.arrive(&run)
	}
	r.Head, r.Frames, r.Commands = run.head, run.frames, run.commands
	if err == nil {
		r.State = s
	}
	return r, err
}

// replay makes the replay of the frames after the checkpoint from, which s was loaded from.
func (j *Journal) replay(ctx context.Context, s *State, from *Checkpoint) replay {
	run := replay{j: j, ctx: ctx, x: s.Exchange, each: s.Each}
	if from != nil {
		run.head, run.partition = from.Head, from.Partition
	}
	return run
}

// headroom is unused memory, about as much as the newest checkpoint will take. The garbage
// collector counts it: while the heap grows from nothing to a whole Exchange, it runs twice, not
// seven times.
func (j *Journal) headroom() []byte {
	const most, fold = 64 << 20, 6 // a loaded state is at most fold times as large as its file
	good, _ := j.Checkpoints()
	if len(good) == 0 {
		return nil
	}
	return make([]byte, min(fold*good[0].Bytes, most))
}

// begin makes a State of the newest good checkpoint, or an empty one.
func (j *Journal) begin(
	ctx context.Context, fresh func() *State) (s *State, from *Checkpoint, skipped []error) {
	good, skipped := j.Checkpoints()
	for i := range good {
		s := fresh()
		err := j.load(ctx, &good[i], s)
		if err == nil {
			return s, &good[i], skipped
		}
		if errors.Is(err, engine.ErrState) {
			j.damaged.Store(good[i].Path, true)
		}
		skipped = append(skipped, err)
		if ctx.Err() != nil {
			break
		}
	}
	for _, err := range skipped {
		j.Options.Log.Warn("checkpoint passed over", "error", err)
	}
	return empty(fresh), nil, skipped
}

// Newest makes a State of the newest good checkpoint of j, or an empty one, and tells of which
// frame it is. Frames may be appended meanwhile.
func Newest(ctx context.Context, j *Journal, fresh func() *State) (
	s *State, head engine.Head, err error) {
	if !j.gate.Enter() {
		return nil, head, ErrClosed
	}
	defer j.gate.Leave()
	s, from, _ := j.begin(ctx, fresh)
	if from != nil {
		head = from.Head
	}
	return s, head, ctx.Err()
}

func empty(fresh func() *State) *State {
	s := fresh()
	s.Exchange = engine.NewExchange(s.Seed)
	return s
}

// Recover replays every frame in order into x and calls each with it. It checks numbers, the chain
// of hashes, checksums, Sequences, recorded Events and Digests, and that no acknowledged frame is
// missing. If x is nil nothing is replayed; each may be nil, too. A frame and its Bytes are valid
// until each returns. An error of each ends the replay and is returned unchanged; a panic of each
// becomes a *Break. If the journal is damaged the error is a *Break and x must not be used; if the
// journal ends too early it is a *LossError. Recover, or Restore, comes before the first Append. It
// returns the Head of the last good frame, even beside an error: Append continues there.
func (j *Journal) Recover(
	x *engine.Exchange, each func(*engine.Frame) error) (engine.Head, error) {
	if !j.gate.Enter() {
		return engine.Head{}, ErrClosed
	}
	defer j.gate.Leave()
	r := replay{j: j, ctx: context.Background(), x: x, each: each}
	if err := r.all(); err != nil {
		return r.head, err
	}
	return r.head, j.arrive(&r)
}

// arrive ends a replay: it checks that no acknowledged frame is missing, and lets Append go on.
func (j *Journal) arrive(r *replay) error {
	if err := j.checkMark(r.head); err != nil {
		return err
	}
	if j.agreed != nil {
		if err := j.agreed.arrive(r.head); err != nil {
			return err
		}
	}
	if err := j.startMark(r.head); err != nil {
		return err
	}
	j.head, j.partition, j.recovered = r.head, r.partition, true
	j.unsynced.Done(r.head.Frame)
	j.gauges.sequence.Store(uint64(r.head.Sequence))
	return nil
}

// all reads and replays the frames after r.head to the end.
func (r *replay) all() error {
	free, ready := make(chan *chunk, chunks), make(chan *chunk, chunks)
	for range chunks {
		free <- &chunk{frames: make([]engine.Frame, chunkFrames),
			arena: make([]byte, 0, chunkBytes+chunkSlack)}
	}
	done, from := make(chan struct{}), r.head.Frame+1
	go func() {
		defer close(ready)
		decode(r.j, from, chunkFlow{free, ready, done})
	}()
	err := r.run(ready, free)
	close(done)
	for range ready { // until the decoder is gone
	}
	return err
}

// chunkFlow is how chunks go round: the decoder moves them from free to ready until done is closed.
type chunkFlow struct {
	free  <-chan *chunk
	ready chan<- *chunk
	done  <-chan struct{}
}

// decode scans the frames from number from on and hands them on in chunks, until the end, the first
// bad frame, or done.
func decode(j *Journal, from uint64, flow chunkFlow) {
	o := shown(j, from)
	if from == 1 { // so that a key below the first frame is found, too
		o.LowerBound = []byte{spaceFrame}
	}
	it, err := j.db.NewIter(o)
	if err != nil {
		flow.ready <- &chunk{broken: &Break{What: "cannot be read", Err: err}}
		return
	}
	defer it.Close()
	for more := it.First(); more; {
		var c *chunk
		select {
		case c = <-flow.free:
		case <-flow.done:
			return
		}
		more = c.fill(it)
		flow.ready <- c // never blocks: as many places as chunks
	}
	if err := it.Error(); err != nil {
		flow.ready <- &chunk{broken: &Break{What: "cannot be read", Err: err}}
	}
}

// fill decodes the next frames of it into c; false if there are no more.
func (c *chunk) fill(it *pebble.Iterator) bool {
	c.numbers, c.broken = c.numbers[:0], nil
	arena := c.arena[:0]
	defer func() { c.arena = arena }()
	for n := 0; n < chunkFrames && len(arena) < chunkBytes; n++ {
		no, ok := frameNo(it.Key())
		if !ok {
			c.broken = &Break{Key: fmt.Sprintf("%x", it.Key()), What: "malformed key"}
			return false
		}
		from := len(arena)
		arena = append(arena, it.Value()...) // a frame that does not fit moves to a new array
		b := arena[from:len(arena):len(arena)]
		if err := engine.DecodeUnhashed(b, &c.frames[n]); err != nil {
			c.broken = unreadable(no, err)
			return false
		}
		c.numbers = append(c.numbers, no)
		if !it.Next() {
			return false
		}
	}
	return true
}

// unreadable is the Break of a frame that does not decode.
func unreadable(no uint64, err error) *Break {
	b := &Break{Frame: no, Key: frameText(no), What: "damaged", Err: err}
	if errors.Is(err, engine.ErrFormat) {
		b.What, b.Hint = "of another version", "start the version of clobd that wrote it, or a later one"
	}
	return b
}

// replay checks and replays decoded frames.
type replay struct {
	j    *Journal
	ctx  context.Context
	x    *engine.Exchange
	each func(*engine.Frame) error
	head engine.Head // of the last frame that was checked, replayed and handed on
	// foreign accepts frames of versions that are no longer known without replaying them: from there
	// on x is nil.
	foreign bool
	until   func(*engine.Frame) bool // reports whether to end before a frame; nil: never

	partition        uint16 // of the first frame, and so of all
	frames, commands uint64 // replayed
}

// run replays the chunks in order; the error is nil if all of them were good.
func (r *replay) run(ready <-chan *chunk, free chan<- *chunk) error {
	for c := range ready {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		for i := range c.numbers {
			f := &c.frames[i]
			f.Hash = sha256.Sum256(f.Bytes) // not in decode, which has more to do
			if err := r.frame(c.numbers[i], f); err != nil {
				return err
			}
		}
		if c.broken != nil {
			// Frames are missing before the damaged one: that is the first thing wrong.
			if b := c.broken; b.Frame > r.head.Frame+1 {
				return r.locate(r.hole(b.Frame))
			}
			return r.locate(c.broken)
		}
		free <- c
	}
	return nil
}

// locate completes a Break with what the replay knows, such as the first Sequence after its head.
func (r *replay) locate(b *Break) *Break {
	b.Sequence, b.Path, b.Last = r.head.Sequence+1, r.j.Path, r.j.latest.last()
	if b.Frame == 0 {
		b.Frame = r.head.Frame + 1
	}
	if b.Key == "" {
		b.Key = frameText(b.Frame)
	}
	return b
}

func (r *replay) hole(no uint64) *Break {
	return &Break{What: fmt.Sprintf("missing: the next frame found is %d", no)}
}

// frame checks and replays the frame found under key number no, and calls each with it. A panic of
// the engine, whose value names the exact Sequence, or of each becomes a *Break.
func (r *replay) frame(no uint64, f *engine.Frame) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.locate(&Break{Frame: no, Err: fmt.Errorf("%v\n%s", p, debug.Stack()),
				What: fmt.Sprintf("the program panicked at its Sequences %d to %d", f.First, f.Last()),
				Hint: "this is a bug of the program: keep the folder and report it"})
		}
	}()
	if r.until != nil && r.until(f) {
		return errEnough
	}
	if b := r.step(no, f); b != nil {
		return r.locate(b)
	}
	if r.each != nil {
		if err := r.each(f); err != nil {
			return err
		}
	}
	r.head = f.Head()
	r.frames, r.commands = r.frames+1, r.commands+uint64(len(f.Commands))
	return nil
}

// step checks and replays the frame found under key number no.
func (r *replay) step(no uint64, f *engine.Frame) *Break {
	wrong := func(format string, args ...any) *Break {
		return &Break{Frame: no, What: fmt.Sprintf(format, args...)}
	}
	switch {
	case no != r.head.Frame+1:
		return r.hole(no)
	case f.No != no:
		return wrong("it says that it is frame %d", f.No)
	case f.Prev != r.head.Hash:
		return wrong("broken chain: it follows a frame with hash %x, but frame %d has %x",
			f.Prev[:8], r.head.Frame, r.head.Hash[:8])
	case f.First != r.head.Sequence+1:
		return wrong("its first Sequence is %d, the last one before it is %d",
			f.First, r.head.Sequence)
	case f.Epoch < r.head.Epoch:
		return wrong("its epoch is %d, after epoch %d", f.Epoch, r.head.Epoch)
	case f.Time < r.head.Time:
		return wrong("its time is %d, after time %d", f.Time, r.head.Time)
	case no > 1 && f.Partition != r.partition:
		return wrong("it is of partition %d, the journal of partition %d", f.Partition, r.partition)
	}
	r.partition = f.Partition
	if r.foreign && f.Engine < engine.Oldest {
		r.x = nil
	}
	if r.x == nil {
		return nil
	}
	return r.apply(f)
}

func (r *replay) apply(f *engine.Frame) *Break {
	if f.Engine < engine.Oldest {
		return &Break{Frame: f.No, What: fmt.Sprintf("written by engine version %d, this program knows "+
			"%d to %d", f.Engine, engine.Oldest, engine.Version),
			Hint: "start the version of clobd that wrote it and stop it in order, or run its clobd " +
				"checkpoint: this version goes on from the checkpoint that it leaves"}
	}
	if err := r.x.ApplyFrame(f); err != nil {
		// The error names the exact Sequence.
		return &Break{Frame: f.No, Err: err, What: "it cannot be replayed",
			Hint: "this program does not compute what the one that wrote it did: keep the folder, " +
				"start the version of clobd that wrote it, and report it"}
	}
	return nil
}
