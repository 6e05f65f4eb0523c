package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"clobd/engine"
	"clobd/journal/disk"
	"clobd/scripts/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// framesIn are the numbers of all whole frames in the bytes of a folder's files.
func framesIn(t *testing.T, dir string) map[uint64]uint64 {
	t.Helper()
	db := open(t, Options{Dir: "scratch", FS: vfs.NewMem()})
	defer shut(t, db)
	r := &rescuer{ctx: context.Background(), o: &RescueOptions{Options: Options{FS: vfs.Default}},
		drain: func() error { return nil }}
	c, err := collect(r, dir, db.db)
	if err != nil {
		t.Fatal(err)
	}
	return c.seen
}

// endsEarly makes a folder as a killed process leaves it, of which the newest log is damaged near
// its end, in the last of its blocks: Pebble ends it there without a word.
func endsEarly(t *testing.T) (dir string, end engine.Head) {
	t.Helper()
	live, m := t.TempDir(), newMaker(9)
	j := open(t, Options{Dir: live})
	m.write(t, j, 100, 1)
	await(t, "the mark", func() bool {
		k, _, err := ReadMark(nil, live)
		return err == nil && k.Frame == m.head.Frame
	})
	dir = copyLive(t, live)
	shut(t, j)
	err := rewrite(newestLog(t, dir), func(b []byte) []byte { b[len(b)*19/20] ^= 6; return b })
	if err != nil {
		t.Fatal(err)
	}
	return dir, m.head
}

// TestRescueDestroysNothing: what an accepted loss cuts off is kept, as it says: every frame, the
// mark and the index.
func TestRescueDestroysNothing(t *testing.T) {
	dir, end := endsEarly(t)
	index := filepath.Join(dir, "index", "what is in it")
	mark, err := os.ReadFile(filepath.Join(dir, markName))
	if err = errors.Join(err, os.Mkdir(filepath.Dir(index), 0o700),
		os.WriteFile(index, []byte("rows"), 0o600)); err != nil {
		t.Fatal(err)
	}
	before := framesIn(t, filepath.Join(dir, "journal"))
	l, err := AcceptLoss(context.Background(), rescuing(Options{Dir: dir, Log: quiet()}))
	if err != nil || l.Why == nil || l.Whole {
		t.Fatalf("%+v, %v", l, err)
	}
	behind := uint64(0)
	for no := range before {
		if no > l.Head.Frame {
			behind++
		}
	}
	if behind == 0 || l.Frames != end.Frame-l.Head.Frame {
		t.Errorf("%d whole frames lie behind frame %d of %d, %d are said to be cut off", behind,
			l.Head.Frame, end.Frame, l.Frames)
	}
	shut(t, open(t, Options{Dir: dir}))
	after := framesIn(t, filepath.Join(dir, "journal"))
	kept := framesIn(t, filepath.Join(l.Kept, "journal"))
	for no, hash := range before {
		if after[no] != hash && kept[no] != hash {
			t.Errorf("frame %d is nowhere", no)
		}
	}
	if rows, err := os.ReadFile(filepath.Join(l.Kept, "index", filepath.Base(index))); err != nil ||
		string(rows) != "rows" {
		t.Errorf("the index is not kept: %v", err)
	}
	was, err := os.ReadFile(filepath.Join(l.Kept, markName))
	if err != nil || !slices.Equal(was, mark) {
		t.Errorf("the mark is not kept: %v", err)
	}
}

// tableDamage flips two bits of a frame in a table: a start that has a checkpoint behind it does
// not see it.
func tableDamage(t *testing.T, o Options, no uint64) {
	t.Helper()
	j := open0(t, o)
	b := value(t, j, no)
	b[len(b)/2] ^= 3
	put(t, j, no, b)
	err := errors.Join(j.db.Flush(), j.db.Compact(context.Background(), []byte{0}, []byte{255}, false))
	shut(t, j)
	if err != nil {
		t.Fatal(err)
	}
	shut(t, open0(t, o)) // which deletes what the frame was in before, for good
}

// TestRescueIsAlone: from its first look to its end nobody else has the folder: what a node that
// came meanwhile acknowledged would be lost.
func TestRescueIsAlone(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"table": func(dir string) error { tableDamage(t, Options{Dir: dir}, 11); return nil },
		"mark":  func(dir string) error { return os.Truncate(filepath.Join(dir, markName), 5) },
		"gone":  func(dir string) error { return os.RemoveAll(filepath.Join(dir, "journal")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := scattered(t, 60)
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			ctx, looks := context.Background(), 0
			o := Options{Dir: dir, Log: quiet()}
			l, err := AcceptLoss(ctx, RescueOptions{Options: o, Indexed: covered, Fresh: func() *State {
				looks++
				if j, err := Open(o); err == nil {
					t.Errorf("look %d: a node starts", looks)
					shut(t, j)
				}
				var locked *disk.LockedError
				if _, err := AcceptLoss(ctx, rescuing(o)); !errors.As(err, &locked) {
					t.Errorf("look %d: another rescue: %v", looks, err)
				}
				return fresh()
			}})
			if err != nil || l.Kept == "" || looks == 0 {
				t.Fatalf("%d looks, %+v, %v", looks, l, err)
			}
			j := open0(t, o)
			if r, err := j.Restore(ctx, fresh); err != nil || r.Head != l.Head {
				t.Errorf("after it: %+v, %v", r.Head, err)
			}
			shut(t, j)
		})
	}
}

// TestOrdersDoNotSpeakForTheJournal: what somebody signs and sends is not taken for what the
// journal says of itself.
func TestOrdersDoNotSpeakForTheJournal(t *testing.T) {
	for _, what := range []string{metaFormat, metaJournal} {
		t.Run(what, func(t *testing.T) {
			m, live := newMaker(9), t.TempDir()
			j := open(t, Options{Dir: live})
			m.write(t, j, 20, 5)
			key := metaKey(what)
			evil := append([]byte{entrySets, byte(len(key))}, key...)
			evil = append(evil, 8, 0, 0, 0, 0, 0, 0, 0, 77)
			if len(evil) > 32 {
				t.Fatalf("%d bytes do not fit into an order", len(evil))
			}
			m.script = append(m.script, engine.Command{Kind: engine.Place, Market: 1, Wallet: 1, Owner: 1,
				Key: 7, Size: 50 * engine.Unit, Cash: 25 * engine.Unit, Seen: m.head.Sequence, ID: m.id(),
				Proof: append(make([]byte, 100), evil...)})
			m.write(t, j, 3, 5)
			await(t, "the mark", func() bool {
				k, _, err := ReadMark(nil, live)
				return err == nil && k.Frame == m.head.Frame
			})
			dir, id := copyLive(t, live), j.ID
			shut(t, j)
			manifests, err := filepath.Glob(filepath.Join(dir, "journal", "MANIFEST*"))
			for _, name := range manifests {
				err = errors.Join(err, os.Remove(name))
			}
			if err != nil {
				t.Fatal(err)
			}
			l, err := Repair(context.Background(), rescuing(Options{Dir: dir, Log: quiet()}))
			if err != nil || !l.Whole || l.Final || l.Head != m.head {
				t.Fatalf("%+v, %v", l, err)
			}
			if j = open0(t, Options{Dir: dir}); j.ID != id {
				t.Errorf("journal %016x became %016x", id, j.ID)
			}
			shut(t, j)
		})
	}
}

// TestUndoTakesItsOwn: the folder that an interrupted rescue had put aside comes back, not that of
// another rescue, whenever the clock says that was.
func TestUndoTakesItsOwn(t *testing.T) {
	dir, _ := scattered(t, 30)
	other := filepath.Join(dir, lostPrefix+"29990101T000000.000Z")
	kept := filepath.Join(dir, lostPrefix+"20260101T000000.000Z")
	err := errors.Join(os.CopyFS(filepath.Join(other, "journal"), os.DirFS(filepath.Join(dir, "journal"))),
		os.WriteFile(filepath.Join(other, "journal", "other"), nil, 0o600),
		os.MkdirAll(filepath.Join(dir, freshFolder), 0o700))
	note := filepath.Join(dir, freshFolder, asideName)
	if err = errors.Join(err, os.WriteFile(note, []byte(filepath.Base(kept)), 0o600)); err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: dir, FS: vfs.Default}
	for range 2 { // first it had put nothing aside, for there was nothing
		err := os.RemoveAll(filepath.Join(kept, "journal"))
		if from, e := undoSwap(&o); err != nil || e != nil || from != "" {
			t.Fatalf("from %q: %v, %v", from, err, e)
		}
		err = errors.Join(os.MkdirAll(kept, 0o700),
			os.Rename(filepath.Join(dir, "journal"), filepath.Join(kept, "journal")))
		from, e := undoSwap(&o)
		if err != nil || e != nil || from != filepath.Join(kept, "journal") {
			t.Fatalf("from %q: %v, %v", from, err, e)
		}
		if _, err := os.Stat(filepath.Join(dir, "journal", "other")); err == nil {
			t.Fatal("it put back another one")
		}
	}
}

// TestRescueFillsTheDisk: a disk that fills while a rescue works ends it with an error that says
// what to do, at once, and leaves nothing of the rescue behind.
func TestRescueFillsTheDisk(t *testing.T) {
	setting.Full(t, "TestRescueAgain stays")
	whole, _ := scattered(t, 60)
	manifests, err := filepath.Glob(filepath.Join(whole, "journal", "MANIFEST*"))
	for _, name := range manifests {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{".log", ".sst", "MANIFEST", "OPTIONS", "marker"} {
		for skip := range int64(3) {
			t.Run(fmt.Sprint(part, skip), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "data")
				if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
					t.Fatal(err)
				}
				var writes atomic.Int64
				on := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate) &&
						strings.Contains(op.Path, salvageFolder) && strings.Contains(op.Path, part) &&
						writes.Add(1) > skip {
						return syscall.ENOSPC
					}
					return nil
				}))
				l, err := AcceptLoss(context.Background(), rescuing(Options{Dir: dir, FS: on, Log: quiet(),
					Exit: func(int) { t.Error("it ends the process") }}))
				if writes.Load() <= skip {
					if err != nil || !l.Whole {
						t.Errorf("%+v, %v", l, err)
					}
					return
				}
				if !errors.Is(err, syscall.ENOSPC) || Advice(err) == "" {
					t.Errorf("%.300v", err)
				}
				if n := writes.Load() - skip; n > 20 {
					t.Errorf("it tried %d times", n)
				}
				names, err := filepath.Glob(filepath.Join(dir, "journal.*"))
				if err != nil || len(names) > 0 {
					t.Errorf("left behind: %v, %v", names, err)
				}
				if l, err := Diagnose(context.Background(), rescuing(Options{Dir: dir,
					Log: quiet()})); err != nil || !l.Whole {
					t.Errorf("with room again: %+v, %v", l, err)
				}
			})
		}
	}
}

// TestRescuePowerLoss: power fails at any step of a rescue. No start passes with less than what was
// accepted, what was there is kept, and it can be done again.
func TestRescuePowerLoss(t *testing.T) {
	setting.Full(t, "TestRescueAgain stays")
	stride := 1
	if testing.Short() {
		stride = 5
	}
	mem, m := vfs.NewCrashableMem(), newMaker(9)
	o := Options{Dir: "data", FS: mem}
	j := open(t, o)
	for range 20 {
		m.write(t, j, 1, 30)
	}
	shut(t, j)
	shut(t, open(t, o)) // its frames are in tables
	tableDamage(t, o, 11)
	r := rand.New(rand.NewPCG(3, 3))
	var lock sync.Mutex
	var clones []*vfs.MemFS
	var at []string
	on := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpRename, errorfs.OpMkdirAll, errorfs.OpRemoveAll, errorfs.OpCreate,
			errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpRemove, errorfs.OpLink:
			lock.Lock()
			defer lock.Unlock()
			for _, percent := range []int{0, 50, 100} {
				clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
					RNG: r}))
				at = append(at, fmt.Sprint(op.Kind, " ", op.Path))
			}
		}
		return nil
	}))
	l, err := AcceptLoss(context.Background(), rescuing(Options{Dir: "data", FS: on, Log: quiet()}))
	if err != nil || l.Head.Frame != 10 {
		t.Fatalf("%+v, %v", l, err)
	}
	clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{}))
	at = append(at, "the end")
	for i := 0; i < len(clones); i += stride {
		crashedRescue(t, clones[i], at[i], i%2 == 0)
	}
	t.Logf("%d clones", len(clones))
	if len(clones) < 60 {
		t.Error("they are few")
	}
}

// crashedRescue goes on from a crash in the middle of a rescue that keeps 10 frames.
func crashedRescue(t *testing.T, on *vfs.MemFS, at string, startFirst bool) {
	t.Helper()
	ctx, o := context.Background(), Options{Dir: "data", FS: on, Log: quiet()}
	start := func() (uint64, error) {
		j, err := Open(o)
		if err != nil {
			return 0, err
		}
		r, err := j.Restore(ctx, fresh)
		shut(t, j)
		return r.Head.Frame, err
	}
	if startFirst { // as a supervisor would
		if frame, err := start(); err == nil && frame != 10 {
			t.Errorf("%s: a start passes with frame %d", at, frame)
		}
	}
	if _, err := AcceptLoss(ctx, rescuing(o)); err != nil {
		t.Errorf("%s: again: %v", at, err)
		return
	}
	if frame, err := start(); err != nil || frame != 10 {
		t.Errorf("%s: after it was done again: %d, %v", at, frame, err)
	}
	names, err := on.List("data")
	kept := slices.ContainsFunc(names, func(name string) bool {
		_, err := on.Stat("data/" + name + "/journal")
		return strings.HasPrefix(name, lostPrefix) && err == nil
	})
	if err != nil || !kept {
		t.Errorf("%s: the journal as it was is nowhere: %v, %v", at, names, err)
	}
}

// TestDamageIsToldApart: what a start met that will be there at the next one, too, is damage.
func TestDamageIsToldApart(t *testing.T) {
	whole, _ := scattered(t, 30)
	for name, spoil := range map[string]func(dir string) error{
		"manifest": func(dir string) error { return glob(dir, "journal/MANIFEST*", os.Remove) },
		"journal":  func(dir string) error { return os.RemoveAll(filepath.Join(dir, "journal")) },
		"logs":     func(dir string) error { return glob(dir, "journal/*.log", spoilers["empty"]) },
		"options":  func(dir string) error { return glob(dir, "journal/OPTIONS*", spoilers["cut"]) },
		"mark":     func(dir string) error { return os.Truncate(filepath.Join(dir, markName), 5) },
		"foreign":  func(dir string) error { return remark(dir, func(m *Mark) { m.Journal++ }) },
		"mark a folder": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, markName)),
				os.Mkdir(filepath.Join(dir, markName), 0o700))
		},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := errors.Join(os.CopyFS(dir, os.DirFS(whole)), spoil(dir)); err != nil {
			t.Fatal(err)
		}
		j, err := Open(Options{Dir: dir, Log: quiet()})
		if err == nil {
			_, err = j.Restore(context.Background(), fresh)
			shut(t, j)
		}
		if !IsDamage(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "data")
	j := open(t, Options{Dir: dir})
	if _, err := Open(Options{Dir: dir, Log: quiet()}); err == nil || IsDamage(err) {
		t.Errorf("a folder in use: %v", err)
	}
	shut(t, j)
}

// glob does something to the files of a pattern.
func glob(dir, pattern string, do func(name string) error) error {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	for _, name := range names {
		err = errors.Join(err, do(name))
	}
	return err
}

// TestFollowerTriesForWhoAsks: whoever asks for a checkpoint is not told of a failure of before,
// nor of one that would not have been enough for him.
func TestFollowerTriesForWhoAsks(t *testing.T) {
	f := &Follower{}
	f.status.Failures, f.status.Error, f.tried = 1, syscall.ENOSPC, 10
	ask := func() chan savedNow {
		a := make(chan savedNow, 1)
		f.calls = append(f.calls, saveCall{from: 10, failed: f.status.Failures, answer: a})
		f.answer()
		return a
	}
	a := ask()
	if len(a) > 0 {
		t.Fatal("he is told of an older failure")
	}
	f.status.Failures, f.tried = 2, 9
	if f.answer(); len(a) > 0 {
		t.Fatal("he is told of a failure of less than he asked for")
	}
	f.status.Failures, f.tried = 3, 10
	if f.answer(); len(a) != 1 || !errors.Is((<-a).err, syscall.ENOSPC) {
		t.Error("he is not told of his own")
	}
}

// TestOneFlippedBitLosesNothing: a frame of which one bit was flipped, anywhere but where it begins
// and says how long it is, is brought back, in a log, in a table, and as the last one.
func TestOneFlippedBitLosesNothing(t *testing.T) {
	each := 6
	if testing.Short() {
		each = 1
	}
	whole, heads := scattered(t, 30)
	ctx := context.Background()
	r := rand.New(rand.NewPCG(7, 7))
	for _, no := range []uint64{11, 29, 30} { // one of a table, two of the log
		for range each {
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			o := Options{Dir: dir, Log: quiet()}
			from := flipFrame(t, dir, no, r)
			l, err := Diagnose(ctx, rescuing(o))
			if err != nil || l.Why == nil || !l.Whole || l.Unflipped != 1 || l.Head != heads[30] {
				t.Fatalf("frame %d, %s: %+v, %v", no, from, l, err)
			}
			if l, err = Repair(ctx, rescuing(o)); err != nil || l.Kept == "" {
				t.Fatalf("frame %d, %s: %+v, %v", no, from, l, err)
			}
			j := open(t, o) // which replays all of them
			if j.head != heads[30] {
				t.Errorf("frame %d, %s: the journal ends with %+v", no, from, j.head)
			}
			shut(t, j)
		}
	}
}

// flipFrame flips a bit of the content of a frame, in whatever files it is, and says where.
func flipFrame(t *testing.T, dir string, no uint64, r *rand.Rand) (where string) {
	t.Helper()
	j := open0(t, Options{Dir: dir, ReadOnly: true})
	b := value(t, j, no)
	shut(t, j)
	at, bit := engine.FrameOverhead+r.IntN(512), byte(1)<<r.IntN(8)
	mark := b[:engine.FrameOverhead] // of one piece in every file
	names, err := filepath.Glob(filepath.Join(dir, "journal", "*.*"))
	for _, name := range names {
		text, e := os.ReadFile(name)
		if i := bytes.Index(text, mark); e == nil && i >= 0 {
			text[i+at] ^= bit
			where += fmt.Sprintf("%s at %d ", filepath.Base(name), i+at)
			e = os.WriteFile(name, text, 0o600)
		}
		err = errors.Join(err, e)
	}
	if err != nil || where == "" {
		t.Fatalf("frame %d is in %q: %v", no, where, err)
	}
	return where
}
