package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// MakeFolder makes the folder path with all its parents, durably: it syncs every directory that got
// a new entry. A folder whose entry is lost in a crash takes every synced file in it along. Folders
// that it makes are open to this user alone; one that exists is fine. The error names the folder.
func MakeFolder(path string) error { return makeFolder(vfs.Default, filepath.Clean(path)) }

// sureLevels is how many folders, path first, are synced into their parents even if they exist:
// whoever made them may have crashed before he did so.
const sureLevels = 2

// makeFolder is MakeFolder on any filesystem, for a path without detours.
func makeFolder(on vfs.FS, path string) error {
	type level struct {
		parent string
		old    bool // its entry was there before
	}
	var levels []level
	for dir := path; ; {
		parent := on.PathDir(dir)
		if parent == dir || dir == "." || dir == "" {
			break
		}
		_, err := on.Stat(dir)
		if err == nil && len(levels) >= sureLevels {
			break
		}
		levels = append(levels, level{parent, err == nil})
		dir = parent
	}
	if err := on.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make folder %s: %w", path, err)
	}
	for _, l := range levels {
		err := syncFolder(on, l.parent)
		if l.old && errors.Is(err, fs.ErrPermission) {
			continue // not ours: who made the entry could read it
		}
		if err != nil {
			return fmt.Errorf("make folder %s: sync its parent %s: %w", path, l.parent, err)
		}
	}
	return nil
}

// syncFolder makes the entries of folder dir durable.
func syncFolder(on vfs.FS, dir string) error {
	if dir == "." && vfs.Root(on) != vfs.Default {
		dir = "" // what memory filesystems call the root
	}
	d, err := on.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
