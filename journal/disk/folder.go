package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// MakeFolder makes the folder path with all its parents, durably: it syncs every directory that got
// a new entry. Otherwise a crash could lose the entry, and with it every synced file in the folder.
// Only this user may enter new folders. A folder that exists is no error. The error names the
// folder. A nil filesystem is the machine's own.
func MakeFolder(on vfs.FS, path string) error {
	on, path = Filesystem(on), filepath.Clean(path)
	var parents []parent
	for dir := path; ; {
		above := on.PathDir(dir)
		if above == dir || dir == "." || dir == "" {
			break
		}
		_, err := on.Stat(dir)
		if err == nil && len(parents) >= sureLevels {
			break
		}
		parents = append(parents, parent{above, err == nil})
		dir = above
	}
	if err := on.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make folder %s: %w", path, err)
	}
	for _, p := range parents {
		err := SyncFolder(on, p.path)
		if p.old && errors.Is(err, fs.ErrPermission) {
			continue // another user's folder, who has synced the entry
		}
		if err != nil {
			return fmt.Errorf("make folder %s: sync its parent %s: %w", path, p.path, err)
		}
	}
	return nil
}

// sureLevels is how many folders, path first, are synced into their parents even if they exist: the
// process that made them may have crashed before it synced them.
const sureLevels = 2

// parent is a folder with an entry that must be durable.
type parent struct {
	path string
	old  bool // the entry was there before
}

// Filesystem is on, or the machine's own if on is nil.
func Filesystem(on vfs.FS) vfs.FS {
	if on == nil {
		return vfs.Default
	}
	return on
}

// SyncFolder makes the entries of a folder durable.
func SyncFolder(on vfs.FS, dir string) error {
	if dir == "." && vfs.Root(on) != vfs.Default {
		dir = "" // what memory filesystems call the root
	}
	d, err := on.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
