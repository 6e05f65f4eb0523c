package simulator

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/journal"
	"clobd/journal/history"
	"clobd/scripts/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// patience bounds the wait for an expected event: far longer than needed, even on a slow machine
// that stops for seconds.
const patience = 3 * time.Minute

// left is a data folder after a run that ended in order, and the run to compare it with.
func left(t *testing.T, seed uint64, steps int) (*simulation, *pebbleDisk) {
	t.Helper()
	s := newSimulation(Options{Seed: seed, Steps: steps, Disk: PebbleDisk,
		Faults: AllFaults &^ (Flip | Full | Sync)})
	p := newPebble(s)
	s.disk = p.disk
	if err := s.find(s.run); err != nil {
		t.Fatal(err)
	}
	p.leave()
	return s, p
}

// again starts on a filesystem and compares everything with the run; it returns nil if all is the
// same. The second result reports whether the start succeeded.
func (p *pebbleDisk) again(on *vfs.MemFS) (err error, started bool) {
	defer p.leave()
	p.fs = on
	var refused error
	err = p.s.find(func() {
		var head engine.Head
		if head, refused = p.s.recover(); refused != nil {
			return
		}
		p.s.check(head == p.s.head && p.s.exchange.Digest() == head.Digest, "head %+v, want %+v", head,
			p.s.head)
		p.s.all()
		p.index()
	})
	return errors.Join(err, refused), refused == nil
}

// TestFlips flips single bits of all files of a data folder: journal, index, checkpoints, mark.
// Then a start refuses, repairs the damage or gives the same answers about every order and book, or
// the operator's check finds the damage.
func TestFlips(t *testing.T) {
	const folder = 1000 // flips of one folder
	seed, flips := setting.Seed(t, uint64(time.Now().UnixNano())), setting.Size(t, 200, 20)
	counts := map[string]int{}
	for n := 0; n < flips && counts["silent"] < 5; n += folder {
		flipped(t, seed+uint64(n), min(folder, flips-n), counts)
	}
	t.Logf("figures: flips=%d refused=%d same=%d found=%d silent=%d", flips, counts["refused"],
		counts["same"], counts["found"], counts["silent"])
	// Most flips hit bytes that nothing needs: of 20, none may count; of 200, some do.
	if counts["refused"] == 0 && flips >= 200 {
		t.Error("no flip was noticed")
	}
}

// flipped flips that many bits of one folder, one at a time.
func flipped(t *testing.T, seed uint64, flips int, counts map[string]int) {
	t.Helper()
	_, p := left(t, seed, 1000)
	whole, r, kinds := p.fs, rand.New(rand.NewPCG(seed, 9)), map[string]bool{}
	var all, names []string
	if err := p.files(dataFolder, &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if info, err := whole.Stat(name); err == nil && info.Size() > 0 {
			names = append(names, name)
			kinds[strings.Split(name, "/")[1]] = true
		}
	}
	if len(kinds) != 4 {
		t.Errorf("flipped is only in %v", kinds)
	}
	for range flips {
		name := names[r.IntN(len(names))]
		b, err := load(whole, name)
		if err != nil {
			t.Fatal(err)
		}
		at := r.IntN(8 * len(b))
		b[at/8] ^= 1 << (at % 8)
		err, started := p.again(changed(t, whole, name, b))
		switch {
		case err == nil:
			counts["same"]++
		case !started || strings.Contains(err.Error(), "cannot be read") ||
			strings.Contains(err.Error(), "checksum") || strings.Contains(err.Error(), "corruption"):
			counts["refused"]++
		case found(t, changed(t, whole, name, b)):
			counts["found"]++
		default:
			counts["silent"]++
			t.Errorf("SILENT: bit %d of %s: %v", at, name, err)
		}
	}
}

// changed copies a filesystem and replaces the content of one file.
func changed(t *testing.T, whole *vfs.MemFS, name string, b []byte) *vfs.MemFS {
	t.Helper()
	on := whole.CrashClone(vfs.CrashCloneCfg{})
	if err := store(on, name, b); err != nil {
		t.Fatal(err)
	}
	return on
}

// found reports whether the operator's check finds damage in a data folder.
func found(t *testing.T, on *vfs.MemFS) bool {
	t.Helper()
	o := quiet(on)
	o.ReadOnly = true
	j, err := journal.Open(o)
	if err != nil {
		return true
	}
	defer j.Close()
	v, err := j.Verify(t.Context(), journal.VerifyOptions{Fresh: func() *journal.State {
		b := view.NewBoard()
		return &journal.State{Seed: 1, Save: b.Save, Load: b.Load,
			Each: func(f *engine.Frame) error { b.Publish(f); return nil }}
	}})
	if err != nil {
		t.Fatal(err)
	}
	x, err := history.Verify(t.Context(), j, history.VerifyOptions{Last: v.Head.Frame,
		Index: history.Options{Log: o.Log}, Scratch: "scratch"})
	if err != nil {
		t.Fatal(err)
	}
	return len(v.Findings)+len(x.Findings) > 0
}

// TestFlipsAreFound: the operator's check accepts an unchanged folder, and finds a changed frame or
// index row.
func TestFlipsAreFound(t *testing.T) {
	seed := setting.Seed(t, uint64(time.Now().UnixNano()))
	_, p := left(t, seed, 300)
	for range 20 { // not every run writes a checkpoint
		if name, _ := p.longest(t, "/checkpoints/"); name != "" {
			break
		}
		seed++
		_, p = left(t, seed, 300)
	}
	if found(t, p.fs.CrashClone(vfs.CrashCloneCfg{})) {
		t.Error("something is wrong with a folder that nobody touched")
	}
	for _, part := range []string{"/journal/", "/index/", "/checkpoints/"} {
		name, b := p.longest(t, part)
		if name == "" {
			t.Fatalf("no file in %s", part)
		}
		if b[len(b)/3] ^= 1; !found(t, changed(t, p.fs, name, b)) {
			t.Errorf("a bit in the middle of %s is not noticed", name)
		}
	}
}

// longest returns the longest file of a part of the data folder, except files that only describe
// how the data were written.
func (p *pebbleDisk) longest(t *testing.T, part string) (name string, b []byte) {
	t.Helper()
	var names []string
	if err := p.files(dataFolder, &names); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if text, err := load(p.fs, n); err == nil && strings.Contains(n, part) &&
			!strings.Contains(n, "OPTIONS") && len(text) > len(b) {
			name, b = n, text
		}
	}
	return name, b
}

// TestTornTail cuts the log of an intact folder at bytes of its last three frames, at every byte if
// CLOBD_SIZE is large enough. A start must report the loss of acknowledged frames, and no part of a
// frame may remain.
func TestTornTail(t *testing.T) {
	seed, cuts := setting.Seed(t, uint64(time.Now().UnixNano())), setting.Size(t, 200, 20)
	on := vfs.NewCrashableMem()
	j, writer := pipe(t, on, nil)
	for n := range uint64(40) {
		if _, err := writer.Submit(deposit(n)); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // frames of several Commands
		calls := make([]*sequencer.Call, 60)
		commands := make([]engine.Command, len(calls))
		for i := range commands {
			commands[i] = *deposit(rand.Uint64())
		}
		if err := writer.EnterAll(commands, calls); err != nil {
			t.Fatal(err)
		}
		sequencer.WaitAll(calls, make([]engine.Receipt, len(calls)), make([]error, len(calls)))
	}
	if err := errors.Join(writer.Close(), j.Close()); err != nil {
		t.Fatal(err)
	}
	var frames [][]byte
	j = reopened(t, on)
	want, err := j.Recover(nil, func(f *engine.Frame) error {
		frames = append(frames, f.Bytes)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	shut(t, j)
	tail := 0
	for _, b := range frames[len(frames)-3:] {
		tail += len(b)
		for n := range b { // also without a database below
			if engine.DecodeFrame(b[:n], new(engine.Frame)) == nil {
				t.Fatalf("%d of %d bytes are a frame", n, len(b))
			}
		}
	}
	on = written(t, frames)
	log, b := newestLog(t, on)
	places := rand.New(rand.NewPCG(seed, 8)).Perm(min(tail+64, len(b)))
	refused := 0
	for _, back := range places[:min(cuts, len(places))] {
		clone := on.CrashClone(vfs.CrashCloneCfg{})
		if err := store(clone, log, b[:len(b)-back]); err != nil {
			t.Fatal(err)
		}
		if torn(t, clone, frames, want) {
			refused++
		}
	}
	t.Logf("figures: cuts=%d of=%d refused=%d", min(cuts, len(places)), len(places), refused)
	if refused == 0 {
		t.Error("no cut was noticed")
	}
}

// written is an intact folder whose log holds all frames: a start would move them into a table.
func written(t *testing.T, frames [][]byte) *vfs.MemFS {
	t.Helper()
	on := vfs.NewCrashableMem()
	j := reopened(t, on)
	if _, err := j.Recover(nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, b := range frames {
		f := new(engine.Frame)
		if err := engine.DecodeFrame(b, f); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.Append(f), j.Wait(f.No)); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, j)
	return on
}

// torn starts on a cut log: either all frames are there, or the start reports the loss up to the
// last frame. It returns true for a reported loss.
func torn(t *testing.T, on *vfs.MemFS, frames [][]byte, want engine.Head) bool {
	t.Helper()
	j, err := journal.Open(quiet(on))
	if err != nil {
		return true // the database itself noticed
	}
	defer shut(t, j)
	found := 0
	head, err := j.Recover(nil, func(f *engine.Frame) error {
		if !slices.Equal(f.Bytes, frames[found]) {
			t.Fatalf("frame %d is another one", f.No)
		}
		found++
		return nil
	})
	var loss *journal.LossError
	switch {
	case err == nil && head == want:
		return false
	case err == nil:
		t.Fatalf("SILENT: it starts with %d of %d frames", found, len(frames))
	case !errors.As(err, &loss) || loss.Last() != want.Sequence || loss.First() != head.Sequence+1:
		t.Fatalf("%d of %d frames: %v", found, len(frames), err)
	}
	return true
}

// newestLog returns the name and content of the journal's newest log.
func newestLog(t *testing.T, on *vfs.MemFS) (string, []byte) {
	t.Helper()
	names, err := on.List(dataFolder + "/journal")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if strings.HasSuffix(name, ".log") {
			full := dataFolder + "/journal/" + name
			b, err := load(on, full)
			if err != nil {
				t.Fatal(err)
			}
			return full, b
		}
	}
	t.Fatalf("no log in %v", names)
	return "", nil
}

// quiet returns the options of a journal that logs nothing.
func quiet(on vfs.FS) journal.Options {
	return journal.Options{Dir: dataFolder, FS: on, Words: io.Discard, Exit: func(int) {},
		Log: slog.New(slog.DiscardHandler)}
}

func reopened(t *testing.T, on vfs.FS) *journal.Journal {
	t.Helper()
	j, err := journal.Open(quiet(on))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func shut(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// deposit returns a Command that succeeds and differs from all others.
func deposit(n uint64) *engine.Command {
	c := &engine.Command{Kind: engine.Deposit, Address: engine.Address{1}, Cash: 1}
	binary.BigEndian.PutUint64(c.ID[:], n+1)
	return c
}

// pipe is a running Sequencer on a journal, with goroutines and clocks. It calls exit where the
// process would end.
func pipe(t *testing.T, on vfs.FS, exit func(int)) (*journal.Journal, *sequencer.Sequencer) {
	t.Helper()
	o := quiet(on)
	if exit != nil {
		o.Exit = exit
	}
	j, err := journal.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	x, b := engine.NewExchange(1), view.NewBoard()
	head, err := j.Recover(x, func(f *engine.Frame) error { b.Publish(f); return nil })
	if err != nil {
		t.Fatal(err)
	}
	writer, err := sequencer.New(x, b, j, sequencer.Options{Head: head, Ring: 64, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	go writer.Run()
	return j, writer
}

// TestDiskFails lets the n-th sync, or write, of the log fail under load. The process is told to
// end, a power cut loses nothing that was acknowledged, and the next start is clean.
func TestDiskFails(t *testing.T) {
	seed := setting.Seed(t, uint64(time.Now().UnixNano()))
	for what, rounds := range map[string]int{"sync": setting.Size(t, 10, 1), "full": setting.Size(t, 4, 1)} {
		r, slowest, acked := rand.New(rand.NewPCG(seed, 7)), time.Duration(0), 0
		for round := range rounds {
			took, n := diskFails(t, what, r)
			slowest, acked = max(slowest, took), acked+n
			if t.Failed() {
				t.Fatalf("%s, round %d", what, round)
			}
		}
		t.Logf("figures: %s=%d %s_acknowledged=%d %s_slowest_ms=%d", what, rounds, what, acked, what,
			slowest.Milliseconds())
	}
}

func diskFails(t *testing.T, what string, r *rand.Rand) (took time.Duration, acked int) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	var left atomic.Int64
	var failedAt atomic.Int64
	left.Store(1 << 40)
	on := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		log := strings.HasSuffix(op.Path, ".log")
		sync := op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSync
		if !log || what == "sync" && !sync || what == "full" && op.Kind != errorfs.OpFileWrite ||
			left.Add(-1) >= 0 {
			return nil
		}
		failedAt.CompareAndSwap(0, time.Now().UnixNano())
		if what == "full" {
			return syscall.ENOSPC
		}
		return syscall.EIO
	}))
	exited := make(chan int, 8)
	_, writer := pipe(t, on, func(code int) { exited <- code })
	left.Store(int64(r.IntN(200)))
	var last atomic.Uint64
	var group sync.WaitGroup
	for k := range uint64(8) {
		group.Go(func() {
			for n := uint64(0); ; n++ {
				receipt, err := writer.Submit(deposit(k<<32 | n))
				if errors.Is(err, sequencer.ErrBusy) {
					continue
				} else if err != nil {
					return
				}
				for seen := last.Load(); seen < uint64(receipt.Sequence); seen = last.Load() {
					last.CompareAndSwap(seen, uint64(receipt.Sequence))
				}
			}
		})
	}
	select {
	case code := <-exited:
		took = time.Since(time.Unix(0, failedAt.Load()))
		if code != journal.ExitJournal {
			t.Errorf("%s: exit %d", what, code)
		}
	case <-time.After(patience):
		t.Fatalf("%s: the process does not end", what)
	}
	group.Wait()
	keep := 50 * r.IntN(3)
	after := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keep, RNG: r})
	j := reopened(t, after)
	defer shut(t, j)
	head, err := j.Recover(engine.NewExchange(2), nil)
	if err != nil || uint64(head.Sequence) < last.Load() {
		t.Errorf("LOST: %s, %d %% kept: Sequence %d was acknowledged, %d are there: %v", what, keep,
			last.Load(), head.Sequence, err)
	}
	return took, int(last.Load())
}

// TestStall lets the disk hang for a while. Meanwhile the full ring refuses Commands and memory
// stays bounded; afterwards the node goes on, and nothing is lost.
func TestStall(t *testing.T) {
	rounds, hang := setting.Size(t, 1, 1), 5*time.Second
	if os.Getenv("CLOBD_SIZE") == "" {
		hang = 0 // until enough has come
	}
	slowest, back := time.Duration(0), time.Duration(0)
	for range rounds {
		busy, recovered := stall(t, hang)
		slowest, back = max(slowest, busy), max(back, recovered)
	}
	t.Logf("figures: stalls=%d stall_ms=%d busy_slowest_us=%d back_slowest_ms=%d", rounds,
		hang.Milliseconds(), slowest.Microseconds(), back.Milliseconds())
}

func stall(t *testing.T, hang time.Duration) (busy, back time.Duration) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	var hung atomic.Pointer[chan struct{}]
	on := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if wait := hung.Load(); wait != nil && strings.HasSuffix(op.Path, ".log") &&
			op.Kind == errorfs.OpFileSyncData {
			<-*wait
		}
		return nil
	}))
	j, writer := pipe(t, on, nil)
	if _, err := writer.Submit(deposit(0)); err != nil {
		t.Fatal(err)
	}
	healed := make(chan struct{})
	hung.Store(&healed)
	var group sync.WaitGroup
	var answered, refused atomic.Int64
	for k := range uint64(100) { // more than the ring holds
		group.Go(func() {
			if _, err := writer.Submit(deposit(k + 1)); err == nil {
				answered.Add(1)
			} else if errors.Is(err, sequencer.ErrBusy) {
				refused.Add(1)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	busy, calls := press(t, writer, hang)
	begun := time.Now()
	hung.Store(nil)
	close(healed)
	for {
		if _, err := writer.Submit(deposit(1 << 40)); err == nil {
			break
		} else if !errors.Is(err, sequencer.ErrBusy) || time.Since(begun) > patience {
			t.Fatal(err)
		}
	}
	back = time.Since(begun)
	group.Wait()
	for _, call := range calls {
		if _, err := call.Wait(); err != nil {
			t.Errorf("entered in the stall: %v", err)
		}
	}
	if answered.Load()+refused.Load() != 100 {
		t.Errorf("%d answered, %d refused of 100", answered.Load(), refused.Load())
	}
	if err := errors.Join(writer.Close(), j.Close()); err != nil {
		t.Error(err)
	}
	return busy, back
}

// press enters Commands while the disk hangs, at least for a given time and until enough of them
// find the ring full. It returns the longest time that a refusal took, and the Calls of the
// accepted Commands.
func press(t *testing.T, writer *sequencer.Sequencer, hang time.Duration) (
	busy time.Duration, calls []*sequencer.Call) {
	t.Helper()
	const least = 500
	var before, after runtime.MemStats
	runtime.GC() // what is garbage does not count
	runtime.ReadMemStats(&before)
	started, full := time.Now(), 0
	for n := uint64(1000); full < least || time.Since(started) < hang; n++ {
		begun := time.Now()
		call, err := writer.Enter(deposit(n))
		if took := time.Since(begun); errors.Is(err, sequencer.ErrBusy) {
			busy = max(busy, took)
			full++
		} else if err == nil {
			calls = append(calls, call)
		}
		if time.Since(started) > patience {
			t.Errorf("%d Commands got in, %d found the ring full", len(calls), full)
			break
		}
		time.Sleep(100 * time.Microsecond)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("%d bytes more in a stall", grown)
	}
	return busy, calls
}
