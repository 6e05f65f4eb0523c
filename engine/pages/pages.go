package pages

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// collapse is MADV_COLLAPSE of Linux 6.1 and later, see madvise(2): the area lies in huge pages
	// when the call returns.
	collapse = 25
	// enough is how many tenths of an area must be in use before it is gathered.
	enough = 9
	// most is the largest allowed size of a huge page: a larger copy would take too long.
	most = 32 << 20
	// refusals is how often the kernel may lack a page before a pass ends: each search takes long.
	refusals = 8
)

// Gather puts the used memory of this process into huge pages, without rests: call it before
// serving anybody. It takes about 0.5 ms for each 2 MiB to copy and 10 µs for each other, and
// returns how many bytes lie in huge pages afterwards. It ends early when ctx is done. The error
// says why nothing could be done at all; areas that the kernel does not gather are left alone.
func Gather(ctx context.Context) (huge int64, err error) { return gather(ctx, false) }

// Keep gathers with rests whenever every has passed, and calls tell with the result of Gather, or 0
// if nothing can be done. It returns when ctx is done.
func Keep(ctx context.Context, every time.Duration, tell func(huge int64)) {
	for rest(ctx, every) {
		huge, _ := gather(ctx, true)
		tell(huge)
	}
}

// rest waits for d, and reports whether ctx is not done yet.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// pagemap tells which small pages are in use. It is opened once: a process that is not dumpable
// may no longer open its own, unless it is root's.
var pagemap = sync.OnceValues(func() (*os.File, error) { return os.Open("/proc/self/pagemap") })

// Prepare opens what Gather and Keep read, as long as the process may. They say what failed.
func Prepare() { _, _ = pagemap() }

// gather goes over all areas. If resting, it waits after each copy for as long as the copy took.
func gather(ctx context.Context, resting bool) (huge int64, err error) {
	size, err := hugeSize()
	if err != nil {
		return 0, err
	}
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, fmt.Errorf("look for huge pages: %w", err)
	}
	maps, err := mappings(string(b))
	if err != nil {
		return 0, err
	}
	table, err := pagemap()
	if err != nil {
		return 0, fmt.Errorf("look for huge pages: %w", err)
	}
	refused := 0
	entries := make([]byte, 8*size/uintptr(os.Getpagesize()))
	for _, m := range maps {
		for at := (m.from + size - 1) &^ (size - 1); at < m.to && m.to-at >= size; at += size {
			if ctx.Err() != nil || refused == refusals {
				return huge, nil
			}
			if !dense(table, at, entries) {
				continue
			}
			start := time.Now()
			switch _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, at, size, collapse); errno {
			case 0:
				huge += int64(size)
			case syscall.ENOMEM, syscall.EBUSY:
				refused++
			} // any other error: the area is gone, or cannot be gathered
			if took := time.Since(start); resting && took > 50*time.Microsecond {
				rest(ctx, took)
			}
		}
	}
	return huge, nil
}

// dense reports whether enough small pages of the area are in use and not shared: all pages that
// were only read share one. The kernel's admin-guide/mm/pagemap explains the bits; entries has room
// for all small pages of the area.
func dense(table io.ReaderAt, at uintptr, entries []byte) bool {
	const there, own = 1 << 63, 1 << 56
	if _, err := table.ReadAt(entries, int64(8*at/uintptr(os.Getpagesize()))); err != nil {
		return false // the area is gone
	}
	n := 0
	for i := 0; i < len(entries); i += 8 {
		if e := binary.NativeEndian.Uint64(entries[i:]); e&there != 0 && e&own != 0 {
			n += 8
		}
	}
	return 10*n >= enough*len(entries)
}

// hugeSize returns the size of a huge page in bytes, a power of 2.
func hugeSize() (uintptr, error) {
	const folder = "/sys/kernel/mm/transparent_hugepage/"
	if b, err := os.ReadFile(folder + "enabled"); err != nil {
		return 0, fmt.Errorf("look for huge pages: %w", err)
	} else if bytes.Contains(b, []byte("[never]")) {
		return 0, fmt.Errorf("%senabled says never", folder)
	}
	b, err := os.ReadFile(folder + "hpage_pmd_size")
	if err != nil {
		return 0, fmt.Errorf("look for huge pages: %w", err)
	}
	size, err := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 32)
	if err != nil || size&(size-1) != 0 || size < uint64(os.Getpagesize()) || size > most {
		return 0, fmt.Errorf("%shpage_pmd_size is %q, want at most %d", folder, b, most)
	}
	return uintptr(size), nil
}

// mapping is a piece of the address space.
type mapping struct{ from, to uintptr }

// mappings returns the writable pieces that belong to no file: the heaps of Go and of C. text has
// the form of proc_pid_maps(5).
func mappings(text string) (all []mapping, err error) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line) // addresses, rights, offset, device, inode, and maybe a name
		if len(words) < 5 || words[1] != "rw-p" || words[4] != "0" || words[len(words)-1] == "[stack]" {
			continue
		}
		var m mapping
		if _, err := fmt.Sscanf(words[0], "%x-%x", &m.from, &m.to); err != nil {
			return nil, fmt.Errorf("read /proc/self/maps: %w", err)
		}
		all = append(all, m)
	}
	return all, nil
}
