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

// LockedError says that the folder is in use.
type LockedError struct {
	Path   string // the database's folder
	Holder string // who has it, as far as it can be told
	Err    error
}

// HintLocked is what to do with a folder that is in use.
const HintLocked = "stop that one, or give this one another folder"

// Error says who holds what and what to do.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by %s (%v): a data folder serves one process; %s",
		e.Path, e.Holder, e.Err, HintLocked)
}

// Unwrap gives the reason that the filesystem gave.
func (e *LockedError) Unwrap() error { return e.Err }

// lockHolder names the holder of the lock in path, which could not be taken because of err.
func lockHolder(fs vfs.FS, path string, err error) string {
	if vfs.Root(fs) != vfs.Default || strings.Contains(err.Error(), "current process") {
		return "this process"
	}
	return fileHolder(fs.PathJoin(path, "LOCK"))
}

// LockFolder takes the lock of a database's folder. The error is a *LockedError if somebody has it.
// What is only read from a disk that nobody can write needs none.
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

// isLocked says whether a lock was not given because somebody has it. That its file cannot be made
// or opened is another matter.
func isLocked(err error) bool {
	var opening *fs.PathError
	if errors.As(err, &opening) {
		return false
	}
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) ||
		strings.Contains(err.Error(), "current process")
}

// unlocked is a filesystem that nobody can write: its locks are given to all.
type unlocked struct{ vfs.FS }

// Lock takes nothing.
func (unlocked) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Claim is the lock of a data folder's journal, for who has to do something in the folder before he
// opens it. The zero value holds nothing.
type Claim struct{ Lock *pebble.Lock }

// TakeClaim claims the database in folder path for this process. The error is a *LockedError if
// another one has it. A folder that is not there cannot be claimed, and need not.
func TakeClaim(path string) (c Claim, err error) {
	if _, err := vfs.Default.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	c.Lock, err = LockFolder(vfs.Default, path, false)
	return c, err
}

// Release gives the lock back. What was opened with it must be closed.
func (c *Claim) Release() (err error) {
	if c.Lock != nil {
		err, c.Lock = c.Lock.Close(), nil
	}
	return err
}
