package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"clobd/journal/disk"
)

// Witness says that the journal had a frame which was acknowledged: whoever writes something that
// follows from acknowledged frames is one. The high-water mark is the most exact, but one file.
type Witness struct {
	Mark
	By   string // who says so, as operators know it
	Path string // its file or folder in the data folder
}

// NoteEnd writes into the folder dir, durably, how far j is acknowledged; ReadMark reads the note.
// Where nothing is promised it writes nothing. Recover or Restore must have succeeded.
func NoteEnd(j *Journal, dir string) error {
	if j.mark == nil {
		return nil
	}
	j.mark.mu.Lock()
	m := j.mark.latest
	j.mark.mu.Unlock()
	return WriteMark(j.Options.FS, dir, m)
}

// farthest is the one of j's checkpoints and of Options.Witnesses that saw the last frame. Its
// Frame is 0 if there is none, and in a journal that promises nothing.
func farthest(j *Journal) (far Witness) {
	if j.Options.Async {
		return far
	}
	good, _ := j.Checkpoints()
	all := make([]Witness, 0, len(good)+2)
	for i := range good {
		c := &good[i]
		all = append(all, Witness{Mark{c.Journal, c.Head.Frame, c.Head.Sequence, c.Head.Hash,
			Promise{}},
			"the checkpoint " + c.Path, c.Path})
	}
	if j.Options.Witnesses != nil {
		all = append(all, j.Options.Witnesses()...)
	}
	for _, w := range all {
		if w.Journal == j.ID && w.Frame > far.Frame {
			far = w
		}
	}
	return far
}

// dismiss moves what speaks of frames behind the end to the kept folder.
func (r *rescuer) dismiss() error {
	if r.o.Witnesses == nil {
		return nil
	}
	on := r.o.FS
	ahead := slices.DeleteFunc(r.o.Witnesses(), func(w Witness) bool {
		return w.Journal != r.id || w.Frame <= r.Head.Frame
	})
	for _, w := range ahead {
		name, err := filepath.Rel(r.o.Dir, w.Path)
		if err != nil {
			return fmt.Errorf("put %s aside: %w", w.By, err)
		}
		to := filepath.Join(r.Kept, name)
		err = disk.MakeFolder(on, filepath.Dir(to))
		if err == nil {
			err = on.Rename(w.Path, to)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("put %s aside: %w", w.By, err)
		}
	}
	return nil
}
