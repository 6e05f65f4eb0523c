//go:build linux

package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkIndex folds a whole journal.
func BenchmarkIndex(b *testing.B) {
	const frames, each = 500, 100
	j := open(b, journal.Options{Dir: b.TempDir(), Async: true})
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
		x, stop := run(b, j, Options{})
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
	j := open(b, journal.Options{Dir: b.TempDir(), Async: true})
	defer j.Close()
	m := newMaker(1)
	m.journal = j.ID
	m.write(b, j, 200, 100)
	x, stop := run(b, j, Options{})
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
			j := open(b, journal.Options{Dir: b.TempDir(), Async: true})
			defer j.Close()
			x, err := openIndex(j, Options{})
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
					j := open(b, journal.Options{Dir: b.TempDir(), Async: true})
					x, err := openIndex(j, Options{})
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
				j := open(b, journal.Options{Dir: "data", FS: vfs.NewMem(), Async: true})
				m.journal = j.ID
				m.write(b, j, 1, len(m.script))
				var sent []*engine.Frame
				for range frames {
					sent = append(sent, m.frame(each))
				}
				stop := func() {}
				if follows {
					_, stop = run(b, j, Options{})
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

// BenchmarkChurn folds batches of 100 Commands, as a node does under load, and reports the
// processor time of each Command with the flushes and compactions that it causes.
func BenchmarkChurn(b *testing.B) {
	commands, batch := 200_000, 100
	if testing.Short() {
		commands /= 100
	}
	m := newMaker(1)
	var all [][]byte
	for range commands / batch {
		all = append(all, m.frame(batch).Bytes)
	}
	var spent time.Duration
	var flushes, written float64
	for range b.N {
		j := open(b, journal.Options{Dir: b.TempDir(), Async: true})
		x, err := openIndex(j, Options{})
		if err != nil {
			b.Fatal(err)
		}
		before := cpu(b)
		for _, bytes := range all {
			err := x.fold.apply(bytes)
			if err == nil {
				err = x.fold.commit()
			}
			if err != nil {
				b.Fatal(err)
			}
			x.History.publish(x.fold.at.sequence)
			x.flush()
		}
		if err := x.makeDurable(); err != nil {
			b.Fatal(err)
		}
		for x.db.Metrics().Compact.NumInProgress > 0 {
			time.Sleep(time.Millisecond)
		}
		spent += cpu(b) - before
		d := x.db.Metrics()
		flushes += float64(d.Flush.Count)
		for i := range d.Levels {
			written += float64(d.Levels[i].TableBytesFlushed + d.Levels[i].TableBytesCompacted)
		}
		shut(b, x)
		shut(b, j)
	}
	n := float64(b.N * commands)
	b.ReportMetric(float64(spent.Nanoseconds())/n, "cpu-ns/command")
	b.ReportMetric(written/n, "written-B/command")
	b.ReportMetric(flushes/float64(b.N), "flushes")
}
