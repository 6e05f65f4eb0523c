package pages

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const (
	// collapse is MADV_COLLAPSE of Linux 6.1 and later, see madvise(2): the area is put into huge
	// pages before the call returns.
	collapse = 25
	// enough is the tenths of an area that are there before it is gathered.
	enough = 9
	// every is how often Keep looks.
	every = time.Minute
)

// Gather puts all memory of this process that is in use into huge pages, without rest: who calls it
// serves nobody yet. It takes some 0.5 ms for each 2 MiB that is not there already, and 2 µs else,
// and says how many bytes are there afterwards. It ends early when ctx is done. The error says why
// nothing could be done at all; an area that the kernel does not gather is left as it is.
func Gather(ctx context.Context) (huge int64, err error) { return gather(ctx, false) }

// Keep gathers each minute what has come since, with rests, and tells what Gather says, until ctx
// is done. Where nothing can be done, that is 0.
func Keep(ctx context.Context, tell func(huge int64)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		huge, _ := gather(ctx, true)
		tell(huge)
	}
}

// gather goes over all areas of the size of a huge page. Resting means as long as was worked.
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
	there := make([]byte, size/uintptr(os.Getpagesize()))
	for _, m := range maps {
		for at := (m.from + size - 1) &^ (size - 1); at < m.to && m.to-at >= size; at += size {
			if ctx.Err() != nil {
				return huge, nil
			}
			if !dense(at, size, there) {
				continue
			}
			start := time.Now()
			_, _, no := syscall.Syscall(syscall.SYS_MADVISE, at, size, collapse)
			if no == 0 { // else the kernel has none to give, or the area is gone
				huge += int64(size)
			}
			if took := time.Since(start); resting && took > 50*time.Microsecond {
				time.Sleep(took)
			}
		}
	}
	return huge, nil
}

// dense says whether enough of the area is in memory. there has a byte for each of its small pages.
func dense(at, size uintptr, there []byte) bool {
	_, _, no := syscall.Syscall(syscall.SYS_MINCORE, at, size, uintptr(unsafe.Pointer(&there[0])))
	missing := bytes.Count(there, []byte{0})
	return no == 0 && 10*(len(there)-missing) >= enough*len(there)
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
	if err != nil || size&(size-1) != 0 || size < uint64(os.Getpagesize()) {
		return 0, fmt.Errorf("%shpage_pmd_size is %q", folder, b)
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
