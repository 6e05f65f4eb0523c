package journal

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// logsMade counts how the logs of a journal on a filesystem come to be.
type logsMade struct{ created, reused, spares atomic.Int64 }

func (l *logsMade) on(fs vfs.FS, fails *atomic.Bool) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		spare := strings.HasSuffix(op.Path, "/"+spareName)
		switch {
		case op.Kind == errorfs.OpCreate && isLog(op.Path):
			l.created.Add(1)
		case op.Kind == errorfs.OpReuseForWrite:
			l.reused.Add(1)
		case op.Kind == errorfs.OpCreate && spare:
			l.spares.Add(1)
			if fails != nil && fails.Load() {
				return errorfs.ErrInjected
			}
		case op.Kind == errorfs.OpFileWrite && spare && fails != nil && fails.Load():
			return errorfs.ErrInjected
		}
		return nil
	}))
}

// TestSpareLogs: logs are written into files that are there already, each as large as the log will
// become, and a journal that is closed leaves none behind. What is in it comes back.
func TestSpareLogs(t *testing.T) {
	var made logsMade
	mem := vfs.NewMem()
	j := open(t, Options{Dir: "data", FS: made.on(mem, nil), MemTable: 1 << 20, spares: true})
	if made.reused.Load() != 1 || made.created.Load() != 0 {
		t.Errorf("%d logs of a spare, %d others", made.reused.Load(), made.created.Load())
	}
	m := newMaker(3)
	for logs := range int64(8) {
		await(t, "a spare", func() bool {
			s := j.ward.disk.spares
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.ready >= s.next()
		})
		for made.reused.Load() <= 1+logs {
			m.write(t, j, 1, 100)
		}
		s := j.ward.disk.spares
		if want := min(firstLog<<(logs+1), 1<<20); s.size.Load() != int64(want+want/16) {
			t.Errorf("log %d is to have %d bytes", logs+2, s.size.Load())
		}
	}
	if made.created.Load() != 0 {
		t.Errorf("%d logs had to grow", made.created.Load())
	}
	shut(t, j)
	if _, err := mem.Stat("data/journal/" + spareName); err == nil {
		t.Error("a spare is left behind")
	}
	j = open(t, Options{Dir: "data", FS: mem})
	if j.head != m.head {
		t.Errorf("%+v, want %+v", j.head, m.head)
	}
	shut(t, j)
}

// TestNoSpareLog: without room, or on a disk that does not take a spare, logs are new files.
func TestNoSpareLog(t *testing.T) {
	for _, small := range []bool{false, true} {
		var made logsMade
		var fails atomic.Bool
		mem := vfs.NewMem()
		fails.Store(!small)
		if small {
			mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: firstLog * spareRoom, TotalBytes: 1 << 40})
		}
		j := open(t, Options{Dir: "data", FS: made.on(mem, &fails), MemTable: 1 << 20, spares: true})
		m := newMaker(3)
		m.write(t, j, 40, 200)
		if made.created.Load() < 2 || (made.spares.Load() == 0) != small {
			t.Errorf("%d logs, %d spares", made.created.Load(), made.spares.Load())
		}
		shut(t, j)
		j = open(t, Options{Dir: "data", FS: mem})
		if j.head != m.head {
			t.Errorf("%+v, want %+v", j.head, m.head)
		}
		shut(t, j)
	}
}

// TestUnsynced: while the disk takes no sync the oldest frame gets older, the log says so once, and
// once that the disk goes on; the metric follows.
func TestUnsynced(t *testing.T) {
	t.Parallel()
	var hang sync.Mutex
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData && isLog(op.Path) {
			hang.Lock()
			defer hang.Unlock()
		}
		return nil
	}))
	var log safeBuffer
	j := open(t, Options{Dir: "data", FS: fs, Log: log.logger()})
	m := newMaker(1)
	m.write(t, j, 3, 5)
	if age := j.Unsynced(); age != 0 {
		t.Errorf("nothing waits, for %v", age)
	}
	hang.Lock()
	begun := time.Now()
	sent := m.frame(5)
	if err := j.Append(sent); err != nil {
		t.Fatal(err)
	}
	next := m.frame(5)
	await(t, "an older frame", func() bool { return j.Unsynced() > 50*time.Millisecond })
	if err := j.Append(next); err != nil {
		t.Fatal(err)
	}
	await(t, "a word", func() bool { return strings.Contains(log.String(), "the disk hangs") })
	if age := j.Unsynced(); age < StallTime || age > time.Since(begun) {
		t.Errorf("it has waited for %v, and began %v ago", age, time.Since(begun))
	}
	time.Sleep(2 * stallPoll)
	hang.Unlock()
	if err := errors.Join(j.Wait(sent.No), j.Wait(next.No)); err != nil {
		t.Fatal(err)
	}
	if age := j.Unsynced(); age != 0 {
		t.Errorf("nothing waits any more, for %v", age)
	}
	await(t, "another word", func() bool { return strings.Contains(log.String(), "the disk goes on") })
	if n := strings.Count(log.String(), "the disk hangs"); n != 1 {
		t.Errorf("told %d times", n)
	}
	shut(t, j)
}
