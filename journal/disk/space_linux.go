package disk

import (
	"os"
	"syscall"
)

// freeBytes is how many bytes a process without privileges can still write on the disk of dir.
func freeBytes(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// allocate reserves room for a file without writing it. Not every filesystem can.
func allocate(f *os.File, size int64) error {
	return syscall.Fallocate(int(f.Fd()), 0, 0, size)
}
