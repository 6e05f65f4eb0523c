//go:build linux

package journal

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

var restoreFrames = flag.Int("restored", 2000, "frames of 100 commands of BenchmarkRestore")

// BenchmarkRestore opens a journal of so many Commands with a checkpoint and makes the state of it:
// with all behind the checkpoint (end), and with the last tenth after it; with all files in the
// page cache, as after the end of a process (warm), and with none, as after that of a machine
// (cold). The log has become tables before, which are not compacted. restore/scan compares that, by
// medians of turns, with a bare Pebble that is opened with the same options and whose values are
// all read.
func BenchmarkRestore(b *testing.B) {
	if testing.Short() {
		*restoreFrames /= 10
	}
	for name, after := range map[string]int{"end": 0, "tenth": *restoreFrames / 10} {
		b.Run(name, func(b *testing.B) {
			o := Options{Dir: b.TempDir(), Async: true, Log: quiet()}
			head := restorable(b, o, after)
			for _, cold := range []bool{false, true} {
				b.Run(map[bool]string{false: "warm", true: "cold"}[cold], func(b *testing.B) {
					benchmarkRestore(b, o, cold, func(r *Restored) bool {
						return r.Head == head && r.From != nil && r.Frames == uint64(after)
					})
				})
			}
		})
	}
}

// restorable makes a journal with a checkpoint and so many frames after it.
func restorable(b *testing.B, o Options, after int) engine.Head {
	const each = 100
	j, m := open(b, o), newMaker(1)
	m.write(b, j, *restoreFrames-after, each)
	if _, err := j.Checkpoint(context.Background(), &State{Exchange: m.x}, m.head); err != nil {
		b.Fatal(err)
	}
	m.write(b, j, after, each)
	shut(b, j)
	shut(b, open(b, o)) // Pebble's log becomes tables, once
	return m.head
}

// benchmarkRestore is BenchmarkRestore with a journal that is there.
func benchmarkRestore(b *testing.B, o Options, cold bool, good func(*Restored) bool) {
	var restores, scans []time.Duration
	begin := func() time.Time {
		runtime.GC()
		if cold {
			forget(b, o.Dir)
		}
		return time.Now()
	}
	for b.Loop() {
		start := begin()
		j, err := Open(o)
		if err != nil {
			b.Fatal(err)
		}
		r, err := j.Restore(context.Background(), func() *State { return &State{Seed: 1} })
		if err != nil || !good(r) {
			b.Fatal(r, err)
		}
		restores = append(restores, time.Since(start))
		shut(b, j)
		r = nil // a process that starts has no such heap for the collector to walk
		bare := j.Options.pebbleOptions()
		bare.Logger = j.guard
		start = begin()
		if j.db, err = pebble.Open(j.Path, bare); err != nil {
			b.Fatal(err)
		}
		scanAll(b, j, *restoreFrames)
		scans = append(scans, time.Since(start))
		if err := j.db.Close(); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(restores)
	slices.Sort(scans)
	restore, scan := restores[len(restores)/2].Seconds(), scans[len(scans)/2].Seconds()
	b.ReportMetric(restore/scan, "restore/scan")
	b.ReportMetric(restore*1e3, "ms/restore")
	b.ReportMetric(scan*1e3, "ms/scan")
}

// forget takes all files of a folder out of the page cache.
func forget(b *testing.B, dir string) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		const dontNeed = 4 // POSIX_FADV_DONTNEED, which spares what is not written back
		err = f.Sync()
		if _, _, no := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); no != 0 {
			err = errors.Join(err, no)
		}
		return errors.Join(err, f.Close())
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkBesideCheckpoint sends a frame of 20 Commands every 2 ms, a small part of what the
// journal can do, and measures Apply and the time until the frame is durable, in turns with and
// without a checkpoint being written by somebody else all the time. The ratios are of medians, and
// of the 90th percentile of the commits, while it is written to while it is not.
func BenchmarkBesideCheckpoint(b *testing.B) {
	const each = 20
	turn := 400 * time.Millisecond
	if testing.Short() {
		turn /= 10
	}
	j, m := open(b, Options{Dir: b.TempDir()}), newMaker(1)
	defer shut(b, j)
	m.write(b, j, 600, 256)
	s, head := twin(b, m.x), m.head
	var apply, commit [2][]time.Duration
	var written atomic.Int64
	for round := range 2 * b.N * 5 {
		with := round % 2
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for with == 1 && ctx.Err() == nil {
				c := &Checkpoint{Head: head}
				c, err := j.save(ctx, s, c, 64<<20)
				if err == nil {
					written.Add(c.Bytes)
				} else if ctx.Err() == nil {
					b.Error(err)
					return
				}
			}
		}()
		tick := time.NewTicker(2 * time.Millisecond)
		late := func() bool { return with == 1 && written.Load() == 0 && !b.Failed() }
		for start := time.Now(); time.Since(start) < turn || late(); {
			<-tick.C
			a, c := m.timed(b, j, each)
			apply[with], commit[with] = append(apply[with], a), append(commit[with], c)
		}
		tick.Stop()
		stop()
		<-done
	}
	if written.Load() == 0 {
		b.Fatal("nothing was written")
	}
	at := func(of []time.Duration, part float64) float64 {
		slices.Sort(of)
		return float64(of[int(part*float64(len(of)-1))].Nanoseconds())
	}
	b.ReportMetric(at(apply[0], 0.5)/each, "apply-ns")
	b.ReportMetric(at(apply[1], 0.5)/at(apply[0], 0.5), "apply-ratio")
	b.ReportMetric(at(commit[0], 0.9)/1e3, "commit-p90-us")
	b.ReportMetric(at(commit[1], 0.9)/at(commit[0], 0.9), "commit-p90-ratio")
	b.ReportMetric(at(commit[1], 0.5)/at(commit[0], 0.5), "commit-p50-ratio")
	b.ReportMetric(float64(written.Load())/(float64(b.N)*5*turn.Seconds())/1e6, "MB/s")
}

// twin is a State of the same.
func twin(b *testing.B, x *engine.Exchange) *State {
	var chunks [][]byte
	err := x.Save(func(c []byte) error { chunks = append(chunks, bytes.Clone(c)); return nil })
	if err != nil {
		b.Fatal(err)
	}
	y, _, err := engine.Load(2, func() ([]byte, error) {
		if len(chunks) == 0 {
			return nil, io.EOF
		}
		c := chunks[0]
		chunks = chunks[1:]
		return c, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return &State{Exchange: y}
}

// timed makes, appends and waits for a frame of n Commands, and says how long all its Apply calls
// took and how long it took from the first of them until it was durable.
func (m *maker) timed(b *testing.B, j *Journal, n int) (apply, commit time.Duration) {
	f := &engine.Frame{Engine: engine.Version, Epoch: 1, No: m.head.Frame + 1,
		First: m.head.Sequence + 1, Time: makerTime + engine.Time(m.head.Frame) + m.now}
	for range n {
		f.Commands = append(f.Commands, m.command())
	}
	start := time.Now()
	for i := range f.Commands {
		f.Events = m.x.Apply(&f.Commands[i], f.First+engine.Sequence(i), f.Time, f.Events)
		f.Ends = append(f.Ends, uint32(len(f.Events)))
	}
	apply = time.Since(start)
	f.Digest = m.x.Digest()
	f.Encode(m.head.Hash)
	if err := j.Append(f); err != nil {
		b.Fatal(err)
	}
	if err := j.Wait(f.No); err != nil {
		b.Fatal(err)
	}
	commit = time.Since(start)
	m.head = f.Head()
	for i := range f.Commands {
		m.note(&f.Commands[i], f.EventsOf(i))
	}
	return apply, commit
}
