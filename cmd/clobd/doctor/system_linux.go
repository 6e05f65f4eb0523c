package doctor

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"clobd/api/wire/live"
)

// survey reads what the system tells at once.
func (m *machine) survey(*Options) {
	m.holder = holderOf(filepath.Join(m.folder, "journal", "LOCK"))
	process := "self"
	if m.holder > 0 {
		process = fmt.Sprint(m.holder)
	}
	m.mount = mountOf(read("/proc/self/mountinfo"), m.folder)
	m.limits = limitsOf(read("/proc/" + process + "/limits"))
	m.memory = memoryOf(read("/proc/meminfo"))
	if self := read("/proc/" + process + "/cgroup"); self != "" {
		m.quota = quotaOf(os.DirFS("/sys/fs/cgroup"), self)
	}
	var s syscall.Statfs_t
	if syscall.Statfs(m.folder, &s) == nil {
		m.room = &room{free: int64(s.Bavail) * s.Bsize, files: int64(s.Ffree), capped: s.Files > 0}
	}
	const isError = 5 // TIME_ERROR of adjtimex(2)
	var t syscall.Timex
	if state, err := syscall.Adjtimex(&t); err == nil {
		m.clock = &discipline{synced: state != isError,
			maxError: time.Duration(t.Maxerror) * time.Microsecond, offset: offsetOf(&t)}
	}
	var batch live.Batch
	m.ring = batch.Open()
	batch.Close()
	m.kernel = kernelOf(read)
}

// offsetOf is how far the clock is still to be moved.
func offsetOf(t *syscall.Timex) time.Duration {
	const inNanoseconds = 0x2000 // STA_NANO
	if t.Status&inNanoseconds != 0 {
		return time.Duration(t.Offset)
	}
	return time.Duration(t.Offset) * time.Microsecond
}

// read returns a file's text without the space around it; empty if it cannot be read.
func read(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// holderOf is the process that has locked a file, or 0. It asks only, and takes no lock.
func holderOf(name string) int {
	f, err := os.Open(name)
	if err != nil {
		return 0
	}
	defer f.Close()
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &l); err != nil ||
		l.Type == syscall.F_UNLCK {
		return 0
	}
	return int(l.Pid)
}

// syncContent makes a file's bytes durable, as the journal does.
func syncContent(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// watchHiccups sleeps in the kernel and not with Go's timers, which are late by themselves.
func watchHiccups(stop <-chan struct{}) *hiccups {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var late []time.Duration
	length := syscall.NsecToTimespec(int64(time.Millisecond))
	for {
		select {
		case <-stop:
			if len(late) == 0 {
				return nil
			}
			slices.Sort(late)
			return &hiccups{late[len(late)*99/100], late[len(late)-1]}
		default:
		}
		begun := time.Now()
		if syscall.Nanosleep(&length, nil) == nil { // else a signal woke it early
			late = append(late, time.Since(begun)-time.Millisecond)
		}
	}
}

// watchDemand returns a function that says who else has wanted the cores since.
func watchDemand() func() *demand {
	from, known := timesOf(read("/proc/stat"))
	own := ownTime()
	return func() *demand {
		to, still := timesOf(read("/proc/stat"))
		if !known || !still {
			return nil
		}
		return demandOf(from, to, ownTime()-own)
	}
}
