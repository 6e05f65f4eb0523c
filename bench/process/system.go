package process

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// winsize is how the kernel tells the size of a terminal.
type winsize struct{ rows, columns, _, _ uint16 }

// Columns is how wide the terminal is that a file is, 0 if the file is none.
func Columns(f *os.File) int {
	var size winsize
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGWINSZ,
				uintptr(unsafe.Pointer(&size))) // refused, it leaves the size 0
		})
	}
	if err != nil {
		return 0
	}
	return int(size.columns)
}

// Niceness is the priority of this process.
func Niceness() int {
	of, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		panic("BUG: no priority of my own: " + err.Error())
	}
	return 20 - of // as the kernel counts it, where none is below 0
}

// CPUTime is user plus system time that this process has used.
func CPUTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
