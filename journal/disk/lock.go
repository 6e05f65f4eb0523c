package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// LockedError is the error of a folder that another process, or this one, has locked.
type LockedError struct {
	Path   string // the database's folder
	Holder string // who holds the lock, as far as is known
	Err    error
}

// HintLocked is what to do with a folder that is in use.
const HintLocked = "stop that one, or give this one another folder"

// Error says who holds the folder and what to do.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by %s (%v): a data folder serves one process; %s",
		e.Path, e.Holder, e.Err, HintLocked)
}

// Unwrap gives the filesystem's error.
func (e *LockedError) Unwrap() error { return e.Err }

// lockHolder names the holder of the lock of folder path. err is why the lock could not be taken.
func lockHolder(fs vfs.FS, path string, err error) string {
	if vfs.Root(fs) != vfs.Default || strings.Contains(err.Error(), "current process") {
		return "this process"
	}
	return fileHolder(fs.PathJoin(path, lockName))
}

// Lock is a database's folder that this process has for itself: Pebble's lock of a file in it, and
// one of the folder, which holds also after somebody has deleted that file.
type Lock struct {
	Pebble *pebble.Lock

	path   string
	folder *os.File    // locked; nil on a filesystem that has no such locks
	was    os.FileInfo // of the folder
	file   os.FileInfo // of Pebble's file
}

// LockFolder takes the locks of a database's folder. The error is a *LockedError if one is taken.
// With readOnly, on a disk that is mounted for reading only, no lock is needed.
func LockFolder(on vfs.FS, path string, readOnly bool) (*Lock, error) {
	lock, err := lockFile(on, path, readOnly)
	if err != nil {
		return nil, err
	}
	l := &Lock{Pebble: lock, path: path}
	if vfs.Root(on) != vfs.Default {
		return l, nil
	}
	if l.folder, err = holdFolder(path); err != nil {
		return nil, errors.Join(&LockedError{Path: path, Holder: "another process", Err: err},
			lock.Close())
	}
	if l.was, err = os.Stat(path); err == nil {
		l.file, err = os.Stat(filepath.Join(path, lockName))
	}
	if err != nil && !readOnly {
		return nil, errors.Join(fmt.Errorf("look at the lock of %s: %w", path, err), l.Close())
	}
	return l, nil
}

// Held returns why the lock keeps nobody out any more: its file or its folder was deleted, moved or
// replaced. Another process may open the folder that has the name now.
func (l *Lock) Held() error {
	if l.was == nil || l.file == nil {
		return nil
	}
	for path, was := range map[string]os.FileInfo{
		l.path: l.was, filepath.Join(l.path, lockName): l.file} {
		now, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(was, now) {
			return fmt.Errorf("%s was deleted, moved or replaced while this process holds it", path)
		}
	}
	return nil
}

// Close gives the locks back.
func (l *Lock) Close() (err error) {
	if l.Pebble != nil {
		err = l.Pebble.Close()
	}
	if l.folder != nil {
		err = errors.Join(err, l.folder.Close())
	}
	l.Pebble, l.folder = nil, nil
	return err
}

// Renew gives the locks back, and takes those of the folder that has the name now: this process has
// put another one in its place. No database may be open with them. After an error nothing is held.
func (l *Lock) Renew() error {
	path := l.path
	if err := l.Close(); err != nil {
		return err
	}
	fresh, err := LockFolder(vfs.Default, path, false)
	if err == nil {
		*l = *fresh
	}
	return err
}

const lockName = "LOCK" // Pebble's

func lockFile(on vfs.FS, path string, readOnly bool) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(path, on)
	if readOnly && errors.Is(err, syscall.EROFS) {
		lock, err = pebble.LockDirectory(path, unlocked{on})
	}
	if err == nil {
		return lock, nil
	}
	if isLocked(err) {
		return nil, &LockedError{Path: path, Holder: lockHolder(on, path, err), Err: err}
	}
	err = fmt.Errorf("take the lock of %s: %w", path, err)
	switch {
	case errors.Is(err, syscall.EROFS):
		err = Advise(err, "the disk is mounted for reading only: mount it for writing")
	case errors.Is(err, fs.ErrPermission):
		err = Advise(err, "run this as the user whose folder it is")
	case !errors.Is(err, fs.ErrNotExist):
		err = Advise(err, "it must be a folder that can be written")
	}
	return nil, err
}

// isLocked reports whether err means that the lock is taken, not that its file cannot be opened.
func isLocked(err error) bool {
	var opening *fs.PathError
	if errors.As(err, &opening) {
		return false
	}
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) ||
		strings.Contains(err.Error(), "current process")
}

// unlocked is a filesystem without locks, for a disk that cannot be written.
type unlocked struct{ vfs.FS }

// Lock takes nothing.
func (unlocked) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Claim is the data folder of a process that is about to open the databases in it, taken before
// the first of them. The zero value holds nothing.
type Claim struct {
	Lock *Lock // of the journal; nil if there is none yet
	data *os.File
}

// TakeClaim takes the data folder, which must exist, and the journal in it, if there is one. The
// error is a *LockedError if another process has one of them.
func TakeClaim(data string) (c Claim, err error) {
	path := filepath.Join(data, "journal")
	if _, err = os.Stat(path); err == nil { // first, for it knows its holder
		c.Lock, err = LockFolder(vfs.Default, path, false)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	if c.data, err = holdFolder(data); err != nil {
		return Claim{}, errors.Join(&LockedError{Path: data, Holder: "another process", Err: err},
			c.Release())
	}
	return c, nil
}

// Release gives the locks back. A database that was opened with them must be closed.
func (c *Claim) Release() (err error) {
	if c.Lock != nil {
		err, c.Lock = c.Lock.Close(), nil
	}
	if c.data != nil {
		err, c.data = errors.Join(err, c.data.Close()), nil
	}
	return err
}
