//go:build !linux

package live

import "syscall"

// ring is nil here: only Linux has io_uring.
type ring struct{}

func newRing(int) *ring { return nil }

func (*ring) close() {}

func (*ring) prepare(int, uintptr, []byte) {}

func (*ring) send(func(int, int, syscall.Errno)) {}
