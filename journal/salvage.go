package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Loss says why a journal cannot be started with, and what going on without it would cost.
type Loss struct {
	// Why a start is refused; nil: it is not.
	Why error
	// Head is the end of what is good: where the journal would go on.
	Head engine.Head
	// Mark is the high-water mark, if Marked.
	Mark   Mark
	Marked bool
	// Frames is how many are in the database behind Head, as far as can be told.
	Frames uint64
	// Final says that accepting the loss is no way out: another version of the program is, or a copy.
	Final bool
	// Kept is the folder with all that was cut off; "" if nothing was.
	Kept string

	torn bool // the database opened only after its log was cut
}

// Lost are the first and the last acknowledged Sequence that are known to be lost, and how many
// that are: 0 if none is, or if nobody knows.
func (l *Loss) Lost() (first, last engine.Sequence, count uint64) {
	if !l.Marked || l.Mark.Sequence <= l.Head.Sequence {
		return 0, 0, 0
	}
	return l.Head.Sequence + 1, l.Mark.Sequence, uint64(l.Mark.Sequence - l.Head.Sequence)
}

// The folders that a rescue works in, below the data folder.
const (
	salvageFolder = "journal.salvage" // a copy whose log is cut where it is damaged
	freshFolder   = "journal.new"     // what will be the journal
	lostPrefix    = "lost-"
)

// Diagnose finds out whether the journal in o.Dir can be started with, and if not, how far it is
// good. It changes nothing. The error is that of ctx, or says that the folder cannot be looked at:
// a *LockedError, for one.
func Diagnose(ctx context.Context, o Options, fresh func() *State) (*Loss, error) {
	return rescue(ctx, o, fresh, false)
}

// AcceptLoss lets the journal in o.Dir end where it is good, if a start is refused, so that it can
// be started again. What is cut off, damaged files included, is kept in a folder beside, which Loss
// names: nothing is deleted but the index, which is made anew. It needs the room of a second
// journal, unless nothing is behind the end. The error says what could not be done: then it may be
// called again.
func AcceptLoss(ctx context.Context, o Options, fresh func() *State) (*Loss, error) {
	return rescue(ctx, o, fresh, true)
}

// rescue is both of them.
func rescue(ctx context.Context, o Options, fresh func() *State, accept bool) (
	l *Loss, err error) {
	o.ReadOnly = true
	if err := o.validate(); err != nil {
		return nil, err
	}
	l = &Loss{}
	j, err := l.open(&o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if l.torn {
			err = errors.Join(err, o.FS.RemoveAll(filepath.Join(o.Dir, salvageFolder)))
		}
	}()
	if err := l.judge(ctx, j, fresh); err != nil || l.Why == nil || l.Final || !accept {
		return l, errors.Join(err, j.Close())
	}
	cut := l.torn || l.Frames > 0
	var broken *Break
	cut = cut || errors.As(l.Why, &broken)
	if cut {
		err = l.copyGood(ctx, j)
	}
	if err = errors.Join(err, j.Close()); err != nil {
		return l, fmt.Errorf("accept loss: %w", err)
	}
	if err := l.swap(&o, cut, j.ID); err != nil {
		return l, fmt.Errorf("accept loss: %w", err)
	}
	return l, nil
}

// open opens the journal, or what is left of it if the end of its log is damaged.
func (l *Loss) open(o *Options) (*Journal, error) {
	j, err := Open(*o)
	var locked *LockedError
	if err == nil || errors.As(err, &locked) || errors.Is(err, fs.ErrNotExist) ||
		!pebble.IsCorruptionError(err) {
		return j, err
	}
	l.Why = err
	path := filepath.Join(o.Dir, salvageFolder)
	if err := salvage(o.FS, filepath.Join(o.Dir, "journal"), path); err != nil {
		return nil, errors.Join(l.Why, fmt.Errorf("salvage it: %w", err))
	}
	l.torn = true
	again := *o
	again.folder = path
	j, err = Open(again)
	if err != nil {
		return nil, errors.Join(&advisedError{fmt.Errorf("%w; without the damaged end of its log: %w",
			l.Why, err), "restore the folder from a copy"}, o.FS.RemoveAll(path))
	}
	return j, nil
}

// judge finds out how far an open journal is good.
func (l *Loss) judge(ctx context.Context, j *Journal, fresh func() *State) error {
	r, err := j.Restore(ctx, fresh)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var broken *Break
	if errors.As(err, &broken) && broken.Hint != "" {
		l.Final = true
	}
	if l.Head = r.Head; err != nil {
		l.Why = err
	}
	if last := j.hub.last(); last > l.Head.Frame {
		l.Frames = last - l.Head.Frame
	}
	m, found, err := ReadMark(j.options.FS, j.Dir)
	l.Mark, l.Marked = m, found && err == nil && m.Journal == j.ID
	return nil
}

// salvage makes a copy of a database whose log ends before its first damage.
func salvage(on vfs.FS, from, to string) error {
	if err := on.RemoveAll(to); err != nil {
		return err
	}
	if err := makeFolder(on, to); err != nil {
		return err
	}
	names, err := on.List(from)
	if err != nil {
		return err
	}
	slices.Sort(names)
	damaged := false
	for _, name := range names {
		source, target := filepath.Join(from, name), filepath.Join(to, name)
		number, isLog := strings.CutSuffix(name, ".log")
		switch {
		case name == "LOCK" || isLog && damaged:
			continue
		case strings.HasSuffix(name, ".sst"):
			err = linkOrCopy(on, source, target)
		case isLog:
			var no uint64
			if no, err = strconv.ParseUint(number, 10, 64); err == nil {
				damaged, err = copyLog(on, source, target, no)
			}
		default:
			err = copyFile(on, source, target)
		}
		if err != nil {
			return err
		}
	}
	return syncFolder(on, to)
}

// copyLog copies the records of a log up to the first one that cannot be read, and says whether
// there is one.
func copyLog(on vfs.FS, from, to string, no uint64) (damaged bool, err error) {
	in, err := on.Open(from, vfs.SequentialReadsOption)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	r, end := readLog(record.NewReader, in, no), int64(0)
	for {
		one, err := r.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, one)
		}
		if err != nil {
			damaged = err != io.EOF
			break
		}
		end = r.Offset()
	}
	whole, err := on.Open(from, vfs.SequentialReadsOption)
	if err != nil {
		return damaged, err
	}
	out, err := on.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return damaged, errors.Join(err, whole.Close())
	}
	_, err = io.Copy(out, io.LimitReader(whole, end))
	if err == nil {
		err = out.Sync()
	}
	return damaged, errors.Join(err, out.Close(), whole.Close())
}

// readLog makes a reader of Pebble's log number no, whose type has no name outside of Pebble.
func readLog[T ~uint64](open func(io.Reader, T) *record.Reader, in io.Reader, no uint64,
) *record.Reader {
	return open(in, T(no))
}

// copyBatch is how many bytes of frames are written at once.
const copyBatch = 4 << 20

// copyGood makes a database of the good frames, beside the one that is.
func (l *Loss) copyGood(ctx context.Context, j *Journal) error {
	o := j.options
	o.ReadOnly, o.folder = false, filepath.Join(o.Dir, freshFolder)
	if err := o.FS.RemoveAll(o.folder); err != nil {
		return err
	}
	ward := newWard("journal", o.folder, &o)
	ward.state = func() string { return "the journal is as it was" }
	to := &Journal{Dir: o.Dir, Path: o.folder, options: o, ward: ward}
	db, err := openPebble(to.Path, ward, to.pebbleOptions())
	if err != nil {
		return err
	}
	m := meta{Version, j.ID, uint64(j.Created.UnixMilli())}
	if err = m.save(db); err == nil {
		err = copyFrames(ctx, db, j, l.Head.Frame)
	}
	if err == nil {
		err = db.Flush()
	}
	ward.retire()
	return errors.Join(err, ward.closePebble(db))
}

// copyFrames copies the frames of j up to number last, durably.
func copyFrames(ctx context.Context, db *pebble.DB, j *Journal, last uint64) (err error) {
	it, err := j.db.NewIter(frameBounds(1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	b := db.NewBatch()
	for ok := it.First(); ok; ok = it.Next() {
		no, _ := frameNo(it.Key())
		if no > last {
			break
		}
		value, err := it.ValueAndErr()
		if err == nil {
			err = b.Set(it.Key(), value, nil)
		}
		if err == nil && b.Len() >= copyBatch {
			err = errors.Join(b.Commit(pebble.NoSync), b.Close(), ctx.Err())
			b = db.NewBatch()
		}
		if err != nil {
			return errors.Join(err, b.Close())
		}
	}
	return errors.Join(b.Commit(pebble.Sync), b.Close())
}

// swap puts the good journal in its place, keeps what was there, and writes the mark anew. The mark
// comes last: until then every start is refused, and this can be done again.
func (l *Loss) swap(o *Options, cut bool, id uint64) error {
	on := o.FS
	in := func(name string) string { return filepath.Join(o.Dir, name) }
	kept := in(lostPrefix + time.Now().UTC().Format("20060102T150405.000Z"))
	if err := makeFolder(on, kept); err != nil {
		return err
	}
	l.Kept = kept
	if err := l.describe(on, id); err != nil {
		return err
	}
	if cut {
		if err := on.Rename(in("journal"), filepath.Join(kept, "journal")); err != nil {
			return err
		}
		if err := on.Rename(in(freshFolder), in("journal")); err != nil {
			return fmt.Errorf("%w: rename %s to %s by hand, then try again", err, in(freshFolder),
				in("journal"))
		}
	}
	if err := l.moveCheckpoints(on, in(checkpointFolder)); err != nil {
		return err
	}
	if err := on.RemoveAll(in("index")); err != nil {
		return fmt.Errorf("remove the index: %w", err)
	}
	if err := errors.Join(syncFolder(on, kept), syncFolder(on, o.Dir)); err != nil {
		return err
	}
	h := &l.Head
	return WriteMark(on, o.Dir, Mark{id, h.Frame, h.Sequence, h.Hash})
}

// describe writes down what is lost.
func (l *Loss) describe(on vfs.FS, id uint64) error {
	first, last, count := l.Lost()
	b, err := json.MarshalIndent(map[string]any{
		"journal": fmt.Sprintf("%016x", id), "why": l.Why.Error(),
		"keptFrame": l.Head.Frame, "keptSequence": l.Head.Sequence,
		"lostFirst": first, "lostLast": last, "lostCount": count, "framesCut": l.Frames,
		"markFrame": l.Mark.Frame, "markSequence": l.Mark.Sequence, "marked": l.Marked,
	}, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(on, filepath.Join(l.Kept, "lost.json"), append(b, '\n'))
}

// moveCheckpoints keeps those of what is behind the end, out of the way.
func (l *Loss) moveCheckpoints(on vfs.FS, folder string) error {
	names, err := on.List(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(folder, name)
		if !strings.HasSuffix(name, checkpointSuffix) {
			continue
		}
		if c, err := describe(on, path); err == nil && c.Head.Frame <= l.Head.Frame {
			continue
		}
		to := filepath.Join(l.Kept, checkpointFolder)
		if err := makeFolder(on, to); err != nil {
			return err
		}
		if err := on.Rename(path, filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}
