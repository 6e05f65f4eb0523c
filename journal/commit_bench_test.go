//go:build linux

package journal

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"clobd/engine"
)

// BenchmarkCommit makes batches of Commands durable, and beside it, in turns of the same benchmark,
// writes the same bytes to a preallocated file: with one write and fdatasync a batch (raw), and
// with one a Command (single). ours/raw and ours/single are medians of the rates' ratios in each
// turn while 4 batches are in flight. The latencies are of one batch at a time, from before its
// first Append until all of it is durable. B/command is what the journal's tables hold in the end,
// evidence included.
//
// A batch is cut into frames, which hold no more than 256 Commands.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkCommit(b, n) })
	}
}

// commitRounds is how many turns a benchmark has, commitWarm how many bytes it writes before them.
const (
	commitRounds = 20
	commitWarm   = 160 << 20
)

// commitTurns is commitRounds, or few of them with -short.
func commitTurns() int {
	if testing.Short() {
		return 2
	}
	return commitRounds
}

// benchmarkCommit is BenchmarkCommit with batches of n Commands.
func benchmarkCommit(b *testing.B, n int) {
	dir := b.TempDir()
	j, m := open(b, Options{Dir: dir}), newMaker(1)
	m.write(b, j, 1, len(m.script))
	before := m.warm(b, j)
	batches, parts := max(b.N/commitRounds, 4), (n+engine.FrameCommands-1)/engine.FrameCommands
	var rates [3][]float64 // ours, raw, single
	var waits [2][]float64 // ours, raw
	raw := commitFile(b, filepath.Join(b.TempDir(), "raw"))
	all := 0
	turn := func() (frames []*engine.Frame) {
		for range batches * parts {
			frames = append(frames, m.frame(n/parts))
		}
		all += batches * n
		return frames
	}
	b.ResetTimer()
	for range commitTurns() {
		b.StopTimer()
		frames, alone := turn(), turn()
		runtime.GC()
		b.StartTimer()
		start := time.Now()
		pipeline(b, j, frames, 4*parts)
		rates[0] = append(rates[0], float64(batches*n)/time.Since(start).Seconds())
		b.StopTimer()
		start = time.Now()
		for i := range batches {
			raw.write(b, frames[i*parts:(i+1)*parts], 1)
		}
		rates[1] = append(rates[1], float64(batches*n)/time.Since(start).Seconds())
		start = time.Now()
		some := frames[:min(parts, len(frames))]
		raw.write(b, some, len(some)*(n/parts))
		rates[2] = append(rates[2], float64(len(some)*(n/parts))/time.Since(start).Seconds())
		for i := range batches {
			batch := alone[i*parts : (i+1)*parts]
			start = time.Now()
			pipeline(b, j, batch, parts)
			waits[0] = append(waits[0], float64(time.Since(start).Microseconds()))
			start = time.Now()
			raw.write(b, batch, 1)
			waits[1] = append(waits[1], float64(time.Since(start).Microseconds()))
		}
		b.StartTimer()
	}
	b.StopTimer()
	shut(b, j)
	mustHold(b, dir, m.head)
	at := func(of []float64, part float64) float64 {
		slices.Sort(of)
		return of[int(part*float64(len(of)-1))]
	}
	for i, name := range []string{"raw", "single"} { // of each turn, for the disk changes its mind
		var ratios []float64
		for turn, ours := range rates[0] {
			ratios = append(ratios, ours/rates[i+1][turn])
		}
		b.ReportMetric(at(ratios, 0.5), "ours/"+name)
	}
	b.ReportMetric(at(rates[0], 0.5), "commands/s")
	for i, name := range []string{"", "raw-"} {
		b.ReportMetric(at(waits[i], 0.5), name+"p50-us")
		b.ReportMetric(at(waits[i], 0.99), name+"p99-us")
	}
	b.ReportMetric(float64(tablesIn(b, dir))/float64(all+int(before)), "B/command")
}

// warm writes frames until the journal has had logs of all sizes of its first minutes, and says how
// many Commands there are. With -short there is less of all.
func (m *maker) warm(b *testing.B, j *Journal) engine.Sequence {
	wanted := commitWarm
	if testing.Short() {
		wanted /= 16
	}
	for made := 0; made < wanted; {
		f := m.frame(engine.FrameCommands)
		made += len(f.Bytes)
		pipeline(b, j, []*engine.Frame{f}, 2)
	}
	return m.head.Sequence
}

// tablesIn is how many bytes the tables of the journal in dir have.
func tablesIn(b *testing.B, dir string) (size int64) {
	walk := func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".sst" {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	}
	err := filepath.WalkDir(filepath.Join(dir, "journal"), walk)
	if err != nil {
		b.Fatal(err)
	}
	return size
}

// commitRaw is a preallocated file that is written round and round, and synced like a log.
type commitRaw struct {
	f   *os.File
	at  int64
	buf []byte
}

// commitSize is how large it is.
const commitSize = 64 << 20

func commitFile(b *testing.B, name string) *commitRaw {
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	zeros := make([]byte, 1<<20) // written, not only reserved: no extents are converted later
	for at := int64(0); at < commitSize; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros, at); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	return &commitRaw{f: f}
}

// write writes the bytes of the frames in so many parts, each of which it syncs.
func (r *commitRaw) write(b *testing.B, frames []*engine.Frame, parts int) {
	r.buf = r.buf[:0]
	for _, f := range frames {
		r.buf = append(r.buf, f.Bytes...)
	}
	for part := range slices.Chunk(r.buf, (len(r.buf)+parts-1)/parts) {
		if r.at+int64(len(part)) > commitSize {
			r.at = 0
		}
		if _, err := r.f.WriteAt(part, r.at); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(r.f.Fd())); err != nil {
			b.Fatal(err)
		}
		r.at += int64(len(part))
	}
}
