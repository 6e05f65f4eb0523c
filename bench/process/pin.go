package process

import (
	"math/bits"
	"syscall"
	"unsafe"
)

// Pin keeps this thread on the last CPU that it may run on. What takes turns does so: otherwise
// chance decides which CPU a turn gets and who else works there. The first CPU often serves the
// devices. If the kernel refuses, the thread stays unpinned.
func Pin() {
	var may, last [16]uint64 // a bit for each CPU
	call := func(number uintptr, cpus *[16]uint64) bool {
		_, _, no := syscall.RawSyscall(number, 0, unsafe.Sizeof(*cpus), uintptr(unsafe.Pointer(cpus)))
		return no == 0
	}
	if !call(syscall.SYS_SCHED_GETAFFINITY, &may) {
		return
	}
	for i, cpus := range may {
		if cpus != 0 {
			last = [16]uint64{}
			last[i] = 1 << (bits.Len64(cpus) - 1)
		}
	}
	call(syscall.SYS_SCHED_SETAFFINITY, &last)
}
