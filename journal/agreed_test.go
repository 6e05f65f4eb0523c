package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// member opens the journal of a member, and enrolls it if it is new.
func member(t testing.TB, fs vfs.FS, words ...Entry) (*Journal, *Agreed) {
	t.Helper()
	j := open(t, Options{Dir: "data", FS: fs, ID: 77, Words: io.Discard, Exit: func(int) {}})
	if a := Member(j); a != nil {
		return j, a
	}
	b := Ballot{Term: max(1, j.head.Epoch), Commit: j.head.Frame + uint64(len(words))}
	a, err := Enroll(j, words, b)
	if err != nil {
		t.Fatal(err)
	}
	return j, a
}

// settled writes and settles.
func settled(t testing.TB, a *Agreed, b Ballot, entries ...Entry) {
	t.Helper()
	if err := a.Write(entries, b); err != nil {
		t.Fatal(err)
	}
	if err := a.Settle(); err != nil {
		t.Fatal(err)
	}
}

// entry makes an entry of the maker's next frame.
func (m *maker) entry(index, term uint64) Entry {
	m.epoch = term
	return Entry{EntryID: EntryID{index, term}, Data: m.frame(3).Bytes}
}

// committed calls Commit for entries up to index.
func committed(t testing.TB, a *Agreed, index uint64) {
	t.Helper()
	from, _ := a.Committed()
	all, err := a.Entries(from+1, index+1, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if err := a.Commit(&all[i]); err != nil {
			t.Fatal(err)
		}
	}
}

var genesis = Entry{EntryID: EntryID{1, 1}, Kind: 1, Data: []byte("a, b, c")}

// TestMemberTakesBack: entries that are not committed can be replaced, frames go with them, and
// what is read afterwards, also after a start, is the new log.
func TestMemberTakesBack(t *testing.T) {
	fs := vfs.NewMem()
	j, a := member(t, fs, genesis)
	m := newMaker(1)
	settled(t, a, Ballot{1, 1, 1}, m.entry(2, 1), m.entry(3, 1))
	committed(t, a, 2)
	old := m.entry(5, 1)
	settled(t, a, Ballot{}, Entry{EntryID: EntryID{4, 1}}, old, m.entry(6, 1))
	if j.Last() != 1 || a.Last() != (EntryID{6, 1}) {
		t.Fatalf("readers see %d frames, the last entry is %+v", j.Last(), a.Last())
	}
	// A leader of term 3 has entries 3 and 4 instead.
	n := newMaker(1)
	n.entry(2, 1)
	settled(t, a, Ballot{3, 2, 2}, n.entry(3, 3),
		Entry{EntryID: EntryID{4, 3}, Kind: 2, Data: []byte("w")})
	check := func(a *Agreed) {
		t.Helper()
		all, err := a.Entries(1, a.Last().Index+1, 1<<30)
		text := ""
		for _, e := range all {
			some := min(len(e.Data), 1)
			text += fmt.Sprintf("%d/%d/%d/%d ", e.Index, e.Term, e.Kind, some)
		}
		if want := "1/1/1/1 2/1/0/1 3/3/0/1 4/3/2/1 "; err != nil || text != want {
			t.Fatalf("%v: %s", err, text)
		}
		if term, err := a.Term(3); term != 3 || err != nil {
			t.Fatal(term, err)
		}
		words, err := a.Words(4)
		if err != nil || len(words) != 2 || string(words[0].Data) != "a, b, c" || words[1].Kind != 2 {
			t.Fatal(words, err)
		}
		if some, err := a.Entries(2, 5, 1); len(some) != 1 || err != nil {
			t.Fatal("a bound of one byte", len(some), err)
		}
	}
	check(a)
	shut(t, j)
	j, a = member(t, fs)
	check(a)
	if a.Ballot() != (Ballot{3, 2, 2}) || j.Last() != 1 {
		t.Fatal(a.Ballot(), j.Last())
	}
	committed(t, a, 4)
	tail := j.Tail(1)
	for no := range uint64(2) {
		b, there, err := tail.Poll()
		var f engine.Frame
		if err != nil || !there || engine.DecodeFrame(b, &f) != nil || f.No != no+1 ||
			f.Epoch != []uint64{1, 3}[no] {
			t.Fatal(no, f.Epoch, there, err)
		}
	}
	if err := j.Append(n.frame(1)); !errors.Is(err, errMember) {
		t.Fatal("Append to a member's journal:", err)
	}
	shut(t, j)
}

// TestMemberCannotPromise: a journal that is open in another way is not written, and nobody but the
// other members rescues a damaged one.
func TestMemberCannotPromise(t *testing.T) {
	fs := vfs.NewMem()
	j, _ := member(t, fs, genesis)
	shut(t, j)
	for _, o := range []Options{{ReadOnly: true}, {Async: true}} {
		o.Dir, o.FS = "data", fs
		j := open(t, o)
		if err := Member(j).Write([]Entry{{EntryID: EntryID{2, 3}}}, Ballot{}); err == nil {
			t.Errorf("written: read-only %v, async %v", o.ReadOnly, o.Async)
		}
		shut(t, j)
	}
	refused := RescueOptions{Options: Options{Dir: "data", FS: fs, Log: quiet()}}
	if _, err := AcceptLoss(t.Context(), refused); !errors.Is(err, errMember) {
		t.Fatal("a rescue of a member's journal:", err)
	}
}

// TestMemberRefuses what cannot follow, and says so for good.
func TestMemberRefuses(t *testing.T) {
	m := newMaker(2)
	first := m.entry(2, 1)
	torn := m.entry(3, 1)
	torn.Data = bytes.Clone(torn.Data)
	torn.Data[40] ^= 1
	late := m.entry(3, 1)
	for what, entries := range map[string][]Entry{
		"a gap":               {first, late, {EntryID: EntryID{5, 1}}},
		"a term that goes":    {first, {EntryID: EntryID{3, 0}}},
		"a damaged frame":     {first, torn},
		"a frame too many":    {late},
		"what is committed":   {{EntryID: EntryID{1, 2}}},
		"another frame first": {{EntryID: EntryID{2, 1}, Data: late.Data}},
		"another term":        {{EntryID: EntryID{2, 2}, Data: first.Data}},
	} {
		j, a := member(t, vfs.NewMem(), genesis)
		if err := a.Write(entries, Ballot{}); err == nil {
			t.Errorf("%s is written", what)
		}
		if err := a.Write([]Entry{first}, Ballot{}); err == nil {
			t.Errorf("after %s the next entry is written", what)
		}
		shut(t, j)
	}
}

// TestMemberOfOldJournal: the frames that a node wrote alone are the first entries.
func TestMemberOfOldJournal(t *testing.T) {
	fs := vfs.NewMem()
	m := newMaker(3)
	j := open(t, Options{Dir: "data", FS: fs})
	m.write(t, j, 4, 2)
	shut(t, j)
	words := genesis
	words.EntryID = EntryID{5, 1}
	j, a := member(t, fs, words)
	settled(t, a, Ballot{2, 1, 5}, Entry{EntryID: EntryID{6, 2}}, m.entry(7, 2))
	committed(t, a, 7)
	shut(t, j)
	j, a = member(t, fs)
	defer shut(t, j)
	all, err := a.Entries(1, 8, 1<<30)
	if err != nil || len(all) != 7 || a.Base != 4 || j.Last() != 5 {
		t.Fatal(err, len(all), a.Base, j.Last())
	}
	for i, term := range []uint64{1, 1, 1, 1, 1, 2, 2} {
		if got, err := a.Term(uint64(i + 1)); got != term || all[i].Term != term || err != nil {
			t.Errorf("entry %d: term %d, %d, %v", i+1, got, all[i].Term, err)
		}
	}
	x := engine.NewExchange(1)
	if head, err := j.Recover(x, nil); err != nil || head != m.head || x.Digest() != m.x.Digest() {
		t.Fatal(head, err)
	}
}

// TestMemberCrashes: what Settle returned for is there after a crash, and the mark never promises
// more than the log has.
func TestMemberCrashes(t *testing.T) {
	fs := vfs.NewCrashableMem()
	_, a := member(t, fs, genesis)
	m := newMaker(4)
	var last []Promise
	for i := range uint64(30) {
		b := Ballot{Term: 1 + i/7, Vote: i%3 + 1, Commit: 1}
		if i == 10 {
			b = Ballot{}
		}
		settled(t, a, b, m.entry(i+2, 1+i/7))
		last = append(last, a.promised())
		if i%4 == 0 {
			if _, err := a.Note(); err != nil {
				t.Fatal(err)
			}
		}
		clone := fs.CrashClone(vfs.CrashCloneCfg{})
		j, after := member(t, clone)
		if after.promised() != last[i] {
			t.Fatalf("after write %d: %+v, promised %+v", i, after.promised(), last[i])
		}
		shut(t, j)
	}
}

// TestRefound: a member's journal becomes that of another cluster with all frames in it, and with
// nothing else of the old log. A crash at once afterwards changes nothing.
func TestRefound(t *testing.T) {
	fs := vfs.NewCrashableMem()
	j, a := member(t, fs, genesis)
	m := newMaker(5)
	settled(t, a, Ballot{2, 1, 1}, m.entry(2, 1), Entry{EntryID: EntryID{3, 2}}, m.entry(4, 2),
		Entry{EntryID: EntryID{5, 2}, Kind: 2, Data: []byte("w")}, m.entry(6, 2))
	committed(t, a, 4)
	words := []Entry{{EntryID: EntryID{4, 2}, Kind: 1, Data: []byte("d")}}
	if err := Refound(j, words, Ballot{Term: 2, Commit: 4}); err == nil {
		t.Fatal("the term does not rise")
	}
	words[0].Term = 3
	if err := Refound(j, words, Ballot{Term: 3, Commit: 4}); err != nil {
		t.Fatal(err)
	}
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	shut(t, j)
	for what, fs := range map[string]vfs.FS{"crashed": crashed, "closed": fs} {
		j, a := member(t, fs)
		all, err := a.Entries(1, a.Last().Index+1, 1<<30)
		text := ""
		for _, e := range all {
			text += fmt.Sprintf("%d/%d/%d ", e.Index, e.Term, e.Kind)
		}
		if want := "1/1/0 2/2/0 3/2/0 4/3/1 "; err != nil || text != want {
			t.Errorf("%s: %v %s", what, err, text)
		}
		if index, head := a.Committed(); index != 4 || head != m.head || j.Last() != 3 ||
			a.Ballot() != (Ballot{3, 0, 4}) || a.Base != 3 {
			t.Errorf("%s: entry %d, %+v, %+v", what, index, head, a.Ballot())
		}
		settled(t, a, Ballot{4, 1, 4}, Entry{EntryID: EntryID{5, 4}}, m.entry(6, 4))
		committed(t, a, 6)
		shut(t, j)
		if j, a = member(t, fs); j.Last() != 4 || a.Last() != (EntryID{6, 4}) {
			t.Errorf("%s: %d frames, %+v", what, j.Last(), a.Last())
		}
		shut(t, j)
		m = newMaker(5)
		m.entry(2, 1)
		m.entry(4, 2)
		m.entry(6, 2)
	}
	alone := open(t, Options{Dir: "alone", FS: fs, ID: 78})
	if err := Refound(alone, words, Ballot{Term: 9, Commit: 4}); err == nil {
		t.Error("the journal of a node that is alone")
	}
	shut(t, alone)
}

// TestMemberBehindCheckpoint: a checkpoint is of committed frames, even if neither ballot nor mark
// say so yet.
func TestMemberBehindCheckpoint(t *testing.T) {
	fs := vfs.NewCrashableMem()
	j, a := member(t, fs, genesis)
	m := newMaker(6)
	settled(t, a, Ballot{1, 1, 1}, m.entry(2, 1), m.entry(3, 1), m.entry(4, 1))
	committed(t, a, 3)
	x, f := engine.NewExchange(1), new(engine.Frame)
	tail := j.Tail(1)
	for range 2 {
		b, _, err := tail.Poll()
		if err = errors.Join(err, engine.DecodeFrame(b, f), x.ApplyFrame(f)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.Checkpoint(t.Context(), &State{Exchange: x}, f.Head()); err != nil {
		t.Fatal(err)
	}
	o, err := Open(Options{Dir: "data", FS: fs.CrashClone(vfs.CrashCloneCfg{}), Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	r, err := o.Restore(t.Context(), func() *State { return &State{Seed: 1} })
	if err != nil || r.Head != f.Head() || r.From == nil || o.Last() != 2 {
		t.Fatal(err, r.Head, r.From, o.Last())
	}
	if index, head := Member(o).Committed(); index != 3 || head != f.Head() ||
		Member(o).Last() != a.Last() {
		t.Fatal(index, head, Member(o).Last())
	}
	shut(t, o)
	shut(t, j)
}

// TestMemberForgot: a member whose log ends before its mark must not go on.
func TestMemberForgot(t *testing.T) {
	fs := vfs.NewCrashableMem()
	j, a := member(t, fs, genesis)
	m := newMaker(5)
	settled(t, a, Ballot{1, 2, 1}, m.entry(2, 1))
	short := fs.CrashClone(vfs.CrashCloneCfg{})
	lost := &LossError{member: true}
	if text := lost.Error(); strings.Contains(text, "recover") || !strings.Contains(text, "join") {
		t.Error(text)
	}
	for what, write := range map[string]func(){
		"an entry": func() { settled(t, a, Ballot{}, m.entry(3, 1)) },
		"a vote":   func() { settled(t, a, Ballot{2, 3, 1}) },
	} {
		write()
		if _, err := a.Note(); err != nil {
			t.Fatal(err)
		}
		mark, _, err := ReadMark(fs, "data")
		if err != nil {
			t.Fatal(err)
		}
		lost := short.CrashClone(vfs.CrashCloneCfg{})
		if err := WriteMark(lost, "data", mark); err != nil {
			t.Fatal(err)
		}
		o, err := Open(Options{Dir: "data", FS: lost, Log: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		var forgot *PromiseError
		if _, err := o.Recover(nil, nil); !errors.As(err, &forgot) || forgot.Promise != mark.Promise {
			t.Errorf("%s is lost: %v", what, err)
		}
		shut(t, o)
	}
	shut(t, j)
}

// TestMemberOfLaterVersion: the last frame of a member, of which nobody knows whether it was
// committed, is of a later version. No other member heals that.
func TestMemberOfLaterVersion(t *testing.T) {
	fs := vfs.NewMem()
	j, a := member(t, fs, genesis)
	m := newMaker(5)
	settled(t, a, Ballot{1, 2, 1}, m.entry(2, 1), m.entry(3, 1))
	later := bytes.Clone(value(t, j, 2))
	later[4]++ // the format
	put(t, j, 2, later)
	shut(t, j)
	o, err := Open(Options{Dir: "data", FS: fs, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	var broken *Break
	if _, err := o.Recover(nil, nil); !errors.As(err, &broken) || CanHeal(err) || broken.Frame != 2 ||
		broken.What != "of another version" {
		t.Errorf("%+v", err)
	}
	shut(t, o)
}

// TestMarkOfMember: the mark of a node that is alone stays what it was, to the byte.
func TestMarkOfMember(t *testing.T) {
	alone := Mark{Journal: 1, Frame: 2, Sequence: 3, Hash: engine.Hash{4}}
	of := alone
	of.Promise = Promise{EntryID{5, 6}, 7, 8}
	a, b := alone.encode(9), of.encode(9)
	if a[8] != markFormat || b[8] != markMember || !slices.Equal(a[16:80], b[16:80]) {
		t.Errorf("%x\n%x", a[:128], b[:128])
	}
	for _, want := range []Mark{alone, of} {
		if got, turn, ok := decodeMark(want.encode(9)); got != want || turn != 9 || !ok {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for i := range markSize + promised {
		b[i] ^= 4
		if got, _, ok := decodeMark(b); ok {
			t.Errorf("a flip in byte %d is read as %+v", i, got)
		}
		b[i] ^= 4
	}
}
