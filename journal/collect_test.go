package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// scattered makes a folder as a killed process leaves it, with its frames in tables and in the log,
// two checkpoints and an index that goes as far as the second one.
func scattered(t *testing.T, frames int) (dir string, heads []engine.Head) {
	t.Helper()
	live, m := t.TempDir(), newMaker(9)
	j := open(t, Options{Dir: live})
	heads = append(heads, engine.Head{})
	for part := range 3 {
		_, end := follow(t, j, FollowerOptions{})
		for range frames / 3 {
			m.write(t, j, 1, 30)
			heads = append(heads, m.head)
		}
		if part < 2 {
			if err := j.db.Flush(); err != nil {
				t.Fatal(err)
			}
			end()
			standIn(t, live, m.head.Frame)
			continue
		}
		await(t, "the mark", func() bool {
			m, _, err := ReadMark(nil, live)
			return err == nil && m.Frame == uint64(len(heads)-1)
		})
		standIn(t, live, m.head.Frame)
		dir = copyLive(t, live)
		end()
	}
	shut(t, j)
	return dir, heads
}

// spoilers are what happens to files.
var spoilers = map[string]func(name string) error{
	"gone":  os.Remove,
	"empty": func(name string) error { return os.Truncate(name, 0) },
	"cut": func(name string) error {
		return rewrite(name, func(b []byte) []byte { return b[:len(b)/2] })
	},
	"flipped": func(name string) error {
		return rewrite(name, func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
	},
	"zeroed": func(name string) error {
		return rewrite(name, func(b []byte) []byte {
			clear(b[len(b)/3 : len(b)/3+len(b)/10])
			return b
		})
	},
}

// rewrite changes what of a file was written.
func rewrite(name string, how func(b []byte) []byte) error {
	b, err := os.ReadFile(name)
	if strings.HasSuffix(name, ".log") {
		b = used(b)
	}
	if err == nil && len(b) > 0 {
		err = os.WriteFile(name, how(b), 0o600)
	}
	return err
}

// TestSalvage: whatever happens to one file of the journal, a rescue says exactly what is lost,
// changes nothing before it is told to, and makes a journal that starts of what is left. Where
// nothing is lost it needs no leave.
func TestSalvage(t *testing.T) {
	stride, least := 1, 5
	if testing.Short() { // a log, a manifest and its marker
		stride, least = 3, 1
	}
	whole, heads := scattered(t, 60)
	names, err := filepath.Glob(filepath.Join(whole, "journal", "*"))
	if err != nil {
		t.Fatal(err)
	}
	repaired, accepted := 0, 0
	for i, name := range names {
		if i%stride != 1%stride {
			continue
		}
		for how, spoil := range spoilers {
			file := filepath.Base(name)
			if file == "LOCK" {
				continue
			}
			t.Run(file+" "+how, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "data")
				if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
					t.Fatal(err)
				}
				if err := spoil(filepath.Join(dir, "journal", file)); err != nil {
					t.Fatal(err)
				}
				switch rescued(t, dir, heads) {
				case repair:
					repaired++
				case accept:
					accepted++
				}
			})
		}
	}
	if repaired < least || accepted < least {
		t.Errorf("%d repaired, %d accepted", repaired, accepted)
	}
}

// rescued rescues a folder, and says what was needed.
func rescued(t *testing.T, dir string, heads []engine.Head) (needed int) {
	t.Helper()
	ctx, o, end := context.Background(), Options{Dir: dir, Log: quiet()}, heads[len(heads)-1]
	before := listing(t, dir)
	l, err := Diagnose(ctx, rescuing(o))
	if err != nil {
		t.Fatal(err)
	}
	if after := listing(t, dir); len(after) != len(before) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
	switch {
	case l.Why == nil:
		if l.Head != end || len(l.Holes) > 0 {
			t.Fatalf("nothing is wrong, and it ends at %+v with %v", l.Head, l.Holes)
		}
		return look
	case l.Final || Advice(l.Why) == "":
		t.Fatalf("no way out of %v", l.Why)
	}
	again, err := Repair(ctx, rescuing(o))
	if err != nil {
		t.Fatal(err)
	}
	needed = repair
	if !l.Whole {
		if again.Kept != "" {
			t.Fatal("it changed something without leave")
		}
		needed = accept
		if again, err = AcceptLoss(ctx, rescuing(o)); err != nil {
			t.Fatal(err)
		}
	}
	if again.Kept == "" || l.Head != again.Head || l.Head != heads[l.Head.Frame] {
		t.Fatalf("said %+v, did %+v", l, again)
	}
	mustHoldAll(t, dir, l, heads)
	return needed
}

// mustHoldAll says that a rescued folder has all that was not said to be lost, starts, and goes on.
func mustHoldAll(t *testing.T, dir string, l *Loss, heads []engine.Head) {
	t.Helper()
	_, last, count := l.Lost()
	end := heads[len(heads)-1].Sequence
	if l.Marked && count != uint64(end-l.Head.Sequence) || count > 0 && last != end ||
		l.Whole && count > 0 {
		t.Errorf("%d lost up to %d, of %d, after %d", count, last, end, l.Head.Sequence)
	}
	j := open0(t, Options{Dir: dir})
	defer shut(t, j)
	all, err := stretches(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	var holes []Hole
	before := engine.Sequence(0)
	for _, s := range all {
		if s.before != before {
			holes = append(holes, Hole{First: before + 1, Last: s.before})
		}
		before = s.head.Sequence
	}
	said := l.Holes
	if !l.Indexed {
		said = nil // it ends before them
	}
	same := slices.EqualFunc(holes, said, func(a, b Hole) bool {
		return a.First == b.First && a.Last == b.Last
	})
	if !same || before != l.Head.Sequence {
		t.Errorf("holes %v up to %d, said %v up to %d", holes, before, said, l.Head.Sequence)
	}
	r, err := j.Restore(context.Background(), fresh)
	if err != nil || r.Head != l.Head {
		t.Fatalf("the next start: %+v, %v", r, err)
	}
	if (l.Indexed || l.Whole) && !covered(t.Context(), j, l.Head.Frame) {
		t.Error("the index was put aside")
	}
}

// standIn makes what these tests take for an index: it says up to which frame it goes.
func standIn(t *testing.T, dir string, frame uint64) {
	t.Helper()
	err := os.MkdirAll(filepath.Join(dir, "index"), 0o700)
	text := []byte(strconv.FormatUint(frame, 10))
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "index", "frame"), text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// covered reports whether such an index goes as far as a frame.
func covered(_ context.Context, j *Journal, frame uint64) bool {
	text, err := os.ReadFile(filepath.Join(j.Dir, "index", "frame"))
	goes, bad := strconv.ParseUint(string(text), 10, 64)
	return err == nil && bad == nil && goes >= frame
}

// rescuing are the options of a rescue of a journal with these.
func rescuing(o Options) RescueOptions {
	return RescueOptions{Options: o, Fresh: fresh, Indexed: covered}
}

// open0 opens a journal without recovering.
func open0(t testing.TB, o Options) *Journal {
	t.Helper()
	o.Log = quiet()
	j, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestHistoryBeforeTheCheckpoint: what is damaged before the newest checkpoint keeps no node from
// starting as long as its index has the history. It is named all the same; and without the index
// the journal ends there.
func TestHistoryBeforeTheCheckpoint(t *testing.T) {
	for _, indexed := range []bool{true, false} {
		t.Run(fmt.Sprint("indexed=", indexed), func(t *testing.T) {
			dir, heads := scattered(t, 60)
			ctx, o := context.Background(), Options{Dir: dir, Log: quiet()}
			j := open0(t, Options{Dir: dir})
			b := value(t, j, 11)
			b[len(b)/2] ^= 3
			put(t, j, 11, b)
			err := errors.Join(j.db.Flush(), j.db.Compact(ctx, []byte{0}, []byte{255}, false))
			if err != nil {
				t.Fatal(err)
			}
			shut(t, j)
			if !indexed {
				if err := os.RemoveAll(filepath.Join(dir, "index")); err != nil {
					t.Fatal(err)
				}
			}
			l, err := Diagnose(ctx, rescuing(o))
			want := Hole{First: heads[10].Sequence + 1, Last: heads[11].Sequence, frame: 11, end: 11}
			if err != nil || l.Why == nil || len(l.Holes) != 1 || l.Holes[0] != want ||
				l.Indexed != indexed || l.Starts != indexed || l.Through != heads[40].Sequence || l.Whole {
				t.Fatalf("%+v, %v", l, err)
			}
			if end := heads[10]; indexed && l.Head != heads[60] || !indexed && l.Head != end {
				t.Errorf("good up to %+v", l.Head)
			}
			if rescued(t, dir, heads) != accept {
				t.Error("it was not asked for")
			}
			l, err = Diagnose(ctx, rescuing(o))
			if err != nil || l.Why != nil || (len(l.Holes) == 1) != indexed {
				t.Errorf("afterwards: %+v, %v", l, err)
			}
			backUpHole(t, dir, indexed)
		})
	}
}

// backUpHole: a journal that knows of a hole is backed up with the index that has its history, or
// not at all; the copy, and a copy of that, know it, too.
func backUpHole(t *testing.T, dir string, hole bool) {
	t.Helper()
	for range 2 {
		j := open0(t, Options{Dir: dir})
		r, err := j.Restore(context.Background(), fresh)
		if err != nil || (j.Hole == 11) != hole {
			t.Fatalf("restored %+v with hole %d, %v", r, j.Hole, err)
		}
		to := filepath.Join(t.TempDir(), "copy")
		if _, err := j.Backup(to, nil); hole && err == nil || !hole && err != nil {
			t.Errorf("backed up without the index: %v", err)
		}
		to = filepath.Join(t.TempDir(), "copy")
		c, err := j.Backup(to, func(dir string) error {
			return os.CopyFS(dir, os.DirFS(filepath.Join(j.Dir, "index")))
		})
		if err != nil || c.Hole != j.Hole || c.Head != r.Head {
			t.Fatalf("%+v, %v", c, err)
		}
		shut(t, j)
		l, err := Diagnose(context.Background(), rescuing(Options{Dir: to, Log: quiet()}))
		if err != nil || l.Why != nil || !l.Starts || l.Head != c.Head || l.Indexed != hole {
			t.Fatalf("the copy: %+v, %v", l, err)
		}
		dir = to
	}
}

// TestInterruptedSwap: a rescue that ends between its two steps is undone by whoever comes next, a
// start or another rescue.
func TestInterruptedSwap(t *testing.T) {
	for _, by := range []string{"start", "rescue", "reader"} {
		t.Run(by, func(t *testing.T) {
			dir, heads := scattered(t, 30)
			in := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
			if err := spoilers["cut"](newestLog(t, dir)); err != nil {
				t.Fatal(err)
			}
			err := errors.Join(os.Mkdir(in(lostPrefix+"1"), 0o700), os.Mkdir(in(lostPrefix+"2"), 0o700),
				os.Mkdir(in(freshFolder), 0o700),
				os.WriteFile(in(freshFolder, asideName), []byte(lostPrefix+"2"), 0o600),
				os.Rename(in("journal"), in(lostPrefix+"2", "journal")))
			if err != nil {
				t.Fatal(err)
			}
			var log safeBuffer
			o := Options{Dir: dir, Log: log.logger()}
			switch by {
			case "reader":
				o.ReadOnly = true
				if _, err := Open(o); err == nil || !strings.Contains(Advice(err), "clobd recover") {
					t.Fatal(err)
				}
				return
			case "start":
				j, err := Open(o)
				if err != nil {
					t.Fatal(err)
				}
				_, err = j.Restore(context.Background(), fresh)
				var lost *LossError
				if err != nil && !errors.As(err, &lost) || !strings.Contains(log.String(), "interrupted") {
					t.Errorf("%v, log %s", err, log.String())
				}
				shut(t, j)
			default:
				l, err := Diagnose(context.Background(), rescuing(o))
				if err != nil || l.Undone != in(lostPrefix+"2", "journal") {
					t.Fatalf("%+v, %v", l, err)
				}
			}
			rescued(t, dir, heads)
		})
	}
}

// TestForeignMark: the mark of another journal is named as such, and its own one is missed.
func TestForeignMark(t *testing.T) {
	for name, c := range map[string]struct {
		spoil         func(dir string) error
		what          string
		foreign, none bool
	}{
		"foreign": {func(dir string) error {
			return remark(dir, func(m *Mark) { m.Journal++ })
		}, "belongs to another journal", true, true},
		"folder": {func(dir string) error {
			return errors.Join(os.Remove(dir+"/mark"), os.Mkdir(dir+"/mark", 0o700))
		}, "folder", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, heads := killed(t, 10)
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			o := Options{Dir: dir, Log: quiet()}
			j := open0(t, Options{Dir: dir})
			_, err := j.Restore(context.Background(), fresh)
			if err == nil || !strings.Contains(err.Error(), c.what) ||
				!strings.Contains(Advice(err), "clobd recover --accept-loss") {
				t.Fatalf("%v", err)
			}
			shut(t, j)
			l, err := Diagnose(context.Background(), rescuing(o))
			if err != nil || l.Foreign != c.foreign || l.Marked == c.none || l.Whole ||
				l.Head != heads[10] {
				t.Fatalf("%+v, %v", l, err)
			}
			if l, err = AcceptLoss(context.Background(), rescuing(o)); err != nil || l.Kept == "" {
				t.Fatalf("%+v, %v", l, err)
			}
			shut(t, open(t, Options{Dir: dir}))
		})
	}
}

// TestEmptiedJournal: a journal that was begun and says nothing of itself any more is not begun
// anew.
func TestEmptiedJournal(t *testing.T) {
	dir, heads := killed(t, 10)
	if err := spoilers["empty"](newestLog(t, dir)); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	if _, err := Open(Options{Dir: dir, ReadOnly: true, Log: quiet()}); err == nil {
		t.Fatal("it opens")
	}
	for name, was := range before {
		if is, err := os.ReadFile(name); err != nil || string(is) != was {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
	if _, err := Open(Options{Dir: dir, Log: quiet()}); err == nil ||
		!strings.Contains(Advice(err), "clobd recover") {
		t.Fatalf("%v", err)
	}
	l, err := Diagnose(context.Background(), rescuing(Options{Dir: dir, Log: quiet()}))
	_, _, count := l.Lost()
	if err != nil || l.Head.Frame != 0 || count != uint64(heads[10].Sequence) {
		t.Fatalf("%+v, %v", l, err)
	}
}

// TestCollectForks: of two frames with one number the later start's is taken, if it goes on from
// the one before it.
func TestCollectForks(t *testing.T) {
	on := vfs.NewMem()
	j, m := open(t, Options{Dir: "data", FS: on}), newMaker(3)
	m.write(t, j, 8, 4)
	last := value(t, j, 8)
	var f engine.Frame
	if err := engine.DecodeFrame(last, &f); err != nil {
		t.Fatal(err)
	}
	prev := f.Prev
	f.Epoch++
	f.Encode(prev)
	later := f.Bytes
	f.Epoch++
	f.Encode(engine.Hash{1}) // of a later start, and of another chain
	stray := f.Bytes
	shut(t, j)
	for n, order := range [][][]byte{
		{last, later, stray}, {stray, later, last}, {later, stray, last}} {
		db := open(t, Options{Dir: fmt.Sprint("other", n), FS: on})
		r := &rescuer{ctx: context.Background(), o: &RescueOptions{Options: Options{FS: on}},
			drain: func() error { return nil }}
		path := filepath.Join("files", fmt.Sprint(n))
		if err := disk.MakeFolder(on, path); err != nil {
			t.Fatal(err)
		}
		source := reopen(t, on)
		for no := uint64(1); no < 8; no++ {
			order = append(order, value(t, source, no))
		}
		shut(t, source)
		for i, b := range order {
			name := filepath.Join(path, fmt.Sprintf("%06d.sst", i))
			if err := writeFile(on, name, "x"+string(b)); err != nil {
				t.Fatal(err)
			}
		}
		c, err := collect(r, path, db.db)
		if err != nil || len(c.seen) != 8 {
			t.Fatalf("%d frames, %v", len(c.seen), err)
		}
		if got := value(t, db, 8); string(got) != string(later) {
			t.Errorf("order %d: another frame was taken", n)
		}
		shut(t, db)
	}
}

// TestRescueAgain: a rescue that ends anywhere can be done again, and comes to the same; before it
// is done every start is refused.
func TestRescueAgain(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 6
	}
	whole, heads := scattered(t, 30)
	ctx := context.Background()
	logs, err := filepath.Glob(filepath.Join(whole, "journal", "*.log"))
	if err == nil {
		err = spoilers["cut"](logs[len(logs)-1])
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := Diagnose(ctx, rescuing(Options{Dir: whole, Log: quiet()}))
	if err != nil || want.Why == nil || want.Whole {
		t.Fatalf("%+v, %v", want, err)
	}
	steps := 0
	for done := false; !done; steps += stride {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		left := steps
		on := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
			inside := strings.Contains(op.Path, "/data/journal")
			switch op.Kind {
			case errorfs.OpRename, errorfs.OpMkdirAll, errorfs.OpRemoveAll, errorfs.OpCreate,
				errorfs.OpFileSync:
				if inside && op.Kind != errorfs.OpRename || strings.Contains(op.Path, "dbtmp") {
					return nil
				}
				if left--; left < 0 {
					return errorfs.ErrInjected
				}
			}
			return nil
		}))
		_, err := AcceptLoss(ctx, rescuing(Options{Dir: dir, FS: on, Log: quiet()}))
		if done = err == nil; !done && !errors.Is(err, errorfs.ErrInjected) {
			t.Fatalf("step %d: %v", steps, err)
		}
		l, err := Diagnose(ctx, rescuing(Options{Dir: dir, Log: quiet()}))
		if err != nil || l.Head != want.Head || done && l.Why != nil {
			t.Fatalf("step %d: %+v, %v", steps, l, err)
		}
		if l.Why == nil {
			continue
		}
		l, err = AcceptLoss(ctx, rescuing(Options{Dir: dir, Log: quiet()}))
		if err != nil || l.Head != heads[want.Head.Frame] {
			t.Fatalf("step %d, again: %+v, %v", steps, l, err)
		}
		if kept, err := filepath.Glob(filepath.Join(dir, lostPrefix+"*", "journal")); err != nil ||
			len(kept) == 0 {
			t.Errorf("step %d: the journal was not put aside: %v", steps, err)
		}
		j := open(t, Options{Dir: dir})
		if j.head != want.Head {
			t.Errorf("step %d: the next start comes to %+v", steps, j.head)
		}
		shut(t, j)
	}
	if steps < 8 {
		t.Errorf("it has %d steps only", steps)
	}
	t.Logf("%d steps", steps)
}

// TestRescueWithoutRoom: that a second journal has no room is said before anything is written.
func TestRescueWithoutRoom(t *testing.T) {
	dir, _ := killed(t, 10)
	if err := spoilers["empty"](newestLog(t, dir)); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "journal", "999999.sst")
	f, err := os.Create(large)
	if err == nil {
		err = errors.Join(f.Truncate(1<<43), f.Close())
	}
	if err != nil {
		t.Skipf("SKIPPED: no file larger than the disk can be made: %v", err)
	}
	before, o := size(t, dir), Options{Dir: dir, Log: quiet()}
	for _, do := range []func(context.Context, RescueOptions) (*Loss, error){Diagnose, AcceptLoss} {
		_, err := do(context.Background(), rescuing(o))
		if !errors.Is(err, errRoom) || !strings.HasPrefix(Advice(err), "make room") {
			t.Errorf("%v", err)
		}
	}
	if after := size(t, dir); after != before {
		t.Errorf("%d bytes became %d", before, after)
	}
}

// size is how many bytes all files of a folder have.
func size(t *testing.T, dir string) int64 {
	t.Helper()
	n, err := sizeOf(vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// writeFile makes the file path with that text.
func writeFile(fs vfs.FS, path, text string) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	return errors.Join(err, f.Close())
}
