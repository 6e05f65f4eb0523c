package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// extras stand for what is built beside the Exchange: they remember what no Exchange does.
type extras struct {
	frames, events uint64
	last           engine.Hash
}

// state is a State with extras.
func (a *extras) state() *State {
	*a = extras{}
	return &State{Seed: rand.Uint64(),
		Each: func(f *engine.Frame) error {
			a.frames, a.events, a.last = a.frames+1, a.events+uint64(len(f.Events)), f.Hash
			return nil
		},
		Save: func(sink func([]byte) error) error {
			p := engine.NewPacker(sink)
			p.Uint(a.frames)
			p.Uint(a.events)
			p.Bytes(a.last[:])
			return p.Close(0)
		},
		Load: func(next func() ([]byte, error)) error {
			u := engine.NewUnpacker(next)
			a.frames, a.events = u.Uint(), u.Uint()
			u.Bytes(a.last[:])
			_, err := u.Close()
			return err
		},
	}
}

// fresh is a State that nobody looks at.
func fresh() *State { return new(extras).state() }

// follow starts a Follower, and end stops it.
func follow(t testing.TB, j *Journal, o FollowerOptions) (f *Follower, end func()) {
	t.Helper()
	if o.Fresh == nil {
		o.Fresh = fresh
	}
	f, err := j.Follow(o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- f.Run() }()
	return f, func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		f.Close(ctx)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// mustRestore restores, and holds what comes of it against the maker: Digest, beside, and what the
// next frames do.
func mustRestore(t testing.TB, j *Journal, m *maker, want extras) *Restored {
	t.Helper()
	var a extras
	r, err := j.Restore(context.Background(), a.state)
	if err != nil {
		t.Fatal(err)
	}
	if r.Head != m.head || r.State.Exchange.Digest() != m.x.Digest() || a != want {
		t.Fatalf("restored %+v with %+v, want %+v with %+v", r.Head, a, m.head, want)
	}
	return r
}

// reopen opens without recovering.
func reopen(t testing.TB, on vfs.FS) *Journal {
	t.Helper()
	j, err := Open(Options{Dir: "data", FS: on, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// checkpointed makes a journal with two checkpoints and some frames after the newer one.
func checkpointed(t testing.TB, on vfs.FS) (*maker, extras) {
	t.Helper()
	m, j := newMaker(1), open(t, Options{Dir: "data", FS: on})
	for range 2 {
		_, end := follow(t, j, FollowerOptions{})
		m.write(t, j, 30, 20)
		end()
	}
	m.write(t, j, 10, 20)
	shut(t, j)
	j = reopen(t, on)
	defer shut(t, j)
	good, bad := j.Checkpoints()
	if len(good) != 2 || len(bad) != 0 || good[0].Head.Frame != 60 || good[1].Head.Frame != 30 {
		t.Fatalf("checkpoints %+v, %v", good, bad)
	}
	var a extras
	s := a.state()
	if _, err := j.Recover(engine.NewExchange(3), s.Each); err != nil {
		t.Fatal(err)
	}
	return m, a
}

// TestRestore begins with the newest checkpoint, replays what is after it, and comes to what a
// replay of everything comes to; then the journal goes on, and the next start, too.
func TestRestore(t *testing.T) {
	on := vfs.NewMem()
	m, want := checkpointed(t, on)
	j := reopen(t, on)
	r := mustRestore(t, j, m, want)
	if r.From == nil || r.From.Head.Frame != 60 || r.Frames != 10 || r.Commands != 200 ||
		len(r.Skipped) != 0 {
		t.Fatalf("restored %+v", r)
	}
	m.write(t, j, 5, 20)
	shut(t, j)
	j = reopen(t, on)
	defer shut(t, j)
	if r, err := j.Restore(context.Background(), fresh); err != nil || r.Frames != 15 ||
		r.State.Exchange.Digest() != m.x.Digest() {
		t.Fatalf("restored %+v: %v", r, err)
	}
}

// TestFollowerSavesInTime writes a checkpoint after so many Commands, and after a while in which
// anything happened; two are kept.
func TestFollowerSavesInTime(t *testing.T) {
	on := vfs.NewMem()
	m, j := newMaker(1), open(t, Options{Dir: "data", FS: on})
	defer shut(t, j)
	f, end := follow(t, j, FollowerOptions{Commands: 200, Interval: time.Hour})
	for i := range 4 {
		m.write(t, j, 10, 20)
		await(t, "a checkpoint after 200 commands", func() bool {
			s := f.Status()
			return s.Saved != nil && s.Saved.Head == m.head && s.Lag == 0 && !s.Saving
		})
		if good, _ := j.Checkpoints(); len(good) != min(i+1, keepCheckpoints) {
			t.Fatalf("%d checkpoints", len(good))
		}
	}
	end()
	f, end = follow(t, j, FollowerOptions{Interval: 30 * time.Millisecond})
	m.write(t, j, 1, 20)
	await(t, "a checkpoint after a while", func() bool {
		s := f.Status()
		return s.Saved != nil && s.Saved.Head == m.head
	})
	saved := f.Status().Saved
	time.Sleep(100 * time.Millisecond)
	if f.Status().Saved != saved {
		t.Fatal("a checkpoint although nothing has happened")
	}
	end()
}

// await waits for something that must come soon.
func await(t testing.TB, what string, come func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !come(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s", what)
		}
	}
}

// TestAskedCheckpoint: who asks for a checkpoint gets one with all that is durable, beside frames
// that go on; the same again if nothing came since; and a word if there is no room or no Follower.
func TestAskedCheckpoint(t *testing.T) {
	j, m := open(t, Options{Dir: t.TempDir()}), newMaker(4)
	defer shut(t, j)
	var held atomic.Bool
	f, end := follow(t, j, FollowerOptions{Hold: held.Load})
	ctx := context.Background()
	if c, err := f.Checkpoint(ctx); err == nil {
		t.Errorf("a checkpoint of nothing: %+v", c)
	}
	var last *Checkpoint
	for range 3 {
		m.write(t, j, 5, 20)
		at, wrote := m.head, make(chan struct{})
		go func() {
			defer close(wrote)
			m.write(t, j, 20, 20)
		}()
		c, err := f.Checkpoint(ctx)
		if err != nil || c.Head.Frame < at.Frame {
			t.Fatalf("%+v, %v, want frame %d at least", c, err, at.Frame)
		}
		if err := j.load(t.Context(), c, fresh()); err != nil {
			t.Error(err)
		}
		<-wrote
		if last, err = f.Checkpoint(ctx); err != nil || last.Head != m.head {
			t.Fatalf("%+v, %v", last, err)
		}
	}
	if again, err := f.Checkpoint(ctx); err != nil || again != last {
		t.Errorf("%+v, %v", again, err)
	}
	held.Store(true)
	if _, err := f.Checkpoint(ctx); !errors.Is(err, ErrNoRoom) {
		t.Error(err)
	}
	held.Store(false)
	end()
	if _, err := f.Checkpoint(ctx); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// contents are the bytes of a file.
func contents(t testing.TB, on vfs.FS, path string) []byte {
	t.Helper()
	f, err := on.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

// edit changes a file that nobody has open.
func edit(t testing.TB, on vfs.FS, path string, how func([]byte) []byte) {
	t.Helper()
	// What is written is spoilt by some filesystems.
	if err := writeWhole(on, path, slices.Clone(how(contents(t, on, path)))); err != nil {
		t.Fatal(err)
	}
}

// TestBadCheckpoints: whatever happens to checkpoints, the start finds another way to the same
// state, and says why.
func TestBadCheckpoints(t *testing.T) {
	on := vfs.NewMem()
	m, want := checkpointed(t, on)
	j := reopen(t, on)
	good, _ := j.Checkpoints()
	shut(t, j)
	newer, older := good[0].Path, good[1].Path
	original := map[string][]byte{}
	for _, path := range []string{newer, older} {
		edit(t, on, path, func(b []byte) []byte { original[path] = slices.Clone(b); return b })
	}
	cut := func(b []byte) []byte { return b[:len(b)*2/3] }
	flip := func(b []byte) []byte { b[len(b)/2] ^= 8; return b }
	head := func(b []byte) []byte { b[30] ^= 8; return b }
	longer := func(b []byte) []byte { return append(b, 7) }
	empty := func([]byte) []byte { return nil }
	for _, c := range []struct {
		name         string
		newer, older func([]byte) []byte
		from         uint64
	}{
		{"good", nil, nil, 60}, {"cut", cut, nil, 30}, {"flipped", flip, nil, 30},
		{"description", head, nil, 30}, {"longer", longer, nil, 30}, {"empty", empty, nil, 30},
		{"both", flip, cut, 0}, {"older", nil, flip, 60},
		{"another's", func([]byte) []byte { return original[older] }, nil, 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			for path, how := range map[string]func([]byte) []byte{newer: c.newer, older: c.older} {
				if how == nil {
					how = func(b []byte) []byte { return b }
				}
				edit(t, on, path, func([]byte) []byte { return how(slices.Clone(original[path])) })
			}
			j := reopen(t, on)
			defer shut(t, j)
			r := mustRestore(t, j, m, want)
			from := uint64(0)
			if r.From != nil {
				from = r.From.Head.Frame
			}
			if from != c.from {
				t.Fatalf("from frame %d, want %d; %v", from, c.from, r.Skipped)
			}
			if (c.newer != nil) != (len(r.Skipped) > 0) && c.name != "another's" {
				t.Fatalf("passed over %v", r.Skipped)
			}
		})
	}
	// The next one that is written removes what was found damaged, not what is good.
	edit(t, on, newer, func([]byte) []byte { return flip(slices.Clone(original[newer])) })
	edit(t, on, older, func([]byte) []byte { return original[older] })
	j = reopen(t, on)
	defer shut(t, j)
	mustRestore(t, j, m, want)
	_, end := follow(t, j, FollowerOptions{})
	end()
	good, bad := j.Checkpoints()
	if len(good) != 2 || len(bad) != 0 || good[0].Head != m.head || good[1].Path != older {
		t.Fatalf("checkpoints %+v, %v", good, bad)
	}
}

// TestFlippedCheckpoint changes one bit anywhere: what is restored is the same, by whatever way.
func TestFlippedCheckpoint(t *testing.T) {
	on := vfs.NewMem()
	m, want := checkpointed(t, on)
	r := rand.New(rand.NewPCG(6, 6))
	j := reopen(t, on)
	good, _ := j.Checkpoints()
	shut(t, j)
	refused, flips := 0, 150
	if testing.Short() {
		flips = 30
	}
	for range flips {
		path := good[r.IntN(2)].Path
		var at, bit int
		edit(t, on, path, func(b []byte) []byte {
			at, bit = r.IntN(len(b)), r.IntN(8)
			b[at] ^= 1 << bit
			return b
		})
		j := reopen(t, on)
		for i := range good {
			if good[i].Path != path {
				continue
			}
			if err := j.load(t.Context(), &good[i], fresh()); err == nil {
				t.Fatalf("bit %d of byte %d of %s goes unseen", bit, at, path)
			}
			refused++
		}
		mustRestore(t, j, m, want)
		shut(t, j)
		edit(t, on, path, func(b []byte) []byte { b[at] ^= 1 << bit; return b })
	}
	t.Logf("%d of %d flips refused", refused, flips)
}

// TestCheckpointOfAnother: one of another journal, or of a journal that went another way, is passed
// over. One ahead of the journal proves a loss.
func TestCheckpointOfAnother(t *testing.T) {
	one, two := vfs.NewMem(), vfs.NewMem()
	m, want := checkpointed(t, one)
	checkpointed(t, two) // the same frames, another ID
	j := reopen(t, two)
	good, _ := j.Checkpoints()
	shut(t, j)
	var foreign []byte
	edit(t, two, good[0].Path, func(b []byte) []byte { foreign = slices.Clone(b); return b })
	name := filepath.Join("data", checkpointFolder, "99999999999999999999"+checkpointSuffix)
	if err := writeWhole(one, name, foreign); err != nil {
		t.Fatal(err)
	}
	j = reopen(t, one)
	r := mustRestore(t, j, m, want)
	if r.From == nil || r.From.Head.Frame != 60 || len(r.Skipped) != 1 ||
		!errors.Is(r.Skipped[0], ErrCheckpoint) {
		t.Fatalf("restored %+v", r)
	}
	shut(t, j)

	// The journal loses its end: the newest is ahead of it, or of frames that are other ones now.
	j = open(t, Options{Dir: "data", FS: one})
	for no := uint64(45); no <= 70; no++ {
		cut(t, j, no)
	}
	shut(t, j)
	if err := one.Remove(filepath.Join("data", markName)); err != nil {
		t.Fatal(err)
	}
	j = reopen(t, one)
	_, err := j.Restore(context.Background(), fresh)
	var lost *LossError
	if !errors.As(err, &lost) || lost.Mark.Frame != 60 || lost.Head.Frame != 44 ||
		!strings.Contains(err.Error(), "as the checkpoint data/checkpoints/") {
		t.Fatalf("restored: %v", err)
	}
	shut(t, j)
	j = open(t, Options{Dir: "data", FS: one, Async: true}) // promises nothing, misses nothing
	if r, err = j.Restore(context.Background(), fresh); err != nil || r.Head.Frame != 44 ||
		r.From == nil || r.From.Head.Frame != 30 {
		t.Fatalf("restored %+v: %v", r, err)
	}
	other := newMaker(1)
	for range 44 {
		other.frame(20)
	}
	other.r = rand.New(rand.NewPCG(99, 99))
	other.write(t, j, 40, 20)
	shut(t, j)
	j = reopen(t, one)
	defer shut(t, j)
	r, err = j.Restore(context.Background(), fresh)
	if err != nil || r.Head != other.head || r.From == nil || r.From.Head.Frame != 30 {
		t.Fatalf("restored %+v: %v", r, err)
	}
}

// TestCheckpointCrash crashes at any moment of writing, syncing, renaming and pruning checkpoints
// beside appending: nothing acknowledged is lost and every start finds its way.
func TestCheckpointCrash(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	on := vfs.NewCrashableMem()
	m, j := newMaker(1), open(t, Options{Dir: "data", FS: on})
	f, end := follow(t, j, FollowerOptions{Commands: 60, Interval: time.Hour, Rate: 8 << 20})
	begun := 0
	for i := range 45 {
		for range 1 + r.IntN(6) {
			frame := m.frame(20)
			if err := j.Append(frame); err != nil {
				t.Fatal(err)
			}
			if err := j.Wait(frame.No); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Duration(r.IntN(4000)) * time.Microsecond)
		if i == 10 { // from now on every crash leaves one, however slowly they are written
			await(t, "checkpoint", func() bool { return f.Status().Saved != nil })
		}
		crashed := on.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[i%3], RNG: r})
		c := reopen(t, crashed)
		restored, err := c.Restore(context.Background(), fresh)
		if err != nil || restored.Head != m.head ||
			restored.State.Exchange.Digest() != m.x.Digest() {
			t.Fatalf("restored %+v, want %+v: %v", restored, m.head, err)
		}
		if restored.From != nil {
			begun++
		}
		shut(t, c)
	}
	end()
	if n := f.Status().Failures; n != 0 || begun < 30 {
		t.Fatalf("%d failures, %d starts from a checkpoint", n, begun)
	}
	shut(t, j)
}

// TestFollowerStopsTheNode: a frame that says another Digest than comes out of it, whatever its
// checksums say, ends the process.
func TestFollowerStopsTheNode(t *testing.T) {
	for name, spoil := range map[string]func(*engine.Frame){
		"Digest": func(f *engine.Frame) { f.Digest++ },
		"event":  func(f *engine.Frame) { f.Events[len(f.Events)-1].Args[2]++ },
	} {
		t.Run(name, func(t *testing.T) {
			var log safeBuffer
			exits := make(chan int, 1)
			j := open(t, Options{Dir: "data", FS: vfs.NewMem(), Log: log.logger(),
				Exit: func(code int) { exits <- code }})
			defer shut(t, j)
			m := newMaker(1)
			m.write(t, j, 20, 20)
			f, err := j.Follow(FollowerOptions{Fresh: fresh})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- f.Run() }()
			bad := m.frame(20)
			spoil(bad)
			bad.Encode(bad.Prev)
			if err := j.Append(bad); err != nil {
				t.Fatal(err)
			}
			if err := j.Wait(bad.No); err != nil {
				t.Fatal(err)
			}
			if code := <-exits; code != disk.ExitCode {
				t.Fatalf("exit %d", code)
			}
			var b *Break
			if err := <-done; !errors.As(err, &b) || b.Frame != bad.No {
				t.Fatalf("follower: %v", err)
			}
			for _, want := range []string{"follower", fmt.Sprintf("frame %d", bad.No), "report it"} {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the last words lack %q: %s", want, log.String())
				}
			}
		})
	}
}

// TestCheckpointWithoutRoom: a checkpoint that cannot be written harms nobody, leaves nothing
// behind, and is written when there is room.
func TestCheckpointWithoutRoom(t *testing.T) {
	var full atomic.Bool
	mem := vfs.NewMem()
	on := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind == errorfs.OpFileSync && strings.Contains(op.Path, checkpointFolder) {
			return errorfs.ErrInjected
		}
		return nil
	}))
	m, j := newMaker(1), open(t, Options{Dir: "data", FS: on})
	full.Store(true)
	f, end := follow(t, j, FollowerOptions{Commands: 100})
	m.write(t, j, 10, 20)
	await(t, "failure", func() bool { return f.Status().Failures > 0 })
	if names, err := mem.List(filepath.Join("data", checkpointFolder)); err != nil || len(names) != 0 {
		t.Fatalf("left behind: %v, %v", names, err)
	}
	m.write(t, j, 10, 20)
	full.Store(false)
	end() // writes the last one
	if s := f.Status(); s.Error != nil || s.Saved == nil || s.Saved.Head != m.head {
		t.Fatalf("status %+v", s)
	}
	shut(t, j)
}

// TestPacedCheckpoint: at so many bytes a second writing takes its time, and syncs as it goes.
func TestPacedCheckpoint(t *testing.T) {
	var syncs atomic.Int64
	on := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData && strings.HasSuffix(op.Path, tempSuffix) {
			syncs.Add(1)
		}
		return nil
	}))
	f, err := on.Create("x"+tempSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	w := &pacedWriter{ctx: context.Background(), file: f, rate: 64 << 20, start: start}
	chunk := make([]byte, engine.ChunkMax)
	for w.total < 13<<20 {
		if err := w.chunk(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took < 190*time.Millisecond || syncs.Load() != 3 {
		t.Fatalf("13 MiB took %v with %d syncs", took, syncs.Load())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w = &pacedWriter{ctx: ctx, file: f, rate: 1, start: start}
	for range 8 {
		err = w.chunk(chunk)
	}
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("given up: %v", err)
	}
	shut(t, f)
}

// TestFollowerGivesUp: a stop does not wait for more than it may.
func TestFollowerGivesUp(t *testing.T) {
	m, j := newMaker(1), open(t, Options{Dir: "data", FS: vfs.NewMem()})
	defer shut(t, j)
	m.write(t, j, 30, 20)
	frames, begun := 0, make(chan struct{})
	var f *Follower
	f, err := j.Follow(FollowerOptions{Fresh: func() *State {
		s := fresh()
		s.Each = func(*engine.Frame) error {
			if frames++; frames == 3 { // takes until it is given up
				close(begun)
				select {
				case <-f.ctx.Done():
				case <-time.After(soon):
					return errors.New("it was never told to stop")
				}
			}
			return nil
		}
		return s
	}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- f.Run() }()
	<-begun
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	f.Close(ctx)
	if err := <-done; err != nil || frames != 3 {
		t.Fatalf("after %d frames: %v", frames, err)
	}
	if s := f.Status(); ctx.Err() == nil || s.Saved != nil {
		t.Fatalf("it was not given up: %+v", s)
	}
}

// TestPruneSparesWhatItCannotRead: a checkpoint that cannot be opened just now, for want of file
// handles, is not thrown away; the one that was written beside it is not either.
func TestPruneSparesWhatItCannotRead(t *testing.T) {
	mem, short := vfs.NewMem(), atomic.Bool{}
	on := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if short.Load() && op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, checkpointSuffix) {
			return syscall.EMFILE
		}
		return nil
	}))
	j, m := open(t, Options{Dir: "data", FS: on}), newMaker(1)
	defer func() { shut(t, j) }()
	save := func() {
		t.Helper()
		m.write(t, j, 10, 20)
		if _, err := j.Checkpoint(context.Background(), &State{Exchange: m.x}, m.head); err != nil {
			t.Fatal(err)
		}
	}
	save()
	save()
	short.Store(true)
	save()
	short.Store(false)
	good, bad := j.Checkpoints()
	if len(good) != 3 || len(bad) != 0 || good[0].Head != m.head {
		t.Fatalf("after a save without file handles: %+v %v", good, bad)
	}
	save()
	if good, bad = j.Checkpoints(); len(good) != keepCheckpoints || len(bad) != 0 {
		t.Fatalf("after the next save: %+v %v", good, bad)
	}
}
