package process

import (
	"syscall"
	"time"
)

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
