package journal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"
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

// TestLeftSpare: what a process that was killed left of its spare is no part of the journal: it is
// verified, copied and rescued as if the file were not there. The next Open replaces it, or, where
// there is no room for one, removes it.
func TestLeftSpare(t *testing.T) {
	mem := vfs.NewMem()
	j, m := open(t, Options{Dir: "data", FS: mem}), newMaker(3)
	m.write(t, j, 20, 50)
	shut(t, j)
	const spare = "data/journal/" + spareName
	stray := newMaker(4).frame(50).Bytes // of another journal, to be found by nobody
	leave := func() {
		if err := writeWhole(mem, spare, bytes.Repeat(stray, 1+int(2*firstLog)/len(stray))); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	loss, err := Diagnose(t.Context(), Options{Dir: "data", FS: mem, Log: quiet()},
		func() *State { return &State{Seed: 1} })
	if err != nil || !loss.Starts || loss.Why != nil {
		t.Fatalf("diagnosed %+v, %v", loss, err)
	}
	j = open(t, Options{Dir: "data", FS: mem, ReadOnly: true})
	v, err := j.Verify(t.Context(), VerifyOptions{Fresh: func() *State { return &State{Seed: 1} }})
	if err != nil || len(v.Findings) > 0 || v.Head != m.head {
		t.Fatalf("verified %+v, %v", v, err)
	}
	shut(t, j)
	for _, small := range []bool{false, true} {
		leave()
		if small {
			mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: firstLog * spareRoom, TotalBytes: 1 << 40})
		}
		j = open(t, Options{Dir: "data", FS: mem, spares: true})
		await(t, "another spare, or none", func() bool {
			about, err := mem.Stat(spare)
			return small && err != nil || !small && err == nil && about.Size() == 2*firstLog*17/16
		})
		m.write(t, j, 1, 50)
		if _, err := j.Backup(fmt.Sprint("copy", small)); err != nil {
			t.Error(err)
		}
		if _, err := mem.Stat(fmt.Sprintf("copy%v/journal/%s", small, spareName)); err == nil {
			t.Error("a spare was copied")
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
	const hangs, goesOn = "the disk hangs", "the disk goes on"
	told := func() bool { // that it hangs, and nothing since
		words := log.String()
		return strings.LastIndex(words, hangs) > strings.LastIndex(words, goesOn)
	}
	await(t, "a word", func() bool { return told() && j.Unsynced() >= StallTime })
	if v := unsyncedMetric(t, j); v < StallTime.Seconds() {
		t.Errorf("the metric says %v", v)
	}
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
	if v := unsyncedMetric(t, j); v != 0 {
		t.Errorf("the metric says %v afterwards", v)
	}
	await(t, "another word", func() bool { return !told() })
	for _, stall := range strings.Split(log.String(), hangs)[1:] {
		if n := strings.Count(stall, goesOn); n != 1 {
			t.Errorf("a stall is told of, and %d times that it is over: %s", n, log.String())
		}
	}
	shut(t, j)
}

// unsyncedMetric is what the metric of that name says.
func unsyncedMetric(t *testing.T, j *Journal) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(j.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "clobd_journal_oldest_unsynced_seconds" {
			return f.Metric[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no such metric")
	return 0
}
