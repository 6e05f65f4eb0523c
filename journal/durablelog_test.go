package journal

import (
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestJournalWithoutTables takes the disk from the flushes of the journal while its log works: what
// is acknowledged is in the log, a stop ends soon, and the next start has all of it.
func TestJournalWithoutTables(t *testing.T) {
	t.Parallel()
	for _, no := range []error{syscall.ENOSPC, syscall.EIO, syscall.ENOENT, syscall.EMFILE} {
		var f faults
		fs := f.on(vfs.NewMem())
		j := open(t, Options{Dir: "data", FS: fs, MemTable: 1 << 20,
			Exit: func(code int) { t.Errorf("exit %d", code) }})
		m := newMaker(5)
		m.write(t, j, 5, 100)
		failures := func() float64 { return metric(t, j, "clobd_journal_background_failures_total") }
		f.set(func(op errorfs.Op) error {
			if writes(op, "journal", ".sst") {
				return no
			}
			return nil
		})
		await(t, "failures", func() bool {
			// Fills memtables, but not all of them: then it would wait for the disk.
			if failures() == 0 && j.db.Metrics().MemTable.Size < 2<<20 {
				m.write(t, j, 1, 200)
			}
			return failures() > 2
		})
		m.write(t, j, 3, 100)
		if err := closes(t, j); err != nil {
			t.Errorf("close: %v", err)
		}
		f.set(nil)
		left := open(t, Options{Dir: "data", FS: fs})
		if left.head != m.head {
			t.Fatalf("the journal ends with %+v, want %+v", left.head, m.head)
		}
		shut(t, left)
	}
}

// TestStuckJournal: when memory is full of frames that no table takes, Append cannot return, nor
// could a stop: that ends the process after a while, with all that was acknowledged in the log.
func TestStuckJournal(t *testing.T) {
	t.Parallel()
	var f faults
	mem := vfs.NewCrashableMem()
	fs := f.on(mem)
	var log safeBuffer
	exits := make(chan int, 10)
	j := open(t, Options{Dir: "data", FS: fs, MemTable: 1 << 20, Log: log.logger(),
		Exit: func(code int) { exits <- code }, patience: 100 * time.Millisecond})
	m := newMaker(5)
	f.set(func(op errorfs.Op) error {
		if writes(op, "journal", ".sst") {
			return syscall.ENOSPC
		}
		return nil
	})
	var acknowledged atomic.Uint64
	wrote := make(chan error, 1)
	go func() {
		for range 150 {
			sent := m.frame(200)
			if err := errors.Join(j.Append(sent), j.Wait(sent.No)); err != nil {
				wrote <- err
				return
			}
			acknowledged.Store(sent.No)
		}
		wrote <- nil
	}()
	select {
	case code := <-exits:
		if code != disk.ExitCode || !strings.Contains(log.String(), "writes wait for flushes, which fail") {
			t.Errorf("exit %d: %s", code, log.String())
		}
	case err := <-wrote:
		t.Fatalf("it was never stuck: %v", err)
	case <-time.After(soon):
		t.Fatal("stuck for ever")
	}
	least := acknowledged.Load()
	left := open(t, Options{Dir: "data", FS: mem.CrashClone(vfs.CrashCloneCfg{})})
	if left.head.Frame < least || least == 0 {
		t.Errorf("%d frames are left of %d", left.head.Frame, least)
	}
	shut(t, left)
	f.set(nil) // lets the goroutine end
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	shut(t, j)
}

// faults makes a disk refuse, or hang, what a test names.
type faults struct {
	match atomic.Pointer[func(op errorfs.Op) error]
}

// set makes the disk ask f about everything; nil heals it.
func (f *faults) set(match func(op errorfs.Op) error) {
	if match == nil {
		f.match.Store(nil)
		return
	}
	f.match.Store(&match)
}

// on wraps a filesystem.
func (f *faults) on(fs vfs.FS) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if match := f.match.Load(); match != nil {
			return (*match)(op)
		}
		return nil
	}))
}

// writes matches what changes a file of folder whose name has a part.
func writes(op errorfs.Op, folder, part string) bool {
	return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.Contains(op.Path, folder+"/") &&
		strings.Contains(filepath.Base(op.Path), part)
}

// closes closes what must not wait for what never comes, and gives its error.
func closes(t *testing.T, c interface{ Close() error }) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- c.Close() }()
	select {
	case err := <-done:
		return err
	case <-time.After(soon):
		t.Fatal("Close hangs")
		return nil
	}
}
