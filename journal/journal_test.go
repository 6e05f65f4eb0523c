package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal/disk"
	"clobd/scripts/setting"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"
)

func TestReopenContinues(t *testing.T) {
	fs := vfs.NewMem()
	m := newMaker(1)
	j := open(t, Options{Dir: "data", FS: fs})
	if j.ID == 0 || time.Since(j.Created) > time.Hour {
		t.Fatalf("identity: ID %d created %v", j.ID, j.Created)
	}
	id := j.ID
	for range 3 {
		m.write(t, j, 10, 20)
		shut(t, j)
		j = open(t, Options{Dir: "data", FS: fs})
		if j.ID != id || j.head != m.head {
			t.Fatalf("ID %d, head %+v, want %d, %+v", j.ID, j.head, id, m.head)
		}
	}
	x := engine.NewExchange(9)
	frames := 0
	head, err := j.Recover(x, func(f *engine.Frame) error { frames++; return nil })
	if err != nil || head != m.head || frames != 30 || x.Digest() != m.x.Digest() {
		t.Fatalf("recovered %+v with %d frames: %v", head, frames, err)
	}
	shut(t, j)
	if err := j.Append(m.frame(1)); !errors.Is(err, ErrClosed) {
		t.Fatalf("append after Close: %v", err)
	}
	if err := j.Close(); !errors.Is(err, ErrClosed) {
		t.Fatalf("second Close: %v", err)
	}
}

func TestAppendRefusesOutOfOrder(t *testing.T) {
	m := newMaker(1)
	j, err := Open(Options{Dir: "data", FS: vfs.NewMem(), Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	first := m.frame(4)
	if err := j.Append(first); err == nil || !strings.Contains(err.Error(), "Recover") {
		t.Fatalf("append before Recover: %v", err)
	}
	if _, err := j.Recover(nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(first); err != nil {
		t.Fatal(err)
	}
	if err := j.Wait(1); err != nil {
		t.Fatal(err)
	}
	second := m.frame(4)
	for want, spoil := range map[string]func(f *engine.Frame){
		"out of order":      func(f *engine.Frame) { f.No++ },
		"first Sequence":    func(f *engine.Frame) { f.First++ },
		"broken chain":      func(f *engine.Frame) { f.Prev[3]++ },
		"not encoded":       func(f *engine.Frame) { f.Bytes = nil },
		"the last frame is": func(f *engine.Frame) { f.No-- },
		"epoch 0, time":     func(f *engine.Frame) { f.Epoch-- },
		"goes back":         func(f *engine.Frame) { f.Time = makerTime - 1 },
		"partition is 1":    func(f *engine.Frame) { f.Partition++ },
	} {
		bad := *second
		spoil(&bad)
		if err := j.Append(&bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := j.Append(second); err != nil {
		t.Fatalf("the right frame after the wrong ones: %v", err)
	}
	if err := j.Wait(2); err != nil {
		t.Fatal(err)
	}
}

func TestOptionsSayAllProblems(t *testing.T) {
	_, err := Open(Options{TailBytes: -1, MemTable: 5, Cache: -1})
	for _, want := range []string{"Dir", "TailBytes", "MemTable", "Cache"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in: %v", want, err)
		}
	}
}

func TestSecondOpenerIsTold(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Dir: dir})
	_, err := Open(Options{Dir: dir, Log: quiet()})
	var locked *disk.LockedError
	if !errors.As(err, &locked) || locked.Holder != "this process" ||
		!strings.Contains(err.Error(), "another folder") {
		t.Fatalf("second opener: %v", err)
	}
	shut(t, j)
	shut(t, open(t, Options{Dir: dir}))
}

// TestHold is the other process of TestOtherProcessIsNamed.
func TestHold(t *testing.T) {
	dir := os.Getenv("CLOBD_TEST_HOLD")
	if dir == "" {
		t.Skip("serves TestOtherProcessIsNamed")
	}
	j := open(t, Options{Dir: dir})
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent lets go
	shut(t, j)
}

func TestOtherProcessIsNamed(t *testing.T) {
	dir := t.TempDir()
	other := exec.Command(os.Args[0], "-test.run=^TestHold$")
	other.Env = append(os.Environ(), "CLOBD_TEST_HOLD="+dir)
	in, err1 := other.StdinPipe()
	out, err2 := other.StdoutPipe()
	if err := errors.Join(err1, err2, other.Start()); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("%q: %v", line, err)
	}
	_, err := Open(Options{Dir: dir, Log: quiet()})
	var locked *disk.LockedError
	if !errors.As(err, &locked) ||
		!strings.HasPrefix(locked.Holder, fmt.Sprintf("process %d", other.Process.Pid)) {
		t.Errorf("second opener: %v", err)
	}
	if err := errors.Join(in.Close(), other.Wait()); err != nil {
		t.Fatal(err)
	}
	shut(t, open(t, Options{Dir: dir}))
}

func TestUnknownVersionIsRefused(t *testing.T) {
	for version, want := range map[uint64]string{Version + 1: "newer", 0: "unknown"} {
		fs := vfs.NewMem()
		j := open(t, Options{Dir: "data", FS: fs})
		m := meta{format: version, id: 5, created: 1}
		if err := m.save(j.db, pebble.Sync); err != nil {
			t.Fatal(err)
		}
		shut(t, j)
		_, err := Open(Options{Dir: "data", FS: fs, Log: quiet()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

func TestMissingMetaIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	j := open(t, Options{Dir: "data", FS: fs})
	newMaker(1).write(t, j, 1, 3)
	if err := j.db.DeleteRange([]byte{spaceMeta}, []byte{spaceMeta + 1}, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	shut(t, j)
	_, err := Open(Options{Dir: "data", FS: fs, Log: quiet()})
	if err == nil || !strings.Contains(err.Error(), "no description of itself") {
		t.Fatal(err)
	}
}

// TestCrash takes the disk away at random moments, with none, some or all of what was not synced,
// while frames are in flight: what Wait promised is there, and nothing else but frames after it.
func TestCrash(t *testing.T) {
	clones, seed := setting.Number(t, "CLOBD_SIZE", 60), setting.Seed(t, 7)
	r := rand.New(rand.NewPCG(seed, 7))
	for round := range max(1, int(clones)/10) {
		fs := vfs.NewCrashableMem()
		j := open(t, Options{Dir: "data", FS: fs, MemTable: 1 << 20, spares: round%2 == 1})
		m := newMaker(seed + uint64(round))
		var sent []*engine.Frame
		for range 120 {
			sent = append(sent, m.frame(1+r.IntN(30)))
		}
		var promised atomic.Uint64
		var wg sync.WaitGroup
		gate := make(chan struct{}, 4) // frames in flight
		wg.Add(2)
		go func() {
			defer wg.Done()
			for _, f := range sent {
				gate <- struct{}{}
				if err := j.Append(f); err != nil {
					t.Error(err)
				}
			}
		}()
		go func() {
			defer wg.Done()
			for _, f := range sent {
				if err := j.Wait(f.No); err != nil {
					t.Error(err)
				}
				promised.Store(f.No)
				<-gate
			}
		}()
		for i := range 10 {
			for promised.Load() < uint64(12*i+r.IntN(12)) {
				time.Sleep(20 * time.Microsecond)
			}
			least := promised.Load()
			crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[i%3],
				RNG: r})
			checkCrash(t, crashed, sent, least)
		}
		wg.Wait()
		shut(t, j)
	}
	t.Logf("figures: clones=%d lost=0", max(1, clones/10)*10)
}

// checkCrash reopens what is left after a crash: at least the first least frames.
func checkCrash(t *testing.T, fs vfs.FS, sent []*engine.Frame, least uint64) {
	t.Helper()
	j, err := Open(Options{Dir: "data", FS: fs, Log: quiet()})
	if err != nil {
		t.Fatalf("open with %d frames promised: %v", least, err)
	}
	var got uint64
	x := engine.NewExchange(3)
	head, err := j.Recover(x, func(f *engine.Frame) error {
		if want := sent[got]; f.Hash != want.Hash || !bytes.Equal(f.Bytes, want.Bytes) {
			t.Fatalf("frame %d is another one", f.No)
		}
		got++
		return nil
	})
	if err != nil || got < least || head.Frame != got {
		t.Fatalf("%d of %d promised frames, head %+v: %v", got, least, head, err)
	}
	if int(got) < len(sent) { // and it goes on
		if err := j.Append(sent[got]); err != nil {
			t.Fatal(err)
		}
		if err := j.Wait(got + 1); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, j)
}

// TestFailedSync makes the disk fail at the syncs or writes of the log: the last words are
// spoken and no frame is acknowledged from then on, although the caller asks again.
func TestFailedSync(t *testing.T) {
	for name, kind := range map[string][]errorfs.OpKind{
		"sync":  {errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo},
		"write": {errorfs.OpFileWrite},
	} {
		t.Run(name, func(t *testing.T) {
			var failing atomic.Bool
			inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
				for _, k := range kind {
					if failing.Load() && op.Kind == k && strings.HasSuffix(op.Path, ".log") {
						return errorfs.ErrInjected
					}
				}
				return nil
			})
			var log safeBuffer
			var exits []int
			j := open(t, Options{Dir: "data", FS: errorfs.Wrap(vfs.NewMem(), inject), Log: log.logger(),
				Exit: func(code int) { exits = append(exits, code) }})
			m := newMaker(1)
			m.write(t, j, 5, 10)
			failing.Store(true)
			f := m.frame(10)
			if err := j.Append(f); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := j.Wait(f.No); !errors.Is(err, errorfs.ErrInjected) {
					t.Fatalf("wait for a frame that is not durable: %v", err)
				}
			}
			failing.Store(false) // a disk that works again changes nothing
			if err := j.Append(m.frame(1)); err == nil {
				t.Fatal("append after a failed sync")
			}
			if len(exits) != 1 || exits[0] != disk.ExitCode {
				t.Fatalf("exits: %v", exits)
			}
			words := log.String()
			for _, want := range []string{fmt.Sprintf("frame %d", f.No), "data/journal", "hint",
				fmt.Sprintf("Sequence %d", f.Last()),
				fmt.Sprintf("acknowledged up to Sequence %d", f.First-1)} {
				if !strings.Contains(words, want) {
					t.Errorf("the last words lack %q: %s", want, words)
				}
			}
		})
	}
}

// TestPanicOfTheLogIsAFailure: Pebble panics when it writes to a log that failed before.
func TestPanicOfTheLogIsAFailure(t *testing.T) {
	var failing atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite &&
			strings.HasSuffix(op.Path, ".log") {
			return errorfs.ErrInjected
		}
		return nil
	})
	exits := make(chan int, 10)
	j := open(t, Options{Dir: "data", FS: errorfs.Wrap(vfs.NewMem(), inject), Log: quiet(),
		Exit: func(code int) { exits <- code }})
	m := newMaker(1)
	m.write(t, j, 1, 10)
	failing.Store(true)
	var err error
	// Nobody waits: only the log's own state can tell. The frames are small, for when the log fails
	// while Pebble changes to a new one it dies of a lock instead, which nothing can recover from.
	for i := 0; i < 500 && err == nil; i++ {
		err = j.Append(m.frame(1))
		time.Sleep(time.Duration(max(1, i-200)) * time.Millisecond) // there must not be many more
	}
	if err == nil || !strings.Contains(err.Error(), "append frame") {
		t.Fatalf("append: %v", err)
	}
	if code := <-exits; code != disk.ExitCode {
		t.Fatalf("exit %d", code)
	}
	if err := j.Wait(2); err == nil {
		t.Fatal("wait after the log failed")
	}
}

// TestDie is the process of TestLogChangeEndsTheProcess: it writes until its log changes to a new
// file, which cannot be made.
func TestDie(t *testing.T) {
	dir := os.Getenv("CLOBD_TEST_DIE")
	if dir == "" {
		t.Skip("serves TestLogChangeEndsTheProcess")
	}
	var failing atomic.Bool
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && strings.HasSuffix(op.Path, ".log") &&
			(op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite) {
			return errorfs.ErrInjected
		}
		return nil
	}))
	j := open(t, Options{Dir: dir, FS: fs, MemTable: 1 << 20})
	failing.Store(true)
	m := newMaker(1)
	for range 100 {
		m.write(t, j, 1, 200)
		fmt.Println(m.head.Frame)
	}
}

// TestLogChangeEndsTheProcess: a failure while Pebble changes to a new log cannot be recovered
// from, but the process ends, and what it acknowledged is there.
func TestLogChangeEndsTheProcess(t *testing.T) {
	dir := t.TempDir()
	other := exec.Command(os.Args[0], "-test.run=^TestDie$")
	other.Env = append(os.Environ(), "CLOBD_TEST_DIE="+dir)
	var words bytes.Buffer
	other.Stderr = &words
	out, err := other.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 ||
		!strings.Contains(words.String(), "unlock of unlocked mutex") {
		t.Fatalf("%v: %s", err, words.String())
	}
	lines := strings.Fields(string(out))
	if len(lines) == 0 || len(lines) == 100 {
		t.Fatalf("acknowledged: %s", out)
	}
	j := open(t, Options{Dir: dir})
	defer shut(t, j)
	if got := fmt.Sprint(j.head.Frame); j.head.Frame < uint64(len(lines)) {
		t.Fatalf("%s frames are left, acknowledged: %s", got, out)
	}
}

// value is the stored form of frame no, put and cut change it behind the journal's back.
func value(t *testing.T, j *Journal, no uint64) []byte {
	t.Helper()
	b, err := j.read(nil, no, no)
	if err != nil {
		t.Fatal(err)
	}
	return b[0]
}

func put(t *testing.T, j *Journal, no uint64, b []byte) {
	t.Helper()
	k := frameKey(no)
	if err := j.db.Set(k[:], b, pebble.Sync); err != nil {
		t.Fatal(err)
	}
}

func cut(t *testing.T, j *Journal, no uint64) {
	t.Helper()
	k := frameKey(no)
	if err := j.db.Delete(k[:], pebble.Sync); err != nil {
		t.Fatal(err)
	}
}

// change writes frame no again, in a form that its checksum and its chain agree with.
func change(t *testing.T, j *Journal, no uint64, how func(f *engine.Frame)) {
	t.Helper()
	var f engine.Frame
	if err := engine.DecodeFrame(value(t, j, no), &f); err != nil {
		t.Fatal(err)
	}
	how(&f)
	f.Encode(f.Prev)
	put(t, j, no, f.Bytes)
}

// TestRecoverNamesTheBreak writes bad values past the journal and looks at what Recover says.
func TestRecoverNamesTheBreak(t *testing.T) {
	const frames, each = 20, 10
	for _, c := range []struct {
		name  string
		frame uint64
		what  string
		spoil func(j *Journal)
	}{
		{"hole", 7, "missing", func(j *Journal) { cut(t, j, 7) }},
		{"hole at the start", 1, "missing", func(j *Journal) { cut(t, j, 1) }},
		{"hole before damage", 7, "missing", func(j *Journal) { cut(t, j, 7); put(t, j, 8, []byte("x")) }},
		{"flipped bit", 9, "checksum", func(j *Journal) {
			b := value(t, j, 9)
			b[len(b)/2] ^= 4
			put(t, j, 9, b)
		}},
		{"cut short", 9, "cut short", func(j *Journal) { put(t, j, 9, value(t, j, 9)[:200]) }},
		{"empty", 9, "cut short", func(j *Journal) { put(t, j, 9, nil) }},
		{"wrong place", 11, "says that it is frame 10",
			func(j *Journal) { put(t, j, 11, value(t, j, 10)) }},
		{"another chain", 15, "broken chain", func(j *Journal) {
			m := newMaker(77)
			for range 14 {
				m.frame(each)
			}
			put(t, j, 15, m.frame(each).Bytes)
		}},
		{"epoch", 9, "its epoch is 0, after epoch 1", func(j *Journal) {
			change(t, j, 9, func(f *engine.Frame) { f.Epoch-- })
		}},
		{"time", 9, "its time is 1699999999999, after time 1700000000007", func(j *Journal) {
			change(t, j, 9, func(f *engine.Frame) { f.Time = makerTime - 1 })
		}},
		{"partition", 9, "it is of partition 1, the journal of partition 0", func(j *Journal) {
			change(t, j, 9, func(f *engine.Frame) { f.Partition++ })
		}},
		{"malformed key", 0, "malformed key", func(j *Journal) {
			if err := j.db.Set([]byte{spaceFrame, 0}, nil, pebble.Sync); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			j := open(t, Options{Dir: "data", FS: fs})
			newMaker(1).write(t, j, frames, each)
			c.spoil(j)
			shut(t, j)
			j, err := Open(Options{Dir: "data", FS: fs, Log: quiet()})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			_, err = j.Recover(engine.NewExchange(1), nil)
			var b *Break
			if !errors.As(err, &b) || !strings.Contains(err.Error(), c.what) ||
				!strings.Contains(err.Error(), disk.HintDamaged) || b.Path != "data/journal" {
				t.Fatalf("recover: %v", err)
			}
			frame := max(c.frame, 1)
			seq := engine.Sequence((frame-1)*each + 1)
			if b.Frame != frame || b.Sequence != seq {
				t.Errorf("want frame %d, Sequence %d: %v", frame, seq, err)
			}
			if err := j.Append(newMaker(1).frame(1)); err == nil {
				t.Error("append to a journal that could not be recovered")
			}
		})
	}
}

// TestRecoverStopsAtADifference gives a frame whose Events are not those that Apply makes.
func TestRecoverStopsAtADifference(t *testing.T) {
	for name, spoil := range map[string]func(f *engine.Frame){
		"Digest":         func(f *engine.Frame) { f.Digest++ },
		"engine version": func(f *engine.Frame) { f.Engine++ },
	} {
		fs := vfs.NewMem()
		j := open(t, Options{Dir: "data", FS: fs})
		m := newMaker(1)
		m.write(t, j, 3, 20)
		f := m.frame(5)
		spoil(f)
		f.Encode(f.Prev)
		if err := errors.Join(j.Append(f), j.Wait(4)); err != nil {
			t.Fatal(err)
		}
		_, err := j.Recover(engine.NewExchange(1), nil)
		var b *Break
		if !errors.As(err, &b) || b.Frame != 4 || b.Sequence != 61 ||
			!strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "start the version") {
			t.Errorf("%s: %v", name, err)
		}
		shut(t, j)
	}
}

// TestRecoverSurvivesAPanic replays into an Exchange that was never made.
func TestRecoverSurvivesAPanic(t *testing.T) {
	j := open(t, Options{Dir: "data", FS: vfs.NewMem()})
	defer j.Close()
	newMaker(1).write(t, j, 2, 40)
	_, err := j.Recover(new(engine.Exchange), nil)
	var b *Break
	if !errors.As(err, &b) || b.Frame != 1 || !strings.Contains(err.Error(), "replay of Sequence 2 in frame 1") {
		t.Fatalf("recover: %v", err)
	}
}

// TestRecoverSurvivesAPanicOfTheReceiver: whoever is handed the frames may have a bug, too.
func TestRecoverSurvivesAPanicOfTheReceiver(t *testing.T) {
	j := open(t, Options{Dir: "data", FS: vfs.NewMem()})
	defer j.Close()
	newMaker(1).write(t, j, 5, 40)
	x := engine.NewExchange(1)
	head, err := j.Recover(x, func(f *engine.Frame) error {
		if f.No == 3 {
			clumsyReceiver(nil)
		}
		return nil
	})
	var b *Break
	if !errors.As(err, &b) || b.Frame != 3 || b.Sequence != 81 || head.Frame != 2 {
		t.Fatalf("recover up to %+v: %v", head, err)
	}
	for _, want := range []string{"data/journal", "Sequences 81 to 120", "nil map", "clumsyReceiver",
		"keep the folder and report it"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// clumsyReceiver writes into a map that it was not given.
func clumsyReceiver(m map[int]int) { m[1]++ }

func TestAsyncWritesWithoutSync(t *testing.T) {
	fs := vfs.NewMem()
	m := newMaker(1)
	j := open(t, Options{Dir: "data", FS: fs, Async: true})
	m.write(t, j, 20, 10)
	shut(t, j)
	j = open(t, Options{Dir: "data", FS: fs})
	if j.head != m.head {
		t.Fatalf("head %+v, want %+v", j.head, m.head)
	}
	shut(t, j)
}

func TestWaitEndsWithClose(t *testing.T) {
	j := open(t, Options{Dir: "data", FS: vfs.NewMem()})
	got := make(chan error)
	go func() { got <- j.Wait(1) }()
	time.Sleep(time.Millisecond)
	shut(t, j)
	if err := <-got; !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

// TestCloseBesideWait closes while frames are in flight and Wait takes them, too: neither hangs,
// and what Wait promised is there.
func TestCloseBesideWait(t *testing.T) {
	for round := range 200 {
		fs := vfs.NewMem()
		m := newMaker(1)
		j := open(t, Options{Dir: "data", FS: fs})
		const frames = 3
		for range frames {
			if err := j.Append(m.frame(2)); err != nil {
				t.Fatal(err)
			}
		}
		promised := make(chan uint64)
		go func() {
			no := uint64(0)
			for no < frames && j.Wait(no+1) == nil {
				no++
			}
			promised <- no
		}()
		if round%2 == 0 {
			runtime.Gosched()
		}
		closed := make(chan error)
		go func() { closed <- j.Close() }()
		select {
		case err := <-closed:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(soon):
			t.Fatalf("round %d: Close hangs", round)
		}
		least := <-promised
		j = open(t, Options{Dir: "data", FS: fs})
		if j.head.Frame != frames || least > frames {
			t.Fatalf("%d frames, %d promised", j.head.Frame, least)
		}
		shut(t, j)
	}
}

func TestCollectorsGather(t *testing.T) {
	j := open(t, Options{Dir: "data", FS: vfs.NewMem()})
	defer j.Close()
	newMaker(1).write(t, j, 4, 10)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(j.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"clobd_journal_append_frames_total": 4,
		"clobd_journal_append_commands_total": 40, "clobd_journal_sequence": 40}
	for _, f := range families {
		m := f.Metric[0]
		v := m.GetCounter().GetValue() + m.GetGauge().GetValue()
		if w, ok := want[f.GetName()]; ok && v != w {
			t.Errorf("%s is %v, want %v", f.GetName(), v, w)
		}
		delete(want, f.GetName())
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// TestRecoverStops shows that whoever is handed the frames can end the replay.
func TestRecoverStops(t *testing.T) {
	fs := vfs.NewMem()
	j := open(t, Options{Dir: "data", FS: fs, Log: quiet()})
	newMaker(1).write(t, j, 200, 5)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, err := Open(Options{Dir: "data", FS: fs, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	enough, seen := errors.New("enough"), 0
	_, err = j.Recover(nil, func(*engine.Frame) error {
		if seen++; seen == 3 {
			return enough
		}
		return nil
	})
	if err != enough || seen != 3 {
		t.Fatalf("%v after %d frames", err, seen)
	}
	if _, err := j.Recover(engine.NewExchange(1), nil); err != nil { // nothing was harmed
		t.Fatal(err)
	}
}
