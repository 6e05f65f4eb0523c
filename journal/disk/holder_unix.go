//go:build unix

package disk

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// fileHolder names the process that holds the lock on file name. It must not be called if this
// process may hold the lock: closing the file would release it.
func fileHolder(name string) string {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return "another process"
	}
	defer f.Close()
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &l); err != nil || l.Pid == 0 ||
		l.Type == syscall.F_UNLCK {
		return "another process"
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", l.Pid))
	if err != nil {
		return fmt.Sprintf("process %d", l.Pid)
	}
	line = bytes.TrimRight(line, "\x00")
	return fmt.Sprintf("process %d (%s)", l.Pid, strings.ReplaceAll(string(line), "\x00", " "))
}
