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
	"syscall"
	"time"
)

const (
	// collapse is MADV_COLLAPSE of Linux 6.1 and later, see madvise(2): the area is put into huge
	// pages before the call returns.
	collapse = 25
	// enough is the tenths of an area that are there before it is gathered.
	enough = 9
	// most is the largest size of a huge page: more would be copied for too long at a time.
	most = 32 << 20
	// refusals is how often the kernel may have no page to give before a pass ends: it looks long.
	refusals = 8
)

// Gather puts all memory of this process that is in use into huge pages, without rest: who calls it
// serves nobody yet. It takes some 0.5 ms for each 2 MiB that is not there already, and 10 µs else,
// and says how many bytes are there afterwards. It ends early when ctx is done. The error says why
// nothing could be done at all; an area that the kernel does not gather is left as it is.
func Gather(ctx context.Context) (huge int64, err error) { return gather(ctx, false) }

// Keep gathers each time that every has passed what has come since, with rests, and tells what
// Gather says, until ctx is done. Where nothing can be done, that is 0.
func Keep(ctx context.Context, every time.Duration, tell func(huge int64)) {
	for rest(ctx, every) {
		huge, _ := gather(ctx, true)
		tell(huge)
	}
}

// rest lets d pass, and says whether ctx is not done yet.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// gather goes over all areas of the size of a huge page. Resting means as long as a copy took.
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
	table, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return 0, fmt.Errorf("look for huge pages: %w", err)
	}
	defer table.Close()
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
			switch _, _, no := syscall.Syscall(syscall.SYS_MADVISE, at, size, collapse); no {
			case 0:
				huge += int64(size)
			case syscall.ENOMEM, syscall.EBUSY:
				refused++
			} // else the area is gone, or none that may be gathered
			if took := time.Since(start); resting && took > 50*time.Microsecond {
				rest(ctx, took)
			}
		}
	}
	return huge, nil
}

// dense says whether enough of the area is in memory that is its own: of a page that was only read,
// the kernel keeps one for all. The bits are told in the kernel's admin-guide/mm/pagemap; entries
// has room for those of all small pages.
func dense(table io.ReaderAt, at uintptr, entries []byte) bool {
	const there, own = 1 << 63, 1 << 56
	if _, err := table.ReadAt(entries, int64(8*at/uintptr(os.Getpagesize()))); err != nil {
		return false // it is gone
	}
	n := 0
	for i := 0; i < len(entries); i += 8 {
		if e := binary.NativeEndian.Uint64(entries[i:]); e&there != 0 && e&own != 0 {
			n += 8
		}
	}
	return 10*n >= enough*len(entries)
}

// hugeSize is the size of a huge page in bytes, a power of 2.
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

// mappings are the pieces that can be written and belong to no file: the heaps of Go and of C. What
// text says is told in proc_pid_maps(5).
func mappings(text string) (all []mapping, err error) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line) // addresses, rights, offset, device, inode, and maybe a name
		if len(words) < 5 || words[1] != "rw-p" || words[4] != "0" || words[len(words)-1] == "[stack]" {
			continue
		}
		from, to, _ := strings.Cut(words[0], "-")
		var m [2]uint64
		for i, digits := range []string{from, to} {
			if m[i], err = strconv.ParseUint(digits, 16, 64); err != nil {
				return nil, fmt.Errorf("read /proc/self/maps: %w", err)
			}
		}
		all = append(all, mapping{uintptr(m[0]), uintptr(m[1])})
	}
	return all, nil
}

// Share is how much memory this process has, and how much of it lies in huge pages, in bytes.
func Share() (huge, all int64, err error) {
	b, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		return 0, 0, fmt.Errorf("look for huge pages: %w", err)
	}
	return share(string(b))
}

// share reads what proc_pid_smaps(5) says of the first mapping in text.
func share(text string) (huge, all int64, err error) {
	for _, v := range []struct {
		name string
		into *int64
	}{{"AnonHugePages:", &huge}, {"Rss:", &all}} {
		var kib int64
		_, rest, _ := strings.Cut(text, v.name)
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			return 0, 0, fmt.Errorf("read how much memory is in huge pages: %s %w", v.name, err)
		}
		*v.into = kib << 10
	}
	return huge, all, nil
}
