package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	return fileHolder(fs.PathJoin(path, "LOCK"))
}

// LockFolder takes the lock of a database's folder. The error is a *LockedError if the lock is
// taken. With readOnly, on a disk that is mounted for reading only, no lock is needed.
func LockFolder(on vfs.FS, path string, readOnly bool) (*pebble.Lock, error) {
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

// Claim is the lock of a database's folder, taken before the database is opened. The zero value
// holds nothing.
type Claim struct{ Lock *pebble.Lock }

// TakeClaim takes the lock of the database in folder path. The error is a *LockedError if the lock
// is taken. If the folder does not exist the Claim is empty.
func TakeClaim(path string) (c Claim, err error) {
	if _, err := vfs.Default.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	c.Lock, err = LockFolder(vfs.Default, path, false)
	return c, err
}

// Release gives the lock back. A database that was opened with it must be closed.
func (c *Claim) Release() (err error) {
	if c.Lock != nil {
		err, c.Lock = c.Lock.Close(), nil
	}
	return err
}
