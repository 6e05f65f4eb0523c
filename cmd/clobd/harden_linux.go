package main

import (
	"fmt"
	"syscall"
)

// notDumpable lets no other process of the same user trace this one, and the system write no core
// dump of it. The process can still read its own files below /proc/self.
func notDumpable() error {
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); e != 0 {
		return fmt.Errorf("prctl: %w", e)
	}
	return nil
}
