package stream

import (
	"runtime"
	"syscall"
)

// lowly is the nice value of the thread that writes to sockets.
const lowly = 10

// giveWay gives the goroutine a thread of its own, of low priority. The thread ends with the
// goroutine, so no other goroutine inherits the priority. If the system refuses, streams compete
// with orders at the same priority.
func giveWay() {
	runtime.LockOSThread()
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, lowly) // of the thread, on Linux
}

// yield lets threads run that wait for this CPU. The runtime's own yield would hand the goroutine
// over to another thread and back.
func yield() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
