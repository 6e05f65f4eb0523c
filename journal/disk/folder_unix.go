//go:build unix && !solaris && !illumos && !aix

package disk

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// holdFolder locks a folder itself until the file is closed. It returns an error if somebody else
// has it, and nil without a file where folders have no locks, as on some network filesystems.
func holdFolder(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return f, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("lock the folder: %w", err)
	} else {
		err = nil
	}
	return nil, errors.Join(err, f.Close())
}
