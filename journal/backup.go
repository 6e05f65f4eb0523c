package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Copied describes a backup.
type Copied struct {
	Journal    uint64      // its ID
	Head       engine.Head // of its last frame
	Checkpoint *Checkpoint // that lies in it; nil if there was none
	Hole       uint64      // Journal.Hole; if not 0 the index is in the backup, too
	Bytes      int64       // of all its files
}

// Backup makes a data folder in dir, which must not exist: all frames that were appended so far,
// the newest checkpoint, and a mark of the end. It waits for one sync of the log; nothing waits for
// it. Files that never change are linked if dir is on the same filesystem. The index is left out,
// for it can be made from the frames. Only after an accepted loss, when frames are missing, and for
// a new member, which begins at once, index must copy it into a folder; nil means that it is not
// open. A member's copy ends with what is committed. After an error dir must be deleted.
func (j *Journal) Backup(dir string, index func(dir string) error) (*Copied, error) {
	if !j.gate.Enter() {
		return nil, ErrClosed
	}
	defer j.gate.Leave()
	on := j.Options.FS
	if _, err := on.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("back up to %s: it exists already", dir)
	}
	if err := disk.MakeFolder(on, dir); err != nil {
		return nil, fmt.Errorf("back up: %w", err)
	}
	// The checkpoint first: then its frame is in the journal that is copied after it.
	c, err := j.copyCheckpoint(dir)
	if err != nil {
		return nil, fmt.Errorf("back up the checkpoint: %w", err)
	}
	if j.Hole > 0 || j.agreed != nil { // first: the journal then has all frames that it knows
		err := errors.New("it is not open")
		if index != nil {
			err = index(filepath.Join(dir, "index"))
		}
		if err != nil {
			return nil, fmt.Errorf("back up the index, which this copy needs: %w", err)
		}
	}
	durable := j.latest.last()
	if j.agreed != nil { // sealCopy, which writes the mark again, knows by it what is committed
		_, h := j.agreed.Committed()
		durable, err = h.Frame, WriteMark(on, dir, Mark{j.ID, h.Frame, h.Sequence, h.Hash, Promise{}})
	}
	if err == nil {
		err = j.db.Checkpoint(filepath.Join(dir, "journal"), pebble.WithFlushedWAL())
	}
	if err != nil {
		return nil, fmt.Errorf("back up the journal: %w", err)
	}
	out, err := sealCopy(on, dir)
	if err != nil {
		return nil, fmt.Errorf("back up: look at the copy: %w", err)
	}
	if out.Head.Frame < durable {
		return nil, fmt.Errorf("back up: the copy ends with frame %d, and %d was acknowledged: the live "+
			"log of %s is damaged on the disk", out.Head.Frame, durable, j.Path)
	}
	out.Checkpoint, out.Hole = c, j.Hole
	return out, nil
}

// copyCheckpoint copies the newest checkpoint that is not known to be damaged; nil if there is
// none. The Follower may remove one meanwhile.
func (j *Journal) copyCheckpoint(dir string) (*Checkpoint, error) {
	on := j.Options.FS
	good, _ := j.Checkpoints()
	for i := range good {
		c := &good[i]
		_, damaged := j.damaged.Load(c.Path)
		if c.Journal != j.ID || damaged {
			continue
		}
		folder := filepath.Join(dir, checkpointFolder)
		if err := disk.MakeFolder(on, folder); err != nil {
			return nil, err
		}
		to := filepath.Join(folder, on.PathBase(c.Path))
		if err := linkOrCopy(on, c.Path, to); !errors.Is(err, fs.ErrNotExist) {
			return c, errors.Join(err, disk.SyncFolder(on, folder))
		}
	}
	return nil, nil
}

// linkOrCopy gives a file that never changes a second name, or copies it durably.
func linkOrCopy(on vfs.FS, from, to string) error {
	err := on.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return copyFile(on, from, to)
}

// copyFile copies a file durably. The caller syncs the folder.
func copyFile(on vfs.FS, from, to string) error {
	in, err := on.Open(from, vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	out, err := on.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return errors.Join(err, in.Close())
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close(), in.Close())
}

// sealCopy finds the end of a copied journal and writes its mark.
func sealCopy(on vfs.FS, dir string) (*Copied, error) {
	k, err := Open(Options{Dir: dir, FS: on, ReadOnly: true, MemTable: 1 << 20,
		Log: slog.New(slog.DiscardHandler), Words: io.Discard, Exit: func(int) {}})
	if err != nil {
		return nil, err
	}
	out := &Copied{Journal: k.ID}
	if last := k.latest.last(); last > 0 {
		var f engine.Frame
		b, err := k.frameBytes(last)
		if err == nil {
			err = engine.DecodeFrame(b, &f)
		}
		if err != nil {
			return nil, errors.Join(err, k.Close())
		}
		out.Head = f.Head()
	}
	h := &out.Head
	if err = k.Close(); err == nil {
		err = WriteMark(on, dir, Mark{k.ID, h.Frame, h.Sequence, h.Hash, Promise{}})
	}
	if err == nil {
		out.Bytes, err = sizeOf(on, dir)
	}
	return out, err
}

// sizeOf is the size of all files below a folder.
func sizeOf(on vfs.FS, dir string) (total int64, err error) {
	names, err := on.List(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		path := on.PathJoin(dir, name)
		about, err := on.Stat(path)
		if err != nil {
			return 0, err
		}
		size := about.Size()
		if about.IsDir() {
			if size, err = sizeOf(on, path); err != nil {
				return 0, err
			}
		}
		total += size
	}
	return total, nil
}
