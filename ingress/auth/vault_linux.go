package auth

import (
	"fmt"
	"syscall"
)

// dontDump is MADV_DONTDUMP, which package syscall does not name on every processor.
const dontDump = 0x10

// lockedPage returns memory outside Go's heap, or nil. The error says what the system refused.
func lockedPage(n int) ([]byte, error) {
	page, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map memory for secrets: %w", err)
	}
	if err := syscall.Madvise(page, dontDump); err != nil {
		return page, fmt.Errorf("keep secrets out of core dumps: %w", err)
	}
	if err := syscall.Mlock(page); err != nil {
		return page, fmt.Errorf("lock secrets in memory (ulimit -l): %w", err)
	}
	return page, nil
}
