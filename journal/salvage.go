package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// Loss says why a node cannot start with a journal, and what would be lost by going on.
type Loss struct {
	// Why is why a start is refused or, if Starts, what is damaged all the same; nil: nothing.
	Why error
	// Starts reports whether a node can start.
	Starts bool
	// Whole reports that nothing is lost: Repair is enough.
	Whole bool
	// Head is of the last good frame: the journal would go on behind it.
	Head engine.Head
	// Mark is the high-water mark if Marked. Foreign reports that the mark is of another journal.
	Mark            Mark
	Marked, Foreign bool
	// Frames is the number of frames behind Head, as far as is known.
	Frames uint64
	// Holes are the ranges of Sequences that cannot be read but have frames behind them.
	Holes []Hole
	// Through is the Sequence of a checkpoint behind the last of Holes: with it the state is complete
	// in spite of Holes. 0: there is none.
	Through engine.Sequence
	// Indexed reports that the index has the history of Holes. Then the journal can go on with them;
	// else it must end before the first.
	Indexed bool
	// Unflipped is the number of repaired frames of which one bit was flipped.
	Unflipped uint64
	// Unread are the files that could not be read to their end, with the reason.
	Unread []string
	// Undone is the folder from which the journal of an interrupted rescue was put back.
	Undone string
	// Final reports that accepting the loss does not help: another version of the program may, or a
	// copy.
	Final bool
	// Kept is the folder with everything that was cut off; "" if nothing was.
	Kept string
}

// Hole is a range of Sequences that cannot be read.
type Hole struct {
	First, Last engine.Sequence
	frame, end  uint64 // the first and the last frame
}

// Lost are the first and the last acknowledged Sequence known to be lost at the end, and their
// number: 0 if none is lost, or if it is not known.
func (l *Loss) Lost() (first, last engine.Sequence, count uint64) {
	if !l.Marked || l.Mark.Sequence <= l.Head.Sequence {
		return 0, 0, 0
	}
	return l.Head.Sequence + 1, l.Mark.Sequence, uint64(l.Mark.Sequence - l.Head.Sequence)
}

// RescueOptions says what a rescue needs.
type RescueOptions struct {
	// Options say where the journal is.
	Options
	// Fresh makes the State of each attempt to replay.
	Fresh func() *State
	// Indexed reports whether an index goes beyond a frame, fits the journal, and can be read from
	// its beginning to its end; nil: there is none.
	Indexed func(ctx context.Context, j *Journal, frame uint64) bool
}

// Folders of a rescue, below the data folder.
const (
	salvageFolder = "journal.salvage" // a database with all frames that could be found
	freshFolder   = "journal.new"     // the same, about to become the journal
	lostPrefix    = "lost-"
)

// copyBatch is how many bytes of frames are written at once.
const copyBatch = 4 << 20

// What a rescue may change.
const (
	look   = iota // nothing
	repair        // only what loses nothing
	accept        // everything
)

// Diagnose finds out whether a node can start with the journal in o.Dir, and if not, which part of
// it is good. It reads every frame and, if some cannot be read, every file. It changes nothing,
// except that it undoes an interrupted rescue. If there is damage it needs the room of a second
// journal. Diagnose, Repair and AcceptLoss hold the folder's lock until they return. The error is
// that of ctx, or says why the folder cannot be examined, such as a *disk.LockedError.
func Diagnose(ctx context.Context, o RescueOptions) (*Loss, error) {
	return rescue(ctx, o, look)
}

// Repair is AcceptLoss if nothing is lost, and Diagnose if something is.
func Repair(ctx context.Context, o RescueOptions) (*Loss, error) {
	return rescue(ctx, o, repair)
}

// AcceptLoss makes a new journal from the good part of the one in o.Dir, so that a node can start.
// It deletes nothing: the folder Loss.Kept gets what is cut off, damaged files included, the old
// mark, and an index that does not fit any more. New Commands get the Sequences of the lost ones.
// After an error AcceptLoss may be called again.
func AcceptLoss(ctx context.Context, o RescueOptions) (*Loss, error) {
	return rescue(ctx, o, accept)
}

// rescuer is one rescue at work.
type rescuer struct {
	Loss
	ctx       context.Context
	o         *RescueOptions
	work      **disk.Lock  // of salvageFolder, nil before there is one
	drain     func() error // waits until most of what was written is on the disk
	flush     func() error // and until all of it is
	id        uint64
	salvaged  bool // the good frames lie in salvageFolder
	damaged   bool // some frames cannot be read
	stretches []stretch
}

// lockJournal locks the folder of the journal, if there is one.
func lockJournal(o *Options) (*disk.Lock, error) {
	path := filepath.Join(o.Dir, "journal")
	if _, err := o.FS.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return disk.LockFolder(o.FS, path, true)
}

// rescue is Diagnose, Repair or AcceptLoss, by what it may change.
func rescue(ctx context.Context, o RescueOptions, may int) (l *Loss, err error) {
	o.ReadOnly = true
	if err := o.validate(); err != nil {
		return nil, err
	}
	undone, err := undoSwap(&o.Options)
	if err != nil {
		return nil, err
	}
	// Both locks are held to the end of the swap: a start, or another rescue, is refused meanwhile.
	// They move with their folders.
	var work *disk.Lock
	if o.lock, err = lockJournal(&o.Options); err != nil {
		return nil, err
	}
	defer func() {
		if work != nil {
			err = errors.Join(err, o.FS.RemoveAll(filepath.Join(o.Dir, salvageFolder)))
		}
		for _, lock := range []*disk.Lock{o.lock, work} {
			if lock != nil {
				err = errors.Join(err, lock.Close())
			}
		}
	}()
	r, err := diagnose(&rescuer{ctx: ctx, o: &o, work: &work})
	if err != nil {
		return nil, err
	}
	r.Undone = undone
	if r.Why == nil || r.Final || may == look || may == repair && !r.Whole {
		return &r.Loss, nil
	}
	if r.salvaged {
		err = r.trim()
	}
	if err == nil {
		err = r.swap()
	}
	if err != nil {
		err = fmt.Errorf("rescue %s: %w", o.Dir, err)
	}
	return &r.Loss, err
}

// diagnose judges the journal as it is and, if it is damaged, the frames in its files.
func diagnose(is *rescuer) (*rescuer, error) {
	o := is.o
	// What is good in a member's journal is not for it to judge: the others know.
	if m, _, _ := ReadMark(o.FS, o.Dir); m.Promise != (Promise{}) {
		return nil, fmt.Errorf("rescue %s: %w", o.Dir, errMember)
	}
	j, err := Open(o.Options)
	if err == nil && j.agreed != nil {
		return nil, errors.Join(fmt.Errorf("rescue %s: %w", o.Dir, errMember), j.Close())
	}
	if err == nil {
		err = errors.Join(is.judge(j), j.Close())
		if err != nil || is.Why == nil || is.Final || is.sound() {
			return is, err
		}
	} else if is.Why = err; hopeless(&o.Options, err) {
		return nil, err
	} else if errors.Is(err, errNewer) || strings.Contains(err.Error(), "format major version") {
		is.Final = true
		return is, nil
	}
	can := &rescuer{ctx: is.ctx, o: o, work: is.work, salvaged: true}
	if err := can.salvage(is); err != nil {
		return nil, err
	}
	can.Whole = can.Why == nil && can.Holes == nil && can.Marked && !can.Final
	can.Starts = can.Starts && j != nil && is.Starts
	if !can.Final || can.Why == nil {
		can.Why = is.Why
	}
	return can, nil
}

// hopeless reports whether an error of Open is not about the folder's contents.
func hopeless(o *Options, err error) bool {
	var locked *disk.LockedError
	_, missing := o.FS.Stat(filepath.Join(o.Dir, "journal"))
	return errors.As(err, &locked) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(missing, fs.ErrNotExist) && !errors.Is(err, pebble.ErrDBDoesNotExist)
}

// sound reports whether all frames are there and only the mark is wrong.
func (r *rescuer) sound() bool {
	var lost *LossError
	return !r.damaged && r.Frames == 0 && len(r.Holes) == 0 && !errors.As(r.Why, &lost)
}

// judge finds out how far an open journal is good.
func (r *rescuer) judge(j *Journal) (err error) {
	r.id = j.ID
	if r.stretches, err = stretches(r.ctx, j); err != nil && r.ctx.Err() != nil {
		return err
	}
	r.damaged = err != nil
	restored, why := j.Restore(r.ctx, r.o.Fresh)
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	var broken *Break
	r.Final = errors.As(why, &broken) && broken.Hint != ""
	r.Why, r.Head, r.Starts = why, restored.Head, why == nil
	m, found, e := ReadMark(j.Options.FS, j.Dir)
	r.Mark, r.Marked = m, found && e == nil && m.Journal == j.ID
	r.Foreign = found && e == nil && !r.Marked
	if far := farthest(j); far.Frame > max(r.Head.Frame, r.Mark.Frame) {
		r.Mark, r.Marked = far.Mark, true
	}
	if r.Holes = r.holes(); len(r.Holes) > 0 && restored.From != nil {
		r.Through = restored.From.Head.Sequence
	}
	if r.Why == nil && r.damaged {
		r.Why = err // a start does not read these frames; verify and a new index do
	}
	if len(r.Holes) > 0 && !r.Final {
		r.Indexed = r.o.Indexed != nil && r.o.Indexed(r.ctx, j, r.Holes[len(r.Holes)-1].end)
		if !r.Indexed {
			r.endBeforeHole(j)
		}
	}
	if last := j.latest.last(); last > r.Head.Frame {
		r.Frames = last - r.Head.Frame
	}
	return r.ctx.Err()
}

// endBeforeHole makes the journal end before the first hole. No index knows the orders that were
// placed in the hole, and none can be made: such an order could be placed a second time.
func (r *rescuer) endBeforeHole(j *Journal) {
	h := r.Holes[0]
	r.Starts, r.Head = false, engine.Head{}
	if r.Why == nil || r.damaged {
		r.Why = &Break{Frame: h.frame, Sequence: h.First, Key: frameText(h.frame), Path: j.Path,
			Last: j.latest.last(), Err: r.Why, What: "it cannot be read, and there is no index that knows " +
				"what was in it, nor can one be made without it"}
	}
	if first := r.stretches; len(first) > 0 && first[0].from == 1 {
		r.Head = first[0].head
	}
}

// stretch is frames without a gap between them.
type stretch struct {
	from   uint64          // number of the first
	before engine.Sequence // the one before its first Sequence
	head   engine.Head     // of the last
}

// stretches reads all frames and returns the stretches without a gap. The error is the first frame
// that cannot be read; there may be good frames behind it.
func stretches(ctx context.Context, j *Journal) (all []stretch, damaged error) {
	broken := func(no uint64, what string, err error) {
		if damaged == nil {
			damaged = &Break{Frame: no, Key: frameText(no), Path: j.Path, Last: j.latest.last(), What: what,
				Err: err}
		}
	}
	it, err := j.db.NewIter(shown(j, 0))
	if err != nil {
		broken(1, "cannot be read", err)
		return nil, damaged
	}
	var f engine.Frame
	defer func() {
		if err := it.Close(); err != nil {
			broken(f.No+1, "cannot be read", err)
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return all, err
		}
		no, known := frameNo(it.Key())
		b, err := it.ValueAndErr()
		if err == nil {
			err = engine.DecodeFrame(b, &f)
		}
		if err == nil && (!known || f.No != no) {
			err = fmt.Errorf("it says that it is frame %d", f.No)
		}
		if err != nil {
			broken(no, "damaged", err)
			continue
		}
		var s *stretch
		if n := len(all); n > 0 {
			s = &all[n-1]
		}
		if s == nil || no != s.head.Frame+1 || f.Prev != s.head.Hash || f.First != s.head.Sequence+1 {
			all = append(all, stretch{from: no, before: f.First - 1})
			s = &all[len(all)-1]
		}
		s.head = f.Head()
	}
	return all, damaged
}

// holes are the gaps between the stretches up to Head.
func (r *rescuer) holes() (all []Hole) {
	var end engine.Head
	for _, s := range r.stretches {
		if s.from > r.Head.Frame {
			break
		}
		if s.from != end.Frame+1 || s.before != end.Sequence || end.Frame > 0 {
			all = append(all, Hole{First: end.Sequence + 1, Last: max(s.before, end.Sequence+1),
				frame: end.Frame + 1, end: max(s.from-1, end.Frame+1)})
		}
		end = s.head
	}
	return all
}

// salvage makes a database of all frames in the files of the journal, and judges it. is tells what
// was found out about the journal as it is. The database replaces the journal even if it has no
// frame more: so the damaged files can be put aside.
func (r *rescuer) salvage(is *rescuer) (err error) {
	from := filepath.Join(r.o.Dir, "journal")
	if err := r.workplace(); err != nil {
		return err
	}
	if err := r.room(from); err != nil {
		return err
	}
	err = r.write(func(db *pebble.DB) error {
		c, err := collect(r, from, db)
		if err != nil {
			return err
		}
		r.Unread, r.Unflipped = c.unread, c.unflipped
		if c.newer > 0 {
			is.Why = disk.Advise(fmt.Errorf("%w; %d frames: %w", is.Why, c.newer, errNewer), hintNewer)
			r.Final = true
		}
		m, err := r.identity(is, c)
		if err == nil {
			err = m.save(db, pebble.NoSync)
		}
		return err
	})
	if err != nil || r.Final {
		return err
	}
	again := r.o.Options
	again.folder, again.lock = filepath.Join(r.o.Dir, salvageFolder), *r.work
	j, err := Open(again)
	if err != nil {
		return fmt.Errorf("open what was salvaged: %w", err)
	}
	j.Path = from // errors shall name the journal
	return errors.Join(r.judge(j), j.Close())
}

// workplace makes an empty folder to work in.
func (r *rescuer) workplace() error {
	on, path := r.o.FS, filepath.Join(r.o.Dir, salvageFolder)
	if err := disk.MakeFolder(on, path); err != nil {
		return fmt.Errorf("the journal is damaged, and a rescue has no place to work in: %w", err)
	}
	var err error
	if *r.work, err = disk.LockFolder(on, path, false); err != nil {
		return err
	}
	names, err := on.List(path)
	for _, name := range names {
		if name != "LOCK" { // left by an interrupted rescue
			err = errors.Join(err, on.RemoveAll(filepath.Join(path, name)))
		}
	}
	return err
}

// room returns an error if the disk has too little room for a second journal. Every frame is
// written once, and a table of them a second time if an end is cut off.
func (r *rescuer) room(journal string) error {
	names, err := r.o.FS.List(journal)
	size := int64(0)
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") && !strings.HasSuffix(name, ".log") {
			continue
		}
		about, e := r.o.FS.Stat(filepath.Join(journal, name))
		if e == nil {
			size += about.Size()
		}
	}
	if err != nil {
		return nil // reading the files will fail, too
	}
	size += size/64 + min(size, int64(r.o.MemTable))
	usage, err := r.o.FS.GetDiskUsage(r.o.Dir)
	if err != nil || usage.AvailBytes > uint64(size) {
		return nil // there is room, or it is not known
	}
	return disk.Advise(fmt.Errorf("%w; what is good of it has to be written anew: %d bytes are "+
		"needed for that, %d are free", errRoom, size, usage.AvailBytes), hintRoom)
}

var errRoom = errors.New("the journal is damaged")

const hintRoom = "make room, or copy the folder to a larger disk and run clobd recover there"

// write opens the database of salvaged frames, calls do with it, and makes it durable. It has no
// log, for an interrupted rescue makes it anew, and no compactions. When the disk refuses a write,
// all is given up: Pebble itself would wait for ever.
func (r *rescuer) write(do func(db *pebble.DB) error) (err error) {
	o := r.o.Options
	o.ReadOnly, o.folder, o.lock = false, filepath.Join(o.Dir, salvageFolder), *r.work
	var g *disk.Guard
	g = disk.NewGuard(disk.GuardOptions{Name: "journal", Path: o.folder, Log: o.Log, Lock: o.lock,
		Fatal: func(err error) { g.Stumble(err) }})
	with := o.pebbleOptions()
	with.DisableWAL, with.DisableAutomaticCompactions = true, true
	with.MemTableStopWritesThreshold = 1000 // drain waits before, and can end
	db, err := g.Open(with)
	if err != nil {
		return err
	}
	r.drain = func() error { return g.Drain(r.ctx, db, 4*uint64(o.MemTable)) }
	r.flush = func() error { return g.Flush(r.ctx, db) }
	if err = do(db); err == nil {
		err = r.flush()
	}
	g.Retire()
	if err != nil {
		g.Hurry()
		g.Abandon()
	}
	closed := g.Close(db)
	if err == nil {
		return closed
	}
	err = fmt.Errorf("write what was salvaged into %s: %w", o.folder, err)
	if errors.Is(err, syscall.ENOSPC) {
		err = disk.Advise(err, "nothing was changed: "+hintRoom)
	}
	return err
}

// identity is the journal's description of itself. If it cannot be read, the ID comes from a mark
// or checkpoint that names a frame of the journal, else from the log, else from any of these.
func (r *rescuer) identity(is *rescuer, c *collector) (meta, error) {
	m := meta{format: c.meta[metaFormat], id: is.id, created: c.meta[metaCreated]}
	if m.format > Version {
		return m, m.judge(filepath.Join(r.o.Dir, "journal"))
	}
	m.format = Version
	if b, err := c.get(1); err == nil && b != nil && m.created == 0 &&
		engine.DecodeFrame(b, &c.frame) == nil {
		m.created = uint64(c.frame.Time)
	}
	if m.id != 0 {
		return m, nil
	}
	claims := r.claims()
	for _, claim := range claims {
		b, err := c.get(claim.Frame)
		if err == nil && b != nil && engine.DecodeFrame(b, &c.frame) == nil &&
			c.frame.Hash == claim.Hash {
			m.id = claim.Journal
			return m, nil
		}
	}
	if m.id = c.meta[metaJournal]; m.id != 0 {
		return m, nil
	}
	if len(claims) == 0 {
		return m, disk.Advise(fmt.Errorf("%w; nor is there anything else that says which journal it "+
			"was", is.Why), "restore the folder from a copy")
	}
	m.id = claims[0].Journal
	return m, nil
}

// claims are the mark, and a mark made from each checkpoint.
func (r *rescuer) claims() (all []Mark) {
	on, folder := r.o.FS, filepath.Join(r.o.Dir, checkpointFolder)
	if m, found, err := ReadMark(on, r.o.Dir); found && err == nil {
		all = append(all, m)
	}
	names, err := on.List(folder)
	for _, name := range names {
		if c, e := describe(on, filepath.Join(folder, name)); err == nil && e == nil {
			all = append(all, Mark{c.Journal, c.Head.Frame, c.Head.Sequence, c.Head.Hash,
				Promise{}})
		}
	}
	return all
}

// trim deletes the frames behind the end, and notes the last missing frame before it.
func (r *rescuer) trim() error {
	from, to := frameKey(r.Head.Frame+1), []byte{spaceFrame + 1}
	return r.write(func(db *pebble.DB) (err error) {
		if n := len(r.Holes); n > 0 && r.Indexed {
			err = saveHole(db, r.Holes[n-1].end)
		}
		if err != nil || r.Frames == 0 {
			return err
		}
		if err := db.DeleteRange(from[:], to, pebble.NoSync); err != nil {
			return err
		}
		if err := r.flush(); err != nil { // Compact would wait for a full disk
			return err
		}
		// Also from the files, where a later rescue would find them.
		return db.Compact(r.ctx, from[:], to, false)
	})
}
