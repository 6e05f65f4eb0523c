//go:build linux

package journal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2/vfs"
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

// BenchmarkIndex folds a whole journal.
func BenchmarkIndex(b *testing.B) {
	const frames, each = 500, 100
	j := open(b, Options{Dir: b.TempDir(), Async: true})
	defer j.Close()
	m := newMaker(1)
	m.journal = j.ID
	m.write(b, j, frames, each)
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		if err := os.RemoveAll(filepath.Join(j.Dir, "index")); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		x, stop := run(b, j, IndexOptions{})
		if !x.History.Await(m.head.Sequence, soon) {
			b.Fatal("not caught up")
		}
		b.StopTimer()
		stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N*frames*each)/b.Elapsed().Seconds(), "commands/s")
}

// BenchmarkOrder looks orders up by id.
func BenchmarkOrder(b *testing.B) {
	j := open(b, Options{Dir: b.TempDir(), Async: true})
	defer j.Close()
	m := newMaker(1)
	m.journal = j.ID
	m.write(b, j, 200, 100)
	x, stop := run(b, j, IndexOptions{})
	defer stop()
	if !x.History.Await(m.head.Sequence, soon) {
		b.Fatal("not caught up")
	}
	var ids []engine.OrderID
	for id := range m.orders {
		ids = append(ids, id)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		id := ids[i%len(ids)]
		if o, known, err := x.History.Order(id); !known || err != nil || o.ID != id {
			b.Fatal(known, err)
		}
	}
}

// BenchmarkPastMiss asks for orders that were never placed, as the door does for every order.
func BenchmarkPastMiss(b *testing.B) {
	for _, rows := range []int{0, 100_000, 1_000_000} {
		if testing.Short() {
			rows /= 100
		}
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			j := open(b, Options{Dir: b.TempDir(), Async: true})
			defer j.Close()
			x, err := openIndex(j, IndexOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer x.Close()
			fill(b, x, rows)
			if rows > 0 {
				if err := x.db.Flush(); err != nil {
					b.Fatal(err)
				}
				fill(b, x, rows/100) // some are in a memtable
			}
			settle := time.Second
			if testing.Short() {
				settle = time.Millisecond
			}
			time.Sleep(settle)
			for x.db.Metrics().Compact.NumInProgress > 0 {
				time.Sleep(settle)
			}
			r := rand.New(rand.NewPCG(1, 99))
			ids := make([]engine.OrderID, 1<<14)
			for i := range ids {
				ids[i] = randomID(r)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				_, known, _, err := x.History.Past(ids[i&(len(ids)-1)])
				if known || err != nil {
					b.Fatal(known, err)
				}
			}
		})
	}
}

// BenchmarkFold folds frames that are in memory already, each into a batch of its own size: of one
// frame, as a node at half load does, and of many, as one that catches up.
func BenchmarkFold(b *testing.B) {
	for _, each := range []int{4, 16, 100} {
		for _, batch := range []int{1, 64} {
			b.Run(fmt.Sprintf("commands=%d/frames=%d", each, batch), func(b *testing.B) {
				const commands = 20_000
				m := newMaker(1)
				var all [][]byte
				for i := 0; i < commands; i += each {
					all = append(all, m.frame(each).Bytes)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					b.StopTimer()
					j := open(b, Options{Dir: b.TempDir(), Async: true})
					x, err := openIndex(j, IndexOptions{})
					if err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
					for i, f := range all {
						if err := x.fold.apply(f); err != nil {
							b.Fatal(err)
						}
						if i%batch == batch-1 || i == len(all)-1 {
							if err := x.fold.commit(); err != nil {
								b.Fatal(err)
							}
							x.History.publish(x.fold.at.sequence)
						}
					}
					b.StopTimer()
					shut(b, x)
					shut(b, j)
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*commands), "ns/command")
			})
		}
	}
}

// cpu is the processor time of this process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFollow writes 1,500 frames of 4 Commands a second, as a node at half load does, and
// reports the processor time of each Command with an index that follows, and without one.
func BenchmarkFollow(b *testing.B) {
	const each = 4
	frames := 3000
	if testing.Short() {
		frames = 300
	}
	for _, follows := range []bool{false, true} {
		name := "alone"
		if follows {
			name = "followed"
		}
		b.Run(name, func(b *testing.B) {
			var spent time.Duration
			for range b.N {
				b.StopTimer()
				m := newMaker(1)
				j := open(b, Options{Dir: "data", FS: vfs.NewMem(), Async: true})
				m.journal = j.ID
				m.write(b, j, 1, len(m.script))
				var sent []*engine.Frame
				for range frames {
					sent = append(sent, m.frame(each))
				}
				stop := func() {}
				if follows {
					_, stop = run(b, j, IndexOptions{})
				}
				before := cpu(b)
				b.StartTimer()
				for i := 0; i < frames; i += 3 {
					for _, f := range sent[i : i+3] {
						if err := j.Append(f); err != nil {
							b.Fatal(err)
						}
						if err := j.Wait(f.No); err != nil {
							b.Fatal(err)
						}
						time.Sleep(100 * time.Microsecond)
					}
					time.Sleep(time.Millisecond)
				}
				spent += cpu(b) - before
				b.StopTimer()
				stop()
				shut(b, j)
				b.StartTimer()
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*frames*each), "cpu-ns/command")
		})
	}
}
