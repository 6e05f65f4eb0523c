package mix

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Mix is the file of a mix: operations, of which the first ones are not timed. The format is told
// in bench/matching/mix.go.
type Mix struct {
	Books, Ticks, Prefill, IDs int
	Ops                        []Op
}

// Op is one operation.
type Op struct {
	ID          uint64
	Qty         uint32
	Price, Book uint32
	Cancel, IOC bool
	Side        uint8 // 0 buys, 1 sells
}

// Turn is one replay, as clobench reads it.
type Turn struct {
	CPU     int64  `json:"cpu_ns"`  // of the thread that replays
	Wall    int64  `json:"wall_ns"` // both for the operations after the prefill
	Fills   uint64 `json:"fills"`
	Volume  uint64 `json:"volume"` // quantity times price in ticks
	Resting uint64 `json:"resting"`
}

const (
	header = 96
	record = 40
)

// Read reads the mix that is the only argument.
func Read(args []string) (*Mix, error) {
	if len(args) != 1 {
		return nil, errors.New("want one argument, the file of a mix")
	}
	file := args[0]
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read mix: %w", err)
	}
	if len(b) < header || string(b[:8]) != "clobmix1" {
		return nil, fmt.Errorf("read %s: not a mix file", file)
	}
	le := binary.LittleEndian
	word := func(i int) int { return int(le.Uint64(b[8*i:])) }
	m := &Mix{Books: word(1), Ticks: word(2), Prefill: word(3), IDs: word(5)}
	if len(b) != header+word(4)*record || m.Prefill > word(4) {
		return nil, fmt.Errorf("read %s: %d bytes for %d records", file, len(b), word(4))
	}
	m.Ops = make([]Op, word(4))
	for i := range m.Ops {
		r := b[header+record*i:]
		m.Ops[i] = Op{Cancel: r[0] == 1, Side: r[1], IOC: r[2] == 1, Qty: le.Uint32(r[4:]),
			ID: le.Uint64(r[16:]), Price: uint32(le.Uint64(r[24:])), Book: le.Uint32(r[32:])}
	}
	return m, nil
}

// threadTime is the CPU time that this thread has used.
func threadTime() int64 {
	const clock = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	at := uintptr(unsafe.Pointer(&t))
	if _, _, no := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, at, 0); no != 0 {
		panic(fmt.Sprintf("BUG: no clock of this thread: %v", no))
	}
	return t.Nano()
}

// pin keeps this thread on the last CPU that it may run on, as each matcher does: which one a turn
// gets, and who else is at work there, would be luck. The first one often serves the devices. If
// the kernel refuses, the thread stays free.
func pin() {
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

// Gather puts the heap into huge pages, as clobench's own matchers do ahead of the clock. Where the
// kernel is told never to keep them, or has none, nobody gets them.
func Gather() {
	const collapse, huge = 25, 2 << 20 // MADV_COLLAPSE
	enabled, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if strings.Contains(string(enabled), "[never]") {
		return
	}
	maps, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		var rights, offset, device, file string
		_, _ = fmt.Sscanf(line, "%x-%x %s %s %s %s", &from, &to, &rights, &offset, &device, &file)
		if rights != "rw-p" || file != "0" || strings.Contains(line, "[stack]") {
			continue
		}
		for from = (from + huge - 1) &^ (huge - 1); from+huge <= to; from += huge {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, huge, collapse)
		}
	}
}

// Timed sets what f takes.
func (t *Turn) Timed(f func()) {
	start, cpu := time.Now(), threadTime()
	f()
	t.CPU, t.Wall = threadTime()-cpu, int64(time.Since(start))
}

// Serve replays once for each line that comes in, and collects the garbage.
func Serve(in io.Reader, out io.Writer, replay func() Turn) error {
	runtime.LockOSThread() // all turns are of one thread; the collector's workers are others
	pin()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		t := replay()
		runtime.GC() // before the next matcher's turn begins
		if err := json.NewEncoder(out).Encode(t); err != nil {
			return fmt.Errorf("print turn: %w", err)
		}
	}
	return lines.Err()
}
