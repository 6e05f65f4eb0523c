package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// swap puts the good journal in place, keeps the old one, and writes a new mark. The mark comes
// last: until then every start is refused, and swap can be repeated.
func (r *rescuer) swap() (err error) {
	on := r.o.FS
	in := func(name string) string { return filepath.Join(r.o.Dir, name) }
	kept := in(lostPrefix + time.Now().UTC().Format("20060102T150405.000Z"))
	if err := disk.MakeFolder(on, kept); err != nil {
		return err
	}
	r.Kept = kept
	if err := r.describe(); err != nil {
		return err
	}
	if r.salvaged {
		if err := r.exchange(); err != nil {
			return err
		}
	}
	if err := r.moveCheckpoints(in(checkpointFolder)); err != nil {
		return err
	}
	if !r.Whole && !r.Indexed { // else the index still fits, or is made anew by itself
		err := on.Rename(in("index"), filepath.Join(kept, "index"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("put the index aside: %w", err)
		}
	}
	if err := r.dismiss(); err != nil {
		return err
	}
	if err := r.keepMark(in(markName)); err != nil {
		return fmt.Errorf("keep the mark: %w", err)
	}
	if err := errors.Join(disk.SyncFolder(on, kept), disk.SyncFolder(on, r.o.Dir)); err != nil {
		return err
	}
	h := &r.Head
	return WriteMark(on, r.o.Dir, Mark{r.id, h.Frame, h.Sequence, h.Hash, Promise{}})
}

// keepMark keeps the old mark. If the mark is a file it also stays in its place: without a mark a
// start would not be refused.
func (r *rescuer) keepMark(path string) error {
	on, to := r.o.FS, filepath.Join(r.Kept, markName)
	about, err := on.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && about.IsDir():
		return on.Rename(path, to)
	}
	if linkOrCopy(on, path, to) == nil {
		return nil
	}
	return on.Rename(path, to) // it cannot even be read
}

// asideName is a file in the folder that becomes the journal. It holds the name of the folder into
// which the old journal goes.
const asideName = "aside"

// exchange puts the journal aside and the salvaged one in its place. If it is interrupted between
// the two renames there is no journal: undoSwap undoes the first one.
func (r *rescuer) exchange() (err error) {
	on := r.o.FS
	in := func(name string) string { return filepath.Join(r.o.Dir, name) }
	old, fresh, aside := in("journal"), in(freshFolder), filepath.Join(r.Kept, "journal")
	err = writeWhole(on, filepath.Join(in(salvageFolder), asideName), []byte(filepath.Base(r.Kept)))
	if err == nil {
		err = on.RemoveAll(fresh)
	}
	if err == nil {
		err = errors.Join(on.Rename(in(salvageFolder), fresh), disk.SyncFolder(on, r.o.Dir))
	}
	if err == nil {
		if err = on.Rename(old, aside); errors.Is(err, fs.ErrNotExist) {
			err = nil // nothing to put aside
		}
	}
	if err == nil {
		err = on.Rename(fresh, old)
	}
	if err != nil {
		if _, missing := on.Stat(old); missing == nil { // else undoSwap needs it
			err = errors.Join(err, on.RemoveAll(fresh))
		}
		return fmt.Errorf("put the salvaged journal in its place: %w", err)
	}
	return errors.Join(disk.SyncFolder(on, r.Kept), on.Remove(filepath.Join(old, asideName)))
}

// undoSwap undoes an interrupted exchange: it puts the journal back in its place and returns where
// it was, "" if there was nothing to do.
func undoSwap(o *Options) (from string, err error) {
	on := o.FS
	in := func(name string) string { return filepath.Join(o.Dir, name) }
	if _, err := on.Stat(in("journal")); !errors.Is(err, fs.ErrNotExist) {
		return "", nil // the journal is there, or opening it will fail
	}
	name, err := readAside(on, filepath.Join(in(freshFolder), asideName))
	if err != nil || name == "" {
		return "", err
	}
	aside := filepath.Join(in(name), "journal")
	if _, err := on.Stat(aside); err != nil {
		return "", nil // there was no journal
	}
	lock, err := disk.LockFolder(on, in(freshFolder), false)
	if err != nil {
		return "", err
	}
	err = errors.Join(on.Rename(aside, in("journal")), disk.SyncFolder(on, in(name)),
		disk.SyncFolder(on, o.Dir), lock.Close())
	if err != nil {
		return "", fmt.Errorf("undo an interrupted rescue: %w", err)
	}
	return aside, nil
}

// readAside is the name of the folder into which an interrupted rescue put the journal; "" if there
// was none.
func readAside(on vfs.FS, path string) (string, error) {
	f, err := on.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var b []byte
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(f, 256))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return "", fmt.Errorf("undo an interrupted rescue: %w", err)
	}
	name := string(b)
	if !strings.HasPrefix(name, lostPrefix) || filepath.Base(name) != name {
		return "", fmt.Errorf("undo an interrupted rescue: %s names %q", path, name)
	}
	return name, nil
}

// describe writes lost.json, which says what is lost.
func (r *rescuer) describe() error {
	first, last, count := r.Lost()
	holes := [][2]uint64{}
	for _, h := range r.Holes {
		holes = append(holes, [2]uint64{uint64(h.First), uint64(h.Last)})
	}
	b, err := json.MarshalIndent(map[string]any{
		"journal": fmt.Sprintf("%016x", r.id), "why": r.Why.Error(),
		"keptFrame": r.Head.Frame, "keptSequence": r.Head.Sequence,
		"lostFirst": first, "lostLast": last, "lostCount": count, "framesCut": r.Frames, "unflipped": r.Unflipped,
		"unreadable": holes, "historyInIndex": r.Indexed, "nothingLost": r.Whole,
		"markFrame": r.Mark.Frame, "markSequence": r.Mark.Sequence, "marked": r.Marked,
	}, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(r.o.FS, filepath.Join(r.Kept, "lost.json"), append(b, '\n'))
}

// moveCheckpoints moves the checkpoints of frames behind the end to the kept folder.
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
		if err := disk.MakeFolder(on, to); err != nil {
			return err
		}
		if err := on.Rename(path, filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}
