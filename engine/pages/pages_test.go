package pages

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// memory is so many huge pages of fresh memory, on their border, as a mapping of its own.
func memory(t *testing.T, areas, size uintptr) []byte {
	b, err := syscall.Mmap(-1, 0, int((areas+2)*size), syscall.PROT_NONE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(b) })
	at := uintptr(unsafe.Pointer(&b[0]))
	skip := (at+size)&^(size-1) - at
	own := b[skip : skip+areas*size]
	if err := syscall.Mprotect(own, syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	return own
}

// huge says how much of the area at b is in huge pages, and how much is there at all, in bytes.
func huge(t *testing.T, b []byte) (huge, all int64) {
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	at := uint64(uintptr(unsafe.Pointer(&b[0])))
	for line := range strings.Lines(string(text)) {
		var from, to uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 && from <= at && at < to {
			_, rest, _ := strings.Cut(string(text), line)
			huge, all, err = share(rest)
			if err != nil {
				t.Fatal(err)
			}
			return huge, all
		}
	}
	t.Fatalf("no mapping at %x", at)
	return 0, 0
}

// fill touches so many of the small pages of an area.
func fill(b []byte, pages int) {
	for i := range pages {
		copy(b[i*os.Getpagesize():], fmt.Sprintf("page %d", i))
	}
}

// given says whether the kernel gathers a fresh area that is all in use.
func given(t *testing.T, size uintptr) (given bool, no syscall.Errno) {
	b := memory(t, 1, size)
	fill(b, int(size)/os.Getpagesize())
	at := uintptr(unsafe.Pointer(&b[0]))
	_, _, no = syscall.Syscall(syscall.SYS_MADVISE, at, size, collapse)
	return no == 0, no
}

// areas are memory in use: two areas of which all is, one of which just enough is, one with a page
// less, and one that was only read.
type areas struct{ full, enough, less, read []byte }

func newAreas(t *testing.T, size uintptr) *areas {
	small := int(size) / os.Getpagesize()
	a := &areas{memory(t, 2, size), memory(t, 1, size), memory(t, 1, size), memory(t, 1, size)}
	fill(a.full, 2*small)
	fill(a.enough, small-small/10)
	fill(a.less, small-small/10-1)
	for i := 0; i < len(a.read); i += os.Getpagesize() {
		if a.read[i] != 0 {
			t.Fatal("fresh memory is not empty")
		}
	}
	return a
}

// gathered says whether what should be in huge pages is.
func (a *areas) gathered(t *testing.T, size uintptr) bool {
	full, _ := huge(t, a.full)
	enough, _ := huge(t, a.enough)
	return full >= 2*int64(size) && enough >= int64(size)
}

// TestGather: an area that is in use lies in one page afterwards, one that is not is left alone,
// and no byte changes. So it is whether once or again and again.
func TestGather(t *testing.T) {
	size, err := hugeSize()
	if err != nil {
		if _, err := Gather(t.Context()); err == nil {
			t.Error("gathered where there are no huge pages")
		}
		t.Skip(err)
	}
	if ok, no := given(t, size); !ok {
		t.Skipf("the kernel gathers nothing: %v", no)
	}
	for name, gather := range map[string]func(func(int64)){
		"once": func(tell func(int64)) {
			told, err := Gather(t.Context())
			if tell(told); err != nil {
				t.Fatal(err)
			}
		},
		"kept": func(tell func(int64)) {
			ctx, cancel := context.WithCancel(t.Context())
			Keep(ctx, time.Millisecond, func(told int64) { tell(told); cancel() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, told := newAreas(t, size), int64(0)
			want := [][]byte{slices.Clone(a.full), slices.Clone(a.enough)}
			_, before := huge(t, a.less)
			_, own := huge(t, a.read) // some kernels give a page of its own to who only reads
			for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
				gather(func(bytes int64) { told = bytes })
				if a.gathered(t, size) {
					break
				} else if time.Now().After(end) { // the kernel may have none to give any more
					if ok, no := given(t, size); !ok {
						t.Skipf("the kernel gathers nothing any more: %v", no)
					}
					t.Fatal("what is in use does not lie in huge pages")
				}
			}
			if in, after := huge(t, a.less); in != 0 && !always() || after != before {
				t.Errorf("an area in little use: %d bytes, %d in huge pages, was %d", after, in, before)
			}
			if _, after := huge(t, a.read); own == 0 && after != 0 && !always() {
				t.Errorf("an area that was only read has %d bytes", after)
			}
			if !bytes.Equal(a.full, want[0]) || !bytes.Equal(a.enough, want[1]) {
				t.Error("what was in memory has changed")
			}
			text, err := os.ReadFile("/proc/self/smaps_rollup")
			if err != nil {
				t.Fatal(err)
			}
			total, all, err := share(string(text))
			if err != nil || told < 3*int64(size) || total < 3*int64(size) || all < total {
				t.Errorf("%d of %d bytes in huge pages, told %d, %v", total, all, told, err)
			}
		})
	}
}

// TestGatherEnds: nothing is done for who does not want it any more.
func TestGatherEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Keep(ctx, time.Hour, func(int64) { t.Error("told") })
	size, err := hugeSize()
	if err != nil {
		t.Skip(err)
	}
	b := memory(t, 1, size)
	fill(b, int(size)/os.Getpagesize())
	if told, err := Gather(ctx); told != 0 || err != nil {
		t.Error(told, err)
	}
	if in, _ := huge(t, b); in != 0 && !always() {
		t.Errorf("%d bytes were gathered", in)
	}
}

// always says whether the kernel gives huge pages to who does not ask.
func always() bool {
	b, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return bytes.Contains(b, []byte("[always]"))
}

func TestMappings(t *testing.T) {
	got, err := mappings(`00400000-004b7000 r-xp 00000000 fe:00 10216712        /bin/clobd
005a5000-005b0000 rw-p 001a5000 fe:00 10216712        /bin/clobd
005b0000-005e6000 rw-p 00000000 00:00 0
267c58000000-267c58800000 ---p 00000000 00:00 0
267c58800000-267c65400000 rw-p 00000000 00:00 0       [anon: Go: heap]
7f0000000000-7f0000200000 rw-s 00000000 00:01 0       /dev/zero (deleted)
7fff11849000-7fff1186a000 rw-p 00000000 00:00 0       [stack]
`)
	want := []mapping{{0x5b0000, 0x5e6000}, {0x267c58800000, 0x267c65400000}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%x, %v, want %x", got, err, want)
	}
	if _, err := mappings("x-y rw-p 00000000 00:00 0\n"); err == nil {
		t.Error("read addresses that are none")
	}
}

// share reads the first mapping in text, which has the form of proc_pid_smaps(5).
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
