package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// swap puts the good journal in its place, keeps what was there, and writes the mark anew. The mark
// comes last: until then every start is refused, and this can be done again.
func (r *rescuer) swap() (err error) {
	on := r.o.FS
	in := func(name string) string { return filepath.Join(r.o.Dir, name) }
	kept := in(lostPrefix + time.Now().UTC().Format("20060102T150405.000Z"))
	if err := makeFolder(on, kept); err != nil {
		return err
	}
	r.Kept = kept
	if err := r.describe(); err != nil {
		return err
	}
	if r.salvaged {
		unlock, e := r.exchange()
		if e != nil {
			return e
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	if err := r.moveCheckpoints(in(checkpointFolder)); err != nil {
		return err
	}
	if !r.Whole && !r.Indexed { // else it fits as it did, or is made anew by itself
		if err := on.RemoveAll(in("index")); err != nil {
			return fmt.Errorf("remove the index: %w", err)
		}
	}
	if about, err := on.Stat(in(markName)); err == nil && about.IsDir() {
		if err := on.Rename(in(markName), filepath.Join(kept, markName)); err != nil {
			return err
		}
	}
	if err := errors.Join(syncFolder(on, kept), syncFolder(on, r.o.Dir)); err != nil {
		return err
	}
	h := &r.Head
	return WriteMark(on, r.o.Dir, Mark{r.id, h.Frame, h.Sequence, h.Hash})
}

// exchange puts the journal aside and the salvaged one in its place. Between the two steps there is
// none: undoSwap takes the first one back. The locks tell it, and a start, that somebody is at
// work.
func (r *rescuer) exchange() (unlock func() error, err error) {
	on := r.o.FS
	in := func(name string) string { return filepath.Join(r.o.Dir, name) }
	err = errors.Join(on.RemoveAll(in(freshFolder)), on.Rename(in(salvageFolder), in(freshFolder)),
		syncFolder(on, r.o.Dir))
	if err != nil {
		return nil, err
	}
	var locks []*pebble.Lock
	unlock = func() (err error) {
		for _, l := range locks {
			err = errors.Join(err, l.Close())
		}
		return err
	}
	for _, name := range []string{freshFolder, "journal"} {
		if _, err := on.Stat(in(name)); errors.Is(err, fs.ErrNotExist) {
			continue // there is nothing to be put aside
		}
		lock, err := pebble.LockDirectory(in(name), on)
		if err != nil {
			return nil, errors.Join(&LockedError{Path: in(name), Err: err,
				Holder: lockHolder(on, in(name), err)}, unlock())
		}
		locks = append(locks, lock)
	}
	err = on.Rename(in("journal"), filepath.Join(r.Kept, "journal"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = on.Rename(in(freshFolder), in("journal"))
	}
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

// undoSwap takes back what an interrupted exchange left half done: it puts the journal in its place
// again, and says where it was. "" means that there was nothing to do.
func undoSwap(o *Options) (from string, err error) {
	on := o.FS
	in := func(name string) string { return filepath.Join(o.Dir, name) }
	if _, err := on.Stat(in("journal")); !errors.Is(err, fs.ErrNotExist) {
		return "", nil // there, or what is wrong will be met again
	}
	if _, err := on.Stat(in(freshFolder)); err != nil {
		return "", nil
	}
	names, err := on.List(o.Dir)
	if err != nil {
		return "", fmt.Errorf("list %s: %w", o.Dir, err)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		aside := filepath.Join(in(name), "journal")
		if !strings.HasPrefix(name, lostPrefix) {
			continue
		} else if _, err := on.Stat(aside); err != nil {
			continue
		}
		lock, err := pebble.LockDirectory(in(freshFolder), on)
		if err != nil {
			return "", &LockedError{Path: in(freshFolder), Err: err,
				Holder: lockHolder(on, in(freshFolder), err)}
		}
		err = errors.Join(on.Rename(aside, in("journal")), syncFolder(on, in(name)),
			syncFolder(on, o.Dir), lock.Close())
		if err != nil {
			return "", fmt.Errorf("undo an interrupted rescue: %w", err)
		}
		return aside, nil
	}
	return "", nil
}

// describe writes down what is lost.
func (r *rescuer) describe() error {
	first, last, count := r.Lost()
	holes := [][2]uint64{}
	for _, h := range r.Holes {
		holes = append(holes, [2]uint64{uint64(h.First), uint64(h.Last)})
	}
	b, err := json.MarshalIndent(map[string]any{
		"journal": fmt.Sprintf("%016x", r.id), "why": r.Why.Error(),
		"keptFrame": r.Head.Frame, "keptSequence": r.Head.Sequence,
		"lostFirst": first, "lostLast": last, "lostCount": count, "framesCut": r.Frames,
		"unreadable": holes, "historyInIndex": r.Indexed, "nothingLost": r.Whole,
		"markFrame": r.Mark.Frame, "markSequence": r.Mark.Sequence, "marked": r.Marked,
	}, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(r.o.FS, filepath.Join(r.Kept, "lost.json"), append(b, '\n'))
}

// moveCheckpoints keeps those of what is behind the end, out of the way.
func (r *rescuer) moveCheckpoints(folder string) error {
	on := r.o.FS
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
		if c, err := describe(on, path); err == nil && c.Head.Frame <= r.Head.Frame {
			continue
		}
		to := filepath.Join(r.Kept, checkpointFolder)
		if err := makeFolder(on, to); err != nil {
			return err
		}
		if err := on.Rename(path, filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}
