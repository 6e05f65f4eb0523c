package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// donor is a member that leads, in tests.
type donor struct {
	a      *Agreed
	term   uint64
	last   uint64            // of its log; 0: what is committed
	change func(*Supply)     // spoils an answer
	sent   int               // frames
	asked  func(n int) error // before the nth answer
	count  int
}

// Goal is HealOptions'.
func (d *donor) Goal(_ context.Context, _ uint64) (Goal, error) {
	commit, _ := d.a.Committed()
	return Goal{Term: d.term, Last: max(commit, d.last), Created: 1}, nil
}

// Supply is HealOptions'. It gives few entries at once.
func (d *donor) Supply(_ context.Context, low uint64, omit []Frames) (*Supply, error) {
	if d.count++; d.asked != nil {
		if err := d.asked(d.count); err != nil {
			return nil, err
		}
	}
	commit, _ := d.a.Committed()
	entries, err := d.a.Entries(low, commit+1, 64<<10)
	if err != nil {
		return nil, err
	}
	s := &Supply{Entries: entries, Commit: commit}
	var f engine.Frame
	for i := range entries {
		if e := &entries[i]; e.Kind == 0 && len(e.Data) > 0 {
			if err := engine.DecodeFrame(e.Data, &f); err != nil {
				return nil, err
			}
			s.Frame, s.Hash = f.No, f.Hash
			if slices.ContainsFunc(omit, func(o Frames) bool { return o.First <= f.No && f.No <= o.Last }) {
				e.Data, e.Head.Frame = nil, f.No
			}
		}
	}
	if d.change != nil {
		d.change(s)
	}
	for i := range s.Entries {
		if s.Entries[i].Kind == 0 && len(s.Entries[i].Data) > 0 {
			d.sent++
		}
	}
	return s, nil
}

// twins are two members with the same log of 20 frames, some empty entries and words; the second is
// open, leads in term 4 and has two more.
func twins(t testing.TB, sick *vfs.MemFS) *donor {
	t.Helper()
	j, a := member(t, sick, genesis)
	k, b := member(t, vfs.NewMem(), genesis)
	m := newMaker(7)
	both := func(on []*Agreed, ballot Ballot, entries ...Entry) {
		t.Helper()
		for _, x := range on {
			settled(t, x, ballot, entries...)
			committed(t, x, x.Last().Index)
		}
	}
	index := uint64(1)
	next := func() uint64 { index++; return index }
	two := []*Agreed{a, b}
	for range 10 {
		both(two, Ballot{1, 1, index}, m.entry(next(), 1))
	}
	both(two, Ballot{3, 2, index}, Entry{EntryID: EntryID{next(), 3}})
	both(two, Ballot{3, 2, index}, Entry{EntryID: EntryID{next(), 3}, Kind: 1, Data: []byte("d")})
	for range 10 {
		both(two, Ballot{3, 2, index}, m.entry(next(), 3))
	}
	shut(t, j)
	shut(t, open(t, Options{Dir: "data", FS: sick, Words: io.Discard})) // its frames are in tables
	both(two[1:], Ballot{4, 1, index}, Entry{EntryID: EntryID{next(), 4}}, m.entry(next(), 4))
	t.Cleanup(func() { shut(t, k) })
	return &donor{a: b, term: 4}
}

func healing(on vfs.FS, d *donor) HealOptions {
	return HealOptions{Goal: d.Goal, Supply: d.Supply, Options: Options{Dir: "data", FS: on, ID: 77,
		Log: quiet(), Words: io.Discard, Exit: func(int) {}}}
}

// wholeAgain opens a healed journal, replays it, and compares it with the donor's.
func wholeAgain(t testing.TB, on vfs.FS, d *donor, what string) {
	t.Helper()
	j, err := Open(Options{Dir: "data", FS: on, Log: quiet(), Words: io.Discard, Exit: func(int) {}})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer shut(t, j)
	head, err := j.Recover(engine.NewExchange(7), nil)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	a := Member(j)
	commit, want := d.a.Committed()
	if head != want || a.Last() != d.a.Last() || a.Ballot().Term != 4 || j.ID != 77 {
		t.Fatalf("%s: %+v, %+v, %+v, %016x", what, head, a.Last(), a.Ballot(), j.ID)
	}
	mine, err := a.Entries(1, commit+1, 1<<30)
	others, e := d.a.Entries(1, commit+1, 1<<30)
	if err != nil || e != nil || len(mine) != len(others) {
		t.Fatalf("%s: %d of %d entries, %v %v", what, len(mine), len(others), err, e)
	}
	for i := range mine {
		if mine[i].EntryID != others[i].EntryID || mine[i].Kind != others[i].Kind ||
			string(mine[i].Data) != string(others[i].Data) {
			t.Fatalf("%s: entry %d differs", what, i+1)
		}
	}
	m := newMaker(7) // the log goes on
	for range 21 {
		m.frame(3)
	}
	for _, folder := range []string{salvageFolder, freshFolder, keptHealed} {
		if _, err := on.Stat(filepath.Join("data", folder)); err == nil {
			t.Errorf("%s: %s is still there", what, folder)
		}
	}
	settled(t, a, Ballot{5, 2, commit}, Entry{EntryID: EntryID{commit + 1, 5}})
}

// spoil changes a file.
func spoil(t testing.TB, on vfs.FS, path string, how func(b []byte)) {
	t.Helper()
	f, err := on.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	how(b)
	f, err = on.Create(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// flipped inverts one bit of each file of the journal for which the name ends so.
func flipped(t testing.TB, on vfs.FS, suffix string, r *rand.Rand) {
	t.Helper()
	names, err := on.List("data/journal")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	found := false
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) && !strings.HasPrefix(name, suffix) {
			continue
		}
		spoil(t, on, filepath.Join("data/journal", name), func(b []byte) {
			if len(b) > 0 {
				at := r.IntN(8 * len(b))
				b[at/8] ^= 1 << (at % 8)
			}
		})
		found = true
	}
	if !found {
		t.Fatalf("no file %s in %v", suffix, names)
	}
}

// TestHeal: whatever is damaged, the journal is that of the others afterwards, and what is good of
// it is not sent.
func TestHeal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	cases := map[string]func(fs *vfs.MemFS) error{
		"nothing":  func(*vfs.MemFS) error { return nil },
		"tables":   func(fs *vfs.MemFS) error { flipped(t, fs, ".sst", r); return nil },
		"logs":     func(fs *vfs.MemFS) error { flipped(t, fs, ".log", r); return nil },
		"manifest": func(fs *vfs.MemFS) error { flipped(t, fs, "MANIFEST", r); return nil },
		"gone":     func(fs *vfs.MemFS) error { return fs.RemoveAll("data/journal") },
		"one slot of the mark": func(fs *vfs.MemFS) error {
			f, err := fs.OpenReadWrite("data/mark", vfs.WriteCategoryUnspecified)
			if err == nil {
				_, err = f.WriteAt([]byte{255}, 40)
				err = errors.Join(err, f.Close())
			}
			return err
		},
		"the mark": func(fs *vfs.MemFS) error {
			f, err := fs.Create("data/mark", vfs.WriteCategoryUnspecified)
			return errors.Join(err, f.Close())
		},
	}
	for name, damage := range cases {
		fs := vfs.NewCrashableMem()
		d := twins(t, fs)
		if err := damage(fs); err != nil {
			t.Fatal(err)
		}
		told := uint64(0)
		o := healing(fs, d)
		o.Each = func(done, goal uint64) { told = goal - done }
		h, err := Heal(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name == "gone" && h.Fetched != 21 || name == "nothing" && (h.Fetched != 1 || h.Own != 20) ||
			h.Own+h.Fetched != 21 || int(h.Fetched) != d.sent || told == 0 {
			t.Errorf("%s: %+v, %d sent", name, h, d.sent)
		}
		wholeAgain(t, fs, d, name)
	}
}

// TestHealKeepsVote: who has voted in the leader's term, and does not know more, votes for nobody
// else afterwards.
func TestHealKeepsVote(t *testing.T) {
	for _, readable := range []bool{true, false} {
		fs := vfs.NewCrashableMem()
		d := twins(t, fs)
		j, a := member(t, fs)
		settled(t, a, Ballot{4, 9, a.commit})
		shut(t, j)
		if !readable {
			if err := fs.RemoveAll("data/journal"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Heal(t.Context(), healing(fs, d)); err != nil {
			t.Fatal(err)
		}
		if j, a = member(t, fs); a.Ballot().Vote != 9 || a.Ballot().Term != 4 {
			t.Errorf("readable %v: %+v", readable, a.Ballot())
		}
		shut(t, j)
	}
}

// TestHealRefuses: what cannot be right changes nothing.
func TestHealRefuses(t *testing.T) {
	last := func(s *Supply) *Entry { return &s.Entries[len(s.Entries)-1] }
	other := newMaker(8)
	for name, c := range map[string]struct {
		prepare func(fs *vfs.MemFS, d *donor)
		change  func(s *Supply)
		want    string
	}{
		"another frame": {change: func(s *Supply) { last(s).Data, s.Frame = other.frame(1).Bytes, 0 },
			want: "does not follow"},
		"another bit":   {change: func(s *Supply) { last(s).Data[40] ^= 1 }, want: "does not follow"},
		"another end":   {change: func(s *Supply) { s.Hash[0] ^= 1 }, want: "does not follow"},
		"a gap":         {change: func(s *Supply) { s.Entries = s.Entries[1:] }, want: "does not follow"},
		"another term":  {change: func(s *Supply) { last(s).Term = 5 }, want: "does not follow"},
		"not committed": {change: func(s *Supply) { s.Commit = 3 }, want: "does not follow"},
		"not there": {prepare: func(_ *vfs.MemFS, d *donor) { d.last = 99 },
			want: "of 99 entries of the leader's log are committed"},
		"an old leader": {prepare: func(_ *vfs.MemFS, d *donor) { d.term = 2 },
			want: "a leader of term 2 cannot know what this member answered in term 3"},
		"another journal's mark": {prepare: func(fs *vfs.MemFS, _ *donor) {
			if err := WriteMark(fs, "data", Mark{Journal: 5, Frame: 1}); err != nil {
				t.Fatal(err)
			}
		}, want: "belongs to the journal"},
		"another frame was acknowledged": {prepare: func(fs *vfs.MemFS, _ *donor) {
			m, _, err := ReadMark(fs, "data")
			m.Hash[0] ^= 1
			if err = errors.Join(err, WriteMark(fs, "data", m)); err != nil {
				t.Fatal(err)
			}
		}, want: "was acknowledged"},
		"neither mark nor journal": {prepare: func(fs *vfs.MemFS, _ *donor) {
			if err := errors.Join(fs.RemoveAll("data/journal"), fs.Remove("data/mark")); err != nil {
				t.Fatal(err)
			}
			if err := WriteMark(fs, "data", Mark{}); err != nil {
				t.Fatal(err)
			}
			f, err := fs.Create("data/mark", vfs.WriteCategoryUnspecified)
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}, want: errForgot.Error()},
	} {
		fs := vfs.NewCrashableMem()
		d := twins(t, fs)
		if d.change = c.change; c.prepare != nil {
			c.prepare(fs, d)
		}
		_, err := Heal(t.Context(), healing(fs, d))
		forgot := c.want == errForgot.Error()
		if err == nil || !strings.Contains(err.Error(), c.want) || IsForgotten(err) != forgot {
			t.Errorf("%s: %v", name, err)
		}
		if c.prepare != nil && d.last == 0 && d.term == 4 {
			continue
		}
		j, a := member(t, fs)
		if a.Last() != (EntryID{23, 3}) || j.Last() != 20 {
			t.Errorf("%s: the journal was changed: %+v", name, a.Last())
		}
		shut(t, j)
	}
}

// TestHealTakesNoStrangeFrame: a frame of its own that was never agreed on does not get into the
// new journal, although its checksum is right and it follows the one before it.
func TestHealTakesNoStrangeFrame(t *testing.T) {
	fs := vfs.NewCrashableMem()
	d := twins(t, fs)
	j, a := member(t, fs)
	m := newMaker(7)
	for i := range 20 {
		m.epoch = []uint64{1, 3}[i/10]
		m.frame(3)
	}
	m.command() // another one
	settled(t, a, Ballot{3, 2, 23}, m.entry(24, 3), m.entry(25, 3))
	shut(t, j)
	h, err := Heal(t.Context(), healing(fs, d))
	if err != nil || h.Own != 0 || h.Fetched != 21 { // of that answer all is asked for again
		t.Fatal(h, err)
	}
	wholeAgain(t, fs, d, "a stranger")
}

// TestHealPowerLoss: power fails at any step. Either the old journal is there or the new one, and
// healing once more succeeds.
func TestHealPowerLoss(t *testing.T) {
	mem := vfs.NewCrashableMem()
	d := twins(t, mem)
	tableDamage(t, Options{Dir: "data", FS: mem, Words: io.Discard}, 11)
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
	if h, err := Heal(t.Context(), healing(on, d)); err != nil || h.Own != 19 {
		t.Fatalf("%+v, %v", h, err)
	}
	clones, at = append(clones, mem.CrashClone(vfs.CrashCloneCfg{})), append(at, "the end")
	states := map[string]int{}
	for i, fs := range clones {
		j, err := Open(Options{Dir: "data", FS: fs, Log: quiet(), Words: io.Discard, Exit: func(int) {}})
		if err == nil {
			_, err = j.Recover(engine.NewExchange(7), nil)
			states[map[bool]string{true: "new", false: "old"}[err == nil]]++
			if err != nil && !CanHeal(err) {
				t.Errorf("%s: %v", at[i], err)
			}
			shut(t, j)
		} else if states["refused"]++; !CanHeal(err) {
			t.Errorf("%s: %v", at[i], err)
		}
		if _, err := Heal(t.Context(), healing(fs, d)); err != nil {
			t.Fatalf("%s: %v", at[i], err)
		}
		wholeAgain(t, fs, d, at[i])
	}
	t.Logf("%d clones: %v", len(clones), states)
	if states["old"] < 10 || states["new"] < 3 {
		t.Error("they are few")
	}
}

// TestHealBreaksOff: an answer that does not come leaves the old journal in its place.
func TestHealBreaksOff(t *testing.T) {
	fs := vfs.NewCrashableMem()
	d := twins(t, fs)
	broken := errors.New("hung up")
	d.asked = func(n int) error { return broken }
	if _, err := Heal(t.Context(), healing(fs, d)); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	j, a := member(t, fs)
	if a.Last() != (EntryID{23, 3}) {
		t.Error(a.Last())
	}
	shut(t, j)
	d.asked = nil
	if _, err := Heal(t.Context(), healing(fs, d)); err != nil {
		t.Fatal(err)
	}
	wholeAgain(t, fs, d, "again")
}

// TestSupplyInParts: many entries and many holes take many answers.
func TestSupplyInParts(t *testing.T) {
	fs := vfs.NewCrashableMem()
	j, a := member(t, fs, genesis)
	k, b := member(t, vfs.NewMem(), genesis)
	defer shut(t, k)
	m := newMaker(7)
	for i := range uint64(2000) {
		e := m.entry(i+2, 1)
		settled(t, b, Ballot{1, 1, i}, e)
		settled(t, a, Ballot{1, 1, i}, e)
	}
	committed(t, b, b.Last().Index)
	committed(t, a, a.Last().Index)
	last := j.Last()
	shut(t, j)
	shut(t, open(t, Options{Dir: "data", FS: fs, Words: io.Discard})) // its frames are in tables
	names, err := fs.List("data/journal")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log") {
			spoil(t, fs, filepath.Join("data/journal", name), func(b []byte) {
				for at := bytes.Index(b, frameStart); at >= 0; at = bytes.Index(b, frameStart) {
					if seen++; seen%3 == 0 {
						b[at] = 0
					}
					b = b[at+4:]
				}
			})
		}
	}
	d := &donor{a: b, term: 1}
	h, err := Heal(t.Context(), healing(fs, d))
	if err != nil || h.Own+h.Fetched != last || d.count < 3 || h.Own < last/4 || h.Fetched < last/4 {
		t.Fatalf("%+v of %d in %d answers: %v", h, last, d.count, err)
	}
	t.Logf("%d own, %d fetched, %d answers", h.Own, h.Fetched, d.count)
}

// TestScrubOfMember: damage of a member's frames and of its rows is found, and is for healing.
func TestScrubOfMember(t *testing.T) {
	for name, key := range map[string][]byte{
		"":      nil,
		"frame": func() []byte { k := frameKey(5); return k[:] }(),
		"row":   entryKey(spaceEntry, 7),
	} {
		fs := vfs.NewCrashableMem()
		twins(t, fs)
		j, _ := member(t, fs)
		if key != nil {
			if err := j.db.Delete(key, pebble.Sync); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Scrub(t.Context(), j, 0)
		if err != nil || (s.Journal != nil) != (key != nil) || key != nil && !CanHeal(s.Journal) ||
			key == nil && s.Damaged > 0 {
			t.Errorf("%s: %+v %v", name, s, err)
		}
		if s.Damaged > 0 { // of many damaged rows the first one is enough
			from, to := entryKey(spaceEntry, 3), entryKey(spaceEntry, 9)
			if err := j.db.DeleteRange(from, to, pebble.Sync); err != nil {
				t.Fatal(err)
			}
			if more, err := Scrub(t.Context(), j, 0); err != nil || name == "row" && more.Damaged != 1 {
				t.Errorf("%s: %+v %v", name, more, err)
			}
		}
		shut(t, j)
	}
}

// TestOtherDigestIsNoDamage: a member that computes something else than the one that leads names
// both digests, and does not heal: its journal is right.
func TestOtherDigestIsNoDamage(t *testing.T) {
	fs := vfs.NewCrashableMem()
	j, a := member(t, fs, genesis)
	m := newMaker(7)
	settled(t, a, Ballot{1, 1, 1}, m.entry(2, 1))
	m.epoch = 1
	f := m.frame(3)
	right := f.Digest
	f.Digest ^= 1
	f.Encode(f.Prev)
	settled(t, a, Ballot{1, 1, 2}, Entry{EntryID: EntryID{3, 1}, Data: f.Bytes})
	committed(t, a, 3)
	shut(t, j)
	j, err := Open(Options{Dir: "data", FS: fs, Log: quiet(), Words: io.Discard, Exit: func(int) {}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = j.Recover(engine.NewExchange(7), nil)
	for _, want := range []string{fmt.Sprintf("Digest %016x", right), fmt.Sprintf("recorded %016x", f.Digest),
		fmt.Sprintf("Sequence %d", f.Last())} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if CanHeal(err) {
		t.Error("it would heal")
	}
	shut(t, j)
}
