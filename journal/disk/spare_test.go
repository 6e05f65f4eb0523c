package disk

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// quiet is a log that nobody reads.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// await waits for something that must come soon.
func await(t testing.TB, what string, come func() bool) {
	t.Helper()
	const soon = 2 * time.Minute
	for end := time.Now().Add(soon); !come(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s", what)
		}
	}
}

// sample is a database with values of 64 KiB under the keys 1 to last.
type sample struct {
	guard *Guard
	db    *pebble.DB
	last  uint64
}

// openSample opens one in the folder data.
func openSample(t testing.TB, on vfs.FS, spares bool) *sample {
	t.Helper()
	k := &sample{guard: NewGuard(GuardOptions{Name: "journal", Path: "data", Log: quiet(), Spares: spares})}
	o := Appended(1<<20, 1<<20)
	o.FS = on
	var err error
	if k.db, err = k.guard.Open(o); err != nil {
		t.Fatal(err)
	}
	return k
}

// value is what the key no holds.
func (k *sample) value(no uint64) []byte {
	return bytes.Repeat(binary.BigEndian.AppendUint64(nil, no), 8192)
}

// write adds n values.
func (k *sample) write(t testing.TB, n int) {
	t.Helper()
	for range n {
		k.last++
		key := binary.BigEndian.AppendUint64(nil, k.last)
		if err := k.db.Set(key, k.value(k.last), pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
}

// spare waits for a spare that is large enough, and returns its size.
func (k *sample) spare(t testing.TB) (size int64) {
	t.Helper()
	s := k.guard.files.spares
	await(t, "a spare", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		size = s.ready
		return size >= s.next()
	})
	return size
}

// close closes it.
func (k *sample) close(t testing.TB) {
	t.Helper()
	k.guard.Retire()
	if err := k.guard.Close(k.db); err != nil {
		t.Fatal(err)
	}
}

// mustHold opens it again: nothing is missing.
func (k *sample) mustHold(t testing.TB, on vfs.FS) {
	t.Helper()
	again := openSample(t, on, false)
	for no := range k.last {
		b, found, err := Get(again.db, binary.BigEndian.AppendUint64(nil, no+1), nil)
		if err != nil || !found || !bytes.Equal(b, k.value(no+1)) {
			t.Errorf("value %d of %d: %v, %v", no+1, k.last, found, err)
		}
	}
	again.close(t)
}

// TestSpareLogs: logs are written into files that are there already, each as large as the log will
// become, and a database that is closed leaves none behind. What is in it comes back.
func TestSpareLogs(t *testing.T) {
	var made logsMade
	mem := vfs.NewMem()
	j := openSample(t, made.on(mem, nil), true)
	if made.reused.Load() != 1 || made.created.Load() != 0 {
		t.Errorf("%d logs of a spare, %d others", made.reused.Load(), made.created.Load())
	}
	for logs := range int64(8) {
		want := min(firstLog<<(logs+1), 1<<20)
		if size := j.spare(t); size != int64(want+want/16) {
			t.Errorf("log %d is to have %d bytes", logs+2, size)
		}
		for made.reused.Load() <= 1+logs {
			j.write(t, 1)
		}
	}
	if made.created.Load() != 0 {
		t.Errorf("%d logs had to grow", made.created.Load())
	}
	j.close(t)
	if _, err := mem.Stat("data/" + spareName); err == nil {
		t.Error("a spare is left behind")
	}
	j.mustHold(t, mem)
}

// TestOutgrownLog: after a restart that has replayed a log, Pebble's memtables begin with a larger
// one. The log in use then outgrows its spare, by large pieces, and the next ones have spares that
// are large enough again.
func TestOutgrownLog(t *testing.T) {
	mem := vfs.NewMem()
	j := openSample(t, mem, true)
	j.write(t, 2)
	j.close(t)
	last := j.last
	j = openSample(t, mem, true)
	j.last = last
	var logs []string
	var size int64
	growths := []int{}
	for range 64 {
		j.write(t, 1)
		j.spare(t)
		name, now := newestLog(t, mem)
		switch {
		case len(logs) == 0 || name != logs[len(logs)-1]:
			logs, growths = append(logs, name), append(growths, 0)
		case now != size:
			growths[len(growths)-1]++
			if now < size+spareChunk {
				t.Errorf("%s has grown from %d to %d bytes", name, size, now)
			}
		}
		size = now
	}
	if len(logs) < 3 || growths[0] == 0 || growths[0] > 4 {
		t.Errorf("growths of %v: %v", logs, growths)
	}
	for i, n := range growths[1:] {
		if n > 0 {
			t.Errorf("%s has grown %d times", logs[i+1], n)
		}
	}
	j.close(t)
	j.mustHold(t, mem)
}

// newestLog returns the log in use and its size.
func newestLog(t testing.TB, on vfs.FS) (name string, size int64) {
	t.Helper()
	names, err := on.List("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if isLog(n) && n > name {
			name = n
		}
	}
	about, err := on.Stat("data/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return name, about.Size()
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
		j := openSample(t, made.on(mem, &fails), true)
		j.write(t, 40)
		if made.created.Load() < 2 || (made.spares.Load() == 0) != small {
			t.Errorf("%d logs, %d spares", made.created.Load(), made.spares.Load())
		}
		j.close(t)
		j.mustHold(t, mem)
	}
}

// logsMade counts how the logs of a database on a filesystem come to be.
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
