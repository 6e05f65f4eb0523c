package disk

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestLocksAreToldApart: that a lock's file cannot be made is not that somebody has it.
func TestLocksAreToldApart(t *testing.T) {
	for _, c := range []struct {
		err      error
		readOnly bool
		opens    bool
		word     string
	}{
		{&os.PathError{Op: "open", Path: "LOCK", Err: syscall.EROFS}, false, false, "reading only"},
		{&os.PathError{Op: "open", Path: "LOCK", Err: syscall.EROFS}, true, true, ""},
		{&os.PathError{Op: "open", Path: "LOCK", Err: syscall.EACCES}, true, false, "run this as"},
		{&os.PathError{Op: "open", Path: "LOCK", Err: syscall.ENOSPC}, false, false, "no space"},
		{syscall.EAGAIN, true, false, "in use by"},
	} {
		on := lockless{vfs.NewMem(), c.err}
		if err := MakeFolder(on, "journal"); err != nil {
			t.Fatal(err)
		}
		lock, err := LockFolder(on, "journal", c.readOnly)
		if c.opens != (err == nil) {
			t.Errorf("%v: %v", c.err, err)
		}
		if err == nil {
			if err := lock.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		var locked *LockedError
		if !strings.Contains(err.Error(), c.word) || errors.As(err, &locked) != (c.word == "in use by") {
			t.Errorf("%v: %v", c.err, err)
		}
	}
}

// lockless is a filesystem that gives no locks.
type lockless struct {
	vfs.FS
	err error
}

// Lock says why.
func (l lockless) Lock(string) (io.Closer, error) { return nil, l.err }
