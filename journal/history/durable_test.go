package history

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"
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

// failures is how many flushes and compactions of an index failed.
func failures(t *testing.T, x *Index) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(x.guard.Failures)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families[0].Metric[0].GetCounter().GetValue()
}

const (
	firstRest = 50 * time.Millisecond // that Pebble is made to take after a failure
	sayAgain  = 10 * time.Second      // between two words of the log about failures
)

// givesUp is the patience of a stop that a disk never ends: it need not wait long for a flush.
var givesUp = patience{flush: giveUp / 10, close: soon, leave: soon}

// TestStopPatience: how long a stop waits for a disk, where no test gives it longer.
func TestStopPatience(t *testing.T) {
	j := open(t, journal.Options{Dir: "data", FS: vfs.NewMem()})
	defer shut(t, j)
	x, err := Open(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := patience{flush: 2 * time.Second, close: 2100 * time.Millisecond, leave: 4 * time.Second}
	if got := x.options.patience; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	x.options.patience = unhurried // its own end is not what this is about
	shut(t, x)
}

// mustBeTold says that who waits for a Sequence which the index does not come to is told, long
// before his time is over.
func mustBeTold(t *testing.T, h *History, seq engine.Sequence) {
	t.Helper()
	came := make(chan bool, 1)
	go func() { came <- h.Await(seq, time.Hour) }()
	select {
	case is := <-came:
		if is {
			t.Errorf("the index came to Sequence %d", seq)
		}
	case <-time.After(soon):
		t.Error("who waits was not told")
	}
}

// refold opens the journal and the index again, after a stop: both hold all of m.
func refold(t *testing.T, fs vfs.FS, m *maker) (resumed engine.Sequence) {
	t.Helper()
	j := open(t, journal.Options{Dir: "data", FS: fs})
	defer shut(t, j)
	if same, err := j.Has(m.head.Frame, m.head.Hash); !same || j.Last() != m.head.Frame {
		t.Fatalf("the journal ends with frame %d, want %+v: %v", j.Last(), m.head, err)
	}
	x, err := openIndex(j, Options{})
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
			fs, begun := f.on(vfs.NewMem()), time.Now()
			j, m := newJournal(t, fs, 5)
			x, err := openIndex(j, Options{Flush: time.Millisecond, Log: log.logger(),
				patience: givesUp})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- x.Run() }()
			m.write(t, j, 20, 30)
			await(t, "durable", func() bool {
				m.write(t, j, 1, 30)
				return x.durable.load() > 0
			})
			f.set(match)
			m.write(t, j, 20, 30)
			await(t, "failures", func() bool {
				m.write(t, j, 1, 30)
				return failures(t, x) > 2
			})
			mustEqual(t, x, m)
			if err := x.History.Failed(); err != nil {
				t.Errorf("failed though it moves: %v", err)
			}
			if err := closes(t, x); err != nil {
				t.Errorf("close: %v", err)
			}
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
			if words := log.String(); !saidOnce(words, time.Since(begun)) ||
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

// saidOnce tells if a log names work that failed for so long once, and again only where it went on
// between, for what had begun before the disk was gone may end well, or where sayAgain was over.
func saidOnce(log string, long time.Duration) bool {
	failed := strings.Count(log, "background work failed")
	return failed > 0 &&
		failed <= 1+strings.Count(log, "background work goes on")+int(long/sayAgain)
}

// TestIndexFolderVanishes deletes the folder under a running index, on a real disk.
func TestIndexFolderVanishes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, journal.Options{Dir: dir})
	m := newMaker(3)
	m.journal = j.ID
	x, err := openIndex(j, Options{patience: givesUp})
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
	if err := closes(t, x); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	x, stop := run(t, j, Options{})
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
		if testing.Short() && !heals {
			continue
		}
		var f faults
		fs := f.on(vfs.NewMem())
		j, m := newJournal(t, fs, 5)
		x, err := openIndex(j, Options{MemTable: 1 << 20, patience: givesUp})
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
		h := x.History
		await(t, "held", func() bool { // waits, for what is far behind is folded all at once
			m.write(t, j, 5, 200)
			return !h.Await(m.head.Sequence, soon)
		})
		if err := h.Failed(); !errors.Is(err, syscall.ENOSPC) ||
			!strings.Contains(err.Error(), "stands at Sequence") {
			t.Errorf("failed: %v", err)
		}
		m.write(t, j, 1, 10)
		mustBeTold(t, h, m.head.Sequence)
		if size := x.db.Metrics().MemTable.Size; size > 8<<20 {
			t.Errorf("%d bytes of memory", size)
		}
		if heals {
			f.set(nil)
			await(t, "going on", func() bool { return h.Await(m.head.Sequence, soon) })
			mustEqual(t, x, m)
			if err := h.Failed(); err != nil {
				t.Errorf("failed after it went on: %v", err)
			}
		}
		if err := closes(t, x); err != nil {
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
	j := open(t, journal.Options{Dir: "data", FS: fs, Exit: func(code int) { exits <- code }})
	m := newMaker(5)
	m.journal = j.ID
	x, err := openIndex(j, Options{Flush: time.Millisecond})
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
	await(t, "torn", func() bool { m.write(t, j, 1, 30); return x.History.Failed() != nil })
	if err := <-done; err != x.History.Failed() || !strings.Contains(err.Error(), "cannot go on") ||
		!strings.Contains(err.Error(), "start again") {
		t.Errorf("run: %v", err)
	}
	mustBeTold(t, x.History, 1<<40)
	begun, before := time.Now(), failures(t, x)
	for id, o := range m.orders {
		if o.Sequence > 600 {
			continue
		}
		if _, known, err := x.History.Order(id); !known || err != nil {
			t.Fatalf("order %x: %v", id, err)
		}
	}
	time.Sleep(2 * firstRest)
	n, most := failures(t, x)-before, 3.0
	took := time.Since(begun)
	for rests := 2 * firstRest; rests < took; rests *= 2 { // flushes and compactions have their own
		most += 2
	}
	if n > most {
		t.Errorf("Pebble runs hot: %v failures in %v", n, took)
	}
	if err := closes(t, x); err != nil {
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

// TestIndexOnAHungDisk: where no call returns, the index is abandoned. Its stop is as impatient as
// any: what it waits for never comes.
func TestIndexOnAHungDisk(t *testing.T) {
	t.Parallel()
	var f faults
	fs := f.on(vfs.NewMem())
	j, m := newJournal(t, fs, 5)
	x, err := Open(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- x.Run() }()
	m.write(t, j, 20, 30)
	mustEqual(t, x, m)
	hangs, answer := make(chan struct{}), make(chan struct{})
	hang := sync.OnceFunc(func() { close(hangs) })
	f.set(func(op errorfs.Op) error {
		if writes(op, "index", "") {
			hang()
			<-answer
		}
		return nil
	})
	m.write(t, j, 20, 30)
	if _, err := x.db.AsyncFlush(); err != nil {
		t.Fatal(err)
	}
	<-hangs
	if err := closes(t, x); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("close: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	m.write(t, j, 1, 30)
	shut(t, j)
	f.set(nil)
	close(answer)
	await(t, "the lock is given back", func() bool {
		lock, err := fs.Lock("data/index/LOCK")
		return err == nil && lock.Close() == nil
	})
	refold(t, fs, m)
}

// TestCollectorsGather: the index tells how far it lags.
func TestCollectorsGather(t *testing.T) {
	j := open(t, journal.Options{Dir: "data", FS: vfs.NewMem()})
	defer j.Close()
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	newMaker(1).write(t, j, 4, 10)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(x.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "clobd_index_lag_commands" {
			if lag := f.Metric[0].GetGauge().GetValue(); lag != 40 {
				t.Errorf("a lag of %v, want 40", lag)
			}
			return
		}
	}
	t.Error("no lag")
}
