package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

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

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// closeWithin closes what must close in time, and gives its error.
func closeWithin(t *testing.T, c interface{ Close() error }, d time.Duration) error {
	t.Helper()
	start, done := time.Now(), make(chan error, 1)
	go func() { done <- c.Close() }()
	select {
	case err := <-done:
		if took := time.Since(start); took > d {
			t.Errorf("Close took %v", took)
		}
		return err
	case <-time.After(d + 5*time.Second):
		t.Fatal("Close hangs")
		return nil
	}
}

// refold opens the journal and the index again, after a stop: both hold all of m.
func refold(t *testing.T, fs vfs.FS, m *maker) (resumed engine.Sequence) {
	t.Helper()
	j := open(t, Options{Dir: "data", FS: fs})
	defer shut(t, j)
	if j.head != m.head {
		t.Fatalf("the journal ends with %+v, want %+v", j.head, m.head)
	}
	x, err := OpenIndex(j, IndexOptions{})
	if err != nil {
		t.Fatal(err)
	}
	resumed = x.History.Sequence()
	done := make(chan error)
	go func() { done <- x.Run() }()
	mustEqual(t, x, m)
	shut(t, x)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return resumed
}

// TestIndexWithoutADisk takes the disk from the flushes of a running index: nobody is hurt, a stop
// ends soon and says what it gave up, and the next start folds from where the index was durable.
func TestIndexWithoutADisk(t *testing.T) {
	t.Parallel()
	for name, match := range map[string]func(op errorfs.Op) error{
		"full": func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileWrite && writes(op, "index", ".sst") {
				return syscall.ENOSPC
			}
			return nil
		},
		"failing": func(op errorfs.Op) error {
			if writes(op, "index", ".sst") {
				return syscall.EIO
			}
			return nil
		},
		"gone": func(op errorfs.Op) error {
			if op.Kind == errorfs.OpCreate && writes(op, "index", "") {
				return syscall.ENOENT
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f faults
			var log safeBuffer
			fs := f.on(vfs.NewMem())
			j, m := newJournal(t, fs, 5)
			x, err := OpenIndex(j, IndexOptions{Flush: time.Millisecond, Log: log.logger()})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- x.Run() }()
			m.write(t, j, 20, 30)
			eventually(t, "durable", func() bool {
				m.write(t, j, 1, 30)
				return x.durable.load() > 0
			})
			f.set(match)
			m.write(t, j, 20, 30)
			eventually(t, "failures", func() bool {
				m.write(t, j, 1, 30)
				return x.ward.disk.failures.Load() > 2
			})
			mustEqual(t, x, m)
			if err := x.History.Failed(); err != nil {
				t.Errorf("failed though it moves: %v", err)
			}
			if err := closeWithin(t, x, 3*time.Second); err != nil {
				t.Errorf("close: %v", err)
			}
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
			if words := log.String(); !saidOnce(words) ||
				!strings.Contains(words, "the index was not made durable") ||
				!strings.Contains(words, "cannot be written since") {
				t.Errorf("the log says: %s", words)
			}
			shut(t, j)
			durable := x.durable.load()
			f.set(nil)
			if at := refold(t, fs, m); at < durable || at >= m.head.Sequence {
				t.Errorf("resumed at %d, was durable up to %d of %d", at, durable, m.head.Sequence)
			}
		})
	}
}

// saidOnce tells if a log names failing work once, and again only where it went on between: what
// had begun before the disk was gone may end well.
func saidOnce(log string) bool {
	failed := strings.Count(log, "background work failed")
	return failed > 0 && failed <= 1+strings.Count(log, "background work goes on")
}

// TestIndexFolderVanishes deletes the folder under a running index, on a real disk.
func TestIndexFolderVanishes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, Options{Dir: dir})
	m := newMaker(3)
	m.journal = j.ID
	x, err := OpenIndex(j, IndexOptions{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- x.Run() }()
	m.write(t, j, 10, 30)
	mustEqual(t, x, m)
	if err := os.RemoveAll(x.Path); err != nil {
		t.Fatal(err)
	}
	m.write(t, j, 10, 30)
	mustEqual(t, x, m)
	if err := closeWithin(t, x, 3*time.Second); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	x, stop := run(t, j, IndexOptions{})
	if !x.fresh {
		t.Error("not made anew")
	}
	mustEqual(t, x, m)
	stop()
	shut(t, j)
}

// TestIndexHoldsAndGoesOn fills the memory that may wait for a disk: the index stands still, says
// so to who asks and to who waits, and goes on when the disk does; or it is closed meanwhile.
func TestIndexHoldsAndGoesOn(t *testing.T) {
	t.Parallel()
	for _, heals := range []bool{true, false} {
		var f faults
		fs := f.on(vfs.NewMem())
		j, m := newJournal(t, fs, 5)
		x, err := OpenIndex(j, IndexOptions{MemTable: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- x.Run() }()
		f.set(func(op errorfs.Op) error {
			if writes(op, "index", ".sst") {
				return syscall.ENOSPC
			}
			return nil
		})
		eventually(t, "held", func() bool {
			m.write(t, j, 5, 200)
			return x.History.Failed() != nil
		})
		h := x.History
		if err := h.Failed(); !errors.Is(err, syscall.ENOSPC) ||
			!strings.Contains(err.Error(), "stands at Sequence") {
			t.Errorf("failed: %v", err)
		}
		m.write(t, j, 1, 10)
		start := time.Now()
		if h.Await(m.head.Sequence, time.Minute) || time.Since(start) > 10*time.Second {
			t.Errorf("who waits was not told: %v", time.Since(start))
		}
		if size := x.db.Metrics().MemTable.Size; size > 8<<20 {
			t.Errorf("%d bytes of memory", size)
		}
		if heals {
			f.set(nil)
			eventually(t, "going on", func() bool { return h.Await(m.head.Sequence, time.Second) })
			mustEqual(t, x, m)
			if err := h.Failed(); err != nil {
				t.Errorf("failed after it went on: %v", err)
			}
		}
		if err := closeWithin(t, x, 3*time.Second); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		f.set(nil)
		shut(t, j)
		refold(t, fs, m)
	}
}

// TestTornIndex takes the manifest away: Pebble cannot go on, but the process can. Run ends and
// says why, what is known is still answered, and the next start repairs it.
func TestTornIndex(t *testing.T) {
	t.Parallel()
	var f faults
	fs := f.on(vfs.NewMem())
	exits := make(chan int, 10)
	j := open(t, Options{Dir: "data", FS: fs, Exit: func(code int) { exits <- code }})
	m := newMaker(5)
	m.journal = j.ID
	x, err := OpenIndex(j, IndexOptions{Flush: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- x.Run() }()
	m.write(t, j, 20, 30)
	mustEqual(t, x, m)
	f.set(func(op errorfs.Op) error {
		if writes(op, "index", "MANIFEST") {
			return syscall.EIO
		}
		return nil
	})
	eventually(t, "torn", func() bool { m.write(t, j, 1, 30); return x.History.Failed() != nil })
	if err := <-done; err != x.History.Failed() || !strings.Contains(err.Error(), "cannot go on") ||
		!strings.Contains(err.Error(), "start again") {
		t.Errorf("run: %v", err)
	}
	if x.History.Await(1<<40, time.Minute) {
		t.Error("it cannot come there")
	}
	before := x.ward.disk.failures.Load()
	for id, o := range m.orders {
		if o.Sequence > 600 {
			continue
		}
		if _, known, err := x.History.Order(id); !known || err != nil {
			t.Fatalf("order %x: %v", id, err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	if n := x.ward.disk.failures.Load() - before; n > 3 {
		t.Errorf("Pebble runs hot: %d failures in 100 ms", n)
	}
	if err := closeWithin(t, x, 3*time.Second); err != nil {
		t.Errorf("close: %v", err)
	}
	m.write(t, j, 1, 30)
	shut(t, j)
	select {
	case code := <-exits:
		t.Errorf("exit %d", code)
	default:
	}
	f.set(nil)
	refold(t, fs, m)
}

// TestIndexOnAHungDisk: where no call returns, the index is abandoned.
func TestIndexOnAHungDisk(t *testing.T) {
	t.Parallel()
	var f faults
	fs := f.on(vfs.NewMem())
	j, m := newJournal(t, fs, 5)
	x, err := OpenIndex(j, IndexOptions{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- x.Run() }()
	m.write(t, j, 20, 30)
	mustEqual(t, x, m)
	answer := make(chan struct{})
	f.set(func(op errorfs.Op) error {
		if writes(op, "index", "") {
			<-answer
		}
		return nil
	})
	m.write(t, j, 20, 30)
	if err := closeWithin(t, x, giveUp+giveUp/2+10*time.Second); err == nil ||
		!strings.Contains(err.Error(), "does not answer") {
		t.Errorf("close: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	m.write(t, j, 1, 30)
	shut(t, j)
	f.set(nil)
	close(answer)
	eventually(t, "the lock is given back", func() bool {
		lock, err := fs.Lock("data/index/LOCK")
		return err == nil && lock.Close() == nil
	})
	refold(t, fs, m)
}

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
		m.journal = j.ID
		m.write(t, j, 5, 100)
		f.set(func(op errorfs.Op) error {
			if writes(op, "journal", ".sst") {
				return no
			}
			return nil
		})
		eventually(t, "failures", func() bool {
			if j.ward.disk.failures.Load() == 0 { // fills a memtable, but not all of them
				m.write(t, j, 1, 200)
			}
			return j.ward.disk.failures.Load() > 2
		})
		m.write(t, j, 3, 100)
		if err := closeWithin(t, j, 3*time.Second); err != nil {
			t.Errorf("close: %v", err)
		}
		f.set(nil)
		refold(t, fs, m)
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
		Exit: func(code int) { exits <- code }})
	j.ward.patience = 100 * time.Millisecond
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
		if code != ExitJournal || !strings.Contains(log.String(), "writes wait for flushes, which fail") {
			t.Errorf("exit %d: %s", code, log.String())
		}
	case err := <-wrote:
		t.Fatalf("it was never stuck: %v", err)
	case <-time.After(10 * time.Second):
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
