package journal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"
)

// firstLog is the size of the first spare.
const firstLog = 256 << 10

// TestLeftSpare: what a process that was killed left of its spare is no part of the journal: it is
// verified, copied and rescued as if the file were not there. The next Open replaces it, or, where
// there is no room for one, removes it.
func TestLeftSpare(t *testing.T) {
	mem := vfs.NewMem()
	j, m := open(t, Options{Dir: "data", FS: mem}), newMaker(3)
	m.write(t, j, 20, 50)
	shut(t, j)
	const spare = "data/journal/spare"
	stray := newMaker(4).frame(50).Bytes // of another journal, to be found by nobody
	leave := func() {
		if err := writeWhole(mem, spare, bytes.Repeat(stray, 1+2*firstLog/len(stray))); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	loss, err := Diagnose(t.Context(), rescuing(Options{Dir: "data", FS: mem, Log: quiet()}))
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
			mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 16 * firstLog, TotalBytes: 1 << 40})
		}
		j = open(t, Options{Dir: "data", FS: mem, spares: true})
		await(t, "another spare, or none", func() bool {
			about, err := mem.Stat(spare)
			return small && err != nil || !small && err == nil && about.Size() == 2*firstLog*17/16
		})
		m.write(t, j, 1, 50)
		if _, err := j.Backup(fmt.Sprint("copy", small), nil); err != nil {
			t.Error(err)
		}
		if _, err := mem.Stat(fmt.Sprintf("copy%v/journal/spare", small)); err == nil {
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
		if op.Kind == errorfs.OpFileSyncData && strings.HasSuffix(op.Path, ".log") {
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
	await(t, "a word", func() bool { return told() && j.Unsynced() >= disk.StallTime })
	if v := metric(t, j, "clobd_journal_oldest_unsynced_seconds"); v < disk.StallTime.Seconds() {
		t.Errorf("the metric says %v", v)
	}
	if age := j.Unsynced(); age < disk.StallTime || age > time.Since(begun) {
		t.Errorf("it has waited for %v, and began %v ago", age, time.Since(begun))
	}
	time.Sleep(400 * time.Millisecond) // two looks of the patrol
	hang.Unlock()
	if err := errors.Join(j.Wait(sent.No), j.Wait(next.No)); err != nil {
		t.Fatal(err)
	}
	if age := j.Unsynced(); age != 0 {
		t.Errorf("nothing waits any more, for %v", age)
	}
	if v := metric(t, j, "clobd_journal_oldest_unsynced_seconds"); v != 0 {
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

// metric is what the metric of that name says.
func metric(t *testing.T, j *Journal, name string) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(j.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.Metric[0].GetGauge().GetValue() + f.Metric[0].GetCounter().GetValue()
		}
	}
	t.Fatal("there is no such metric")
	return 0
}
