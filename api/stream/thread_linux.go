package stream

import (
	"runtime"
	"syscall"
)

// lowly is the nice value of the thread that writes to sockets.
const lowly = 10

// giveWay gives the goroutine a thread of its own, of low priority. The thread ends with the
// goroutine: nobody else inherits the priority. If the system refuses, streams are as urgent as
// orders.
func giveWay() {
	runtime.LockOSThread()
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, lowly) // of the thread, on Linux
}
