//go:build linux

package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"clobd/engine"
)

// BenchmarkAppend appends frames with 4 in flight, and beside it, in turns of the same benchmark,
// writes the same bytes to a preallocated file with one fdatasync each. raw/ours is the share of
// that floor's time: above 1 the journal is faster than it, because its syncs overlap.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 100, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			j := open(b, Options{Dir: dir})
			m := newMaker(1)
			m.write(b, j, 1, len(m.script))
			sent := make([]*engine.Frame, b.N)
			for i := range sent {
				sent[i] = m.frame(n)
			}
			raw := openRaw(b, filepath.Join(dir, "raw"), sent)
			var ours, floor time.Duration
			b.ResetTimer()
			for from := 0; from < b.N; from += 256 {
				some := sent[from:min(from+256, b.N)]
				start := time.Now()
				pipeline(b, j, some, 4)
				ours += time.Since(start)
				b.StopTimer()
				floor += raw.write(b, some)
				b.StartTimer()
			}
			b.StopTimer()
			b.ReportMetric(float64(n*b.N)/ours.Seconds(), "commands/s")
			b.ReportMetric(float64(n*b.N)/floor.Seconds(), "raw-commands/s")
			b.ReportMetric(floor.Seconds()/ours.Seconds(), "raw/ours")
			shut(b, j)
			mustHold(b, dir, m.head)
		})
	}
}

// pipeline appends frames with so many in flight and waits for all of them.
func pipeline(b *testing.B, j *Journal, frames []*engine.Frame, most int) {
	flight := make(chan uint64, most-1) // one more is in the waiter's hands
	done := make(chan error, 1)
	go func() {
		for no := range flight {
			if err := j.Wait(no); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for _, f := range frames {
		if err := j.Append(f); err != nil {
			b.Fatal(err)
		}
		flight <- f.No
	}
	close(flight)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// mustHold checks that the journal in dir ends with head.
func mustHold(b *testing.B, dir string, head engine.Head) {
	j := open(b, Options{Dir: dir})
	if j.head != head {
		b.Fatalf("the journal ends with %+v, want %+v", j.head, head)
	}
	shut(b, j)
}

// rawFile is a preallocated file, written and synced like a log.
type rawFile struct {
	f  *os.File
	at int64
}

func openRaw(b *testing.B, name string, frames []*engine.Frame) *rawFile {
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	size := int64(0)
	for _, frame := range frames {
		size += int64(len(frame.Bytes))
	}
	zeros := make([]byte, 1<<20) // written, not only reserved: no extents are converted later
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros, at); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	return &rawFile{f: f}
}

// write writes and syncs each frame and says how long it took.
func (r *rawFile) write(b *testing.B, frames []*engine.Frame) time.Duration {
	start := time.Now()
	for _, f := range frames {
		if _, err := r.f.WriteAt(f.Bytes, r.at); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(r.f.Fd())); err != nil {
			b.Fatal(err)
		}
		r.at += int64(len(f.Bytes))
	}
	return time.Since(start)
}

// BenchmarkRecover opens a journal of frames of 100 Commands and replays it. recover/scan compares
// that with opening it and reading all values, and nothing else.
func BenchmarkRecover(b *testing.B) {
	const each = 100
	frames := 1000
	if testing.Short() {
		frames = 100
	}
	o := Options{Dir: b.TempDir(), Async: true, Log: quiet()}
	j := open(b, o)
	m := newMaker(1)
	m.write(b, j, frames, each)
	shut(b, j)
	shut(b, open(b, o)) // Pebble's log becomes tables, once
	timed := func(work func(j *Journal)) time.Duration {
		start := time.Now()
		j, err := Open(o)
		if err != nil {
			b.Fatal(err)
		}
		work(j)
		took := time.Since(start)
		shut(b, j)
		return took
	}
	var scan, replay, all time.Duration
	b.ResetTimer()
	for range b.N {
		all += timed(func(j *Journal) {
			start := time.Now()
			head, err := j.Recover(engine.NewExchange(1), nil)
			if err != nil || head != m.head {
				b.Fatal(head, err)
			}
			replay += time.Since(start)
		})
		scan += timed(func(j *Journal) { scanAll(b, j, frames*each) })
	}
	b.ReportMetric(float64(b.N*frames*each)/replay.Seconds(), "commands/s")
	b.ReportMetric(all.Seconds()/scan.Seconds(), "recover/scan")
}

// scanAll reads all values, at least least bytes, once.
func scanAll(b *testing.B, j *Journal, least int) {
	it, err := j.db.NewIter(frameBounds(1))
	if err != nil {
		b.Fatal(err)
	}
	n, buf := 0, make([]byte, 0, 1<<20)
	for ok := it.First(); ok; ok = it.Next() {
		buf = append(buf[:0], it.Value()...)
		n += len(buf)
	}
	if err := it.Close(); err != nil || n < least {
		b.Fatal(n, err)
	}
}

// BenchmarkReplay is Recover without the disk: ApplyFrame on frames that are decoded already, the
// floor of any recovery.
func BenchmarkReplay(b *testing.B) {
	const frames, each = 200, 100
	m := newMaker(1)
	var all [frames]*engine.Frame
	for i := range all {
		all[i] = m.frame(each)
	}
	b.ResetTimer()
	for range b.N {
		x := engine.NewExchange(1)
		for _, f := range all {
			if err := x.ApplyFrame(f); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*frames*each)/b.Elapsed().Seconds(), "commands/s")
}
