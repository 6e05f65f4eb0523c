package role

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/cmd/clobd/copies"
	"clobd/cmd/clobd/papers"
	"clobd/engine"
	"clobd/journal"
	"clobd/journal/raft"
)

// someJournal is the id of the journal of all members in these tests.
const someJournal = 77

// giving makes the journal of a member that has seven entries, six of them frames, and knows that
// so many are committed.
func giving(t *testing.T, commit int) *journal.Journal {
	t.Helper()
	o := journal.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	if err := Follow(o, someJournal); err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	if _, err := j.Recover(engine.NewExchange(0), nil); err != nil {
		t.Fatal(err)
	}
	x, prev := engine.NewExchange(0), engine.Hash{}
	entries := []journal.Entry{{EntryID: journal.EntryID{Index: 1, Term: 4}}}
	for i := range 6 {
		f := engine.Frame{Engine: engine.Version, No: uint64(i + 1), First: engine.Sequence(i + 1),
			Epoch: 4, Time: engine.Time(1000 + i), Commands: []engine.Command{{Kind: engine.Deposit,
				Cash: 5, Address: engine.Address{1}, ID: engine.OrderID{byte(i + 1)}}}}
		f.Events = x.Apply(&f.Commands[0], f.First, f.Time, nil)
		f.Ends, f.Digest = []uint32{uint32(len(f.Events))}, x.Digest()
		f.Encode(prev)
		prev = f.Hash
		entries = append(entries, journal.Entry{Data: slices.Clone(f.Bytes),
			EntryID: journal.EntryID{Index: uint64(i + 2), Term: 4}})
	}
	a := journal.Member(j)
	err = errors.Join(a.Write(entries, journal.Ballot{Term: 6, Vote: 2, Commit: 1}), a.Settle())
	for i := 0; err == nil && i < commit; i++ {
		err = a.Commit(&entries[i])
	}
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// taking makes the folder of a member with an empty journal and that ballot, and the copy in it.
func taking(t *testing.T, from *journal.Journal, own journal.Ballot) *helpers {
	t.Helper()
	o := journal.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	err := Follow(o, someJournal)
	var j *journal.Journal
	if err == nil {
		j, err = journal.Open(o)
	}
	if err == nil {
		_, err = j.Recover(engine.NewExchange(0), nil)
	}
	if a := journal.Member(j); err == nil {
		err = errors.Join(a.Write(nil, own), a.Settle(), j.Close())
	}
	if err == nil {
		err = os.Mkdir(filepath.Dir(copies.Whole(o.Dir)), 0o700)
	}
	if err == nil {
		_, err = from.Backup(copies.Whole(o.Dir), func(dir string) error { return os.Mkdir(dir, 0o700) })
	}
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	s := &helpers{conn: near, patient: &patient{Options: &Options{Data: o.Dir, Log: o.Log,
		Renewing: func(string, string) {}, Witnesses: func(string) []journal.Witness { return nil },
		Cluster: &Cluster{Journal: someJournal}}}}
	if !s.isEmpty() {
		t.Fatal("not empty")
	}
	return s
}

// leads answers as the member that leads; lie changes the answer.
func leads(s *helpers, log *journal.Journal, lie func(*journal.Supply)) {
	near, far := net.Pipe()
	s.conn = near
	go func() {
		defer far.Close()
		for {
			var q healQuestion
			if papers.Listen(far, &q, longestHello) != nil {
				return
			}
			given, _ := raft.Supply(log, q.Low, q.Omit)
			lie(given)
			_ = papers.Say(far, &healAnswer{Supply: given})
		}
	}()
}

// TestInstall: of a copy a member makes a journal with its own ballot, and without what is not
// committed.
func TestInstall(t *testing.T) {
	from := giving(t, 5)
	for what, c := range map[string]struct{ own, want journal.Ballot }{
		"new":           {journal.Ballot{}, journal.Ballot{Term: 4, Commit: 5}},
		"of an old day": {journal.Ballot{Term: 3, Vote: 3}, journal.Ballot{Term: 4, Commit: 5}},
		"voted":         {journal.Ballot{Term: 4, Vote: 3}, journal.Ballot{Term: 4, Vote: 3, Commit: 5}},
		"later":         {journal.Ballot{Term: 9, Vote: 1}, journal.Ballot{Term: 9, Vote: 1, Commit: 5}},
	} {
		s := taking(t, from, c.own)
		leads(s, from, func(*journal.Supply) {})
		h, err := s.install(context.Background())
		if err == nil {
			err = s.place()
		}
		if err != nil || h.Last != (journal.EntryID{Index: 5, Term: 4}) || h.Head.Frame != 4 {
			t.Fatalf("%s: %+v %v", what, h, err)
		}
		j, err := journal.Open(journal.Options{Dir: s.Data, Log: s.Log})
		if err != nil {
			t.Fatal(err)
		}
		head, err := j.Recover(engine.NewExchange(0), nil)
		a := journal.Member(j)
		if commit, _ := a.Committed(); err != nil || head != h.Head || a.Ballot() != c.want ||
			a.Last() != h.Last || commit != 5 || j.Created != from.Created || s.isEmpty() {
			t.Errorf("%s: %+v %+v %+v %v", what, head, a.Ballot(), a.Last(), err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.begin(context.Background()); err != nil || copies.Resume(s.Data) != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestInstallRefused: a copy that does not end as the leader says, one of another journal, one
// whose index knows more, and a damaged one change nothing.
func TestInstallRefused(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(s *helpers) error
		lie   func(*journal.Supply)
		want  string
	}{
		"another frame": {lie: func(x *journal.Supply) { x.Entries[0].Data[90] ^= 1 },
			want: "the leader does not have"},
		"another term": {lie: func(x *journal.Supply) { x.Entries[0].Term++ },
			want: "the leader does not have"},
		"a shorter log": {lie: func(x *journal.Supply) { x.Entries = []journal.Entry{{Kind: 1}} },
			want: "the leader does not have"},
		"another journal": {spoil: func(s *helpers) error { s.Cluster.Journal++; return nil },
			want: "the copy is of journal"},
		"an index ahead": {spoil: func(s *helpers) error {
			s.Witnesses = func(dir string) []journal.Witness {
				return []journal.Witness{{Mark: journal.Mark{Journal: someJournal, Frame: 7}}}
			}
			return nil
		}, want: "frame 7 was acknowledged"},
		"no journal": {spoil: func(s *helpers) error {
			return os.RemoveAll(filepath.Join(copies.Whole(s.Data), "journal"))
		}, want: "gone"},
	} {
		from := giving(t, 7)
		s := taking(t, from, journal.Ballot{})
		if c.spoil != nil {
			if err := c.spoil(s); err != nil {
				t.Fatal(err)
			}
		}
		if c.lie == nil {
			c.lie = func(*journal.Supply) {}
		}
		leads(s, from, c.lie)
		h, err := s.install(context.Background())
		if !errors.Is(err, errBad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v %v", what, h, err)
		}
		if !s.isEmpty() {
			t.Errorf("%s: the member's journal has changed", what)
		}
	}
}

// TestSettle: a copy stays if the leader was lost, the disk is full or the node stops; a bad copy
// goes, and its giver is not asked again.
func TestSettle(t *testing.T) {
	s := taking(t, giving(t, 5), journal.Ballot{})
	_ = s.conn.Close()
	_, lost := s.install(t.Context())
	from := begun(t, s).From
	for _, err := range []error{nil, lost, bad(&fs.PathError{Err: syscall.ENOSPC}), context.Canceled} {
		if e := s.settle(err); !errors.Is(e, err) || copies.Resume(s.Data) == nil || len(s.liars) > 0 {
			t.Errorf("%v: %v, %v", err, e, s.liars)
		}
	}
	if lost == nil {
		t.Error("without a leader a copy is taken")
	}
	err := s.settle(bad(journal.ErrClosed))
	if !errors.Is(err, errBad) || copies.Resume(s.Data) != nil || !slices.Contains(s.liars, from) {
		t.Errorf("%v: %v", err, s.liars)
	}
	s.leader = from
	if err := s.fetch(t.Context()); err == nil { // it has no network
		t.Error("no giver is left")
	}
}

// TestConfirm: the last frame and the last entry of a copy may be more than one answer apart.
func TestConfirm(t *testing.T) {
	j := giving(t, 7)
	a, entries := journal.Member(j), []journal.Entry{}
	for i := range uint64(6) {
		entries = append(entries, journal.Entry{Kind: 1, Data: make([]byte, 700<<10),
			EntryID: journal.EntryID{Index: 8 + i, Term: 5}})
	}
	if err := errors.Join(a.Write(entries, journal.Ballot{Term: 6, Vote: 2, Commit: 7}),
		a.Settle()); err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		if err := a.Commit(&entries[i]); err != nil {
			t.Fatal(err)
		}
	}
	s := &helpers{patient: &patient{Options: &Options{Cluster: &Cluster{Journal: someJournal}}}}
	leads(s, j, func(*journal.Supply) {})
	if last, err := s.confirm(t.Context(), j); err != nil || last != entries[5].EntryID {
		t.Errorf("%+v %v", last, err)
	}
	leads(s, j, func(x *journal.Supply) {
		if end := &x.Entries[len(x.Entries)-1]; end.Index == 13 {
			end.Data[9]++
		}
	})
	if last, err := s.confirm(t.Context(), j); !errors.Is(err, errBad) {
		t.Errorf("%+v %v", last, err)
	}
	leads(s, j, func(x *journal.Supply) { x.Entries = x.Entries[:1] }) // its disk is slower
	if last, err := s.confirm(t.Context(), j); err != nil || last != entries[5].EntryID {
		t.Errorf("a leader that has the rest a moment later: %+v %v", last, err)
	}
}

// TestInstallInterrupted: a copy goes on after a crash between the two renames, which leave no
// journal, and after one behind them nothing of it stays.
func TestInstallInterrupted(t *testing.T) {
	from := giving(t, 5)
	s := taking(t, from, journal.Ballot{Term: 9, Vote: 3})
	in := func(parts ...string) string { return filepath.Join(append([]string{s.Data}, parts...)...) }
	if err := errors.Join(os.Mkdir(in("lost-healed"), 0o700), os.Mkdir(in("journal.new"), 0o700),
		os.Rename(in("journal"), in("lost-healed", "journal")),
		os.WriteFile(in("journal.new", "aside"), []byte("lost-healed"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if !s.isEmpty() {
		t.Fatal("the journal is not put back")
	}
	leads(s, from, func(*journal.Supply) {})
	if _, err := s.install(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := s.begin(context.Background()); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(in("*"))
	for i, name := range names {
		names[i] = filepath.Base(name)
	}
	if want := []string{"journal", "mark"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v are left, not %v: %v", names, want, err)
	}
}

// TestVotersDoNotCopy: the others may need the vote of a member that has one, so it copies nothing,
// and what is there of a copy goes.
func TestVotersDoNotCopy(t *testing.T) {
	s := taking(t, giving(t, 5), journal.Ballot{})
	begun(t, s)
	s.Cluster.ID, s.Cluster.Known = 2, []papers.Fellow{{ID: 1}, {ID: 2}}
	s.Renewing = func(part, _ string) { t.Errorf("%q", part) }
	if err := s.begin(t.Context()); err != nil || copies.Resume(s.Data) != nil {
		t.Errorf("%v: %+v", err, copies.Resume(s.Data))
	}
}

// TestFetched: of a copy that is complete nothing is asked for again, whoever is there.
func TestFetched(t *testing.T) {
	s := taking(t, giving(t, 5), journal.Ballot{})
	if err := begun(t, s).Run(func(q *copies.Question) (*copies.Answer, error) {
		return &copies.Answer{}, nil
	}, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	if err := s.fetch(t.Context()); err != nil { // it has no network
		t.Error(err)
	}
}

// TestFetchLater: a copy stays that was begun if its giver does not answer.
func TestFetchLater(t *testing.T) {
	s := taking(t, giving(t, 5), journal.Ballot{})
	s.network = raft.NewNetwork(raft.NetworkOptions{ID: 1, Log: s.Log})
	defer s.network.Close()
	s.known, s.leader = map[uint64]bool{2: true, 3: true}, 2
	begun(t, s)
	if err := s.fetch(t.Context()); err == nil || errors.Is(err, errRefused) ||
		copies.Resume(s.Data) == nil {
		t.Errorf("%v, %+v", err, copies.Resume(s.Data))
	}
}

// patientConn is a connection on which an answer may take for ever.
type patientConn struct{ net.Conn }

// SetDeadline sets none.
func (patientConn) SetDeadline(time.Time) error { return nil }

// TestStopInACopy: a stop ends a copy whose giver does not answer, be it the first question or a
// later one, and what was begun stays.
func TestStopInACopy(t *testing.T) {
	for _, first := range []bool{true, false} {
		s := taking(t, giving(t, 5), journal.Ballot{})
		s.Cluster.ID = 9
		var taker *copies.Taker
		if !first {
			taker = begun(t, s)
			taker.Files[0].Size = 8
		}
		near, far := net.Pipe()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.takeOver(ctx, patientConn{near}, 3, taker) }()
		var q healQuestion
		if err := papers.Listen(far, &q, longestHello); err != nil || q.Copy.Begin != first {
			t.Fatalf("%+v %v", q.Copy, err)
		}
		stop()
		select {
		case err := <-ended:
			if err == nil || (copies.Resume(s.Data) == nil) != first {
				t.Errorf("%v, %+v", err, copies.Resume(s.Data))
			}
		case <-time.After(time.Minute):
			t.Error("a stop waits for an answer")
		}
		near.Close()
		far.Close()
	}
}

// TestRefused: a giver that refuses is told from one that does not answer.
func TestRefused(t *testing.T) {
	near, far := net.Pipe()
	answers := []healAnswer{{Copy: &copies.Answer{Refused: "no room"}}, {},
		{Copy: &copies.Answer{Size: copies.Chunk + 1}}}
	go func() {
		defer far.Close()
		for i := range answers {
			var q healQuestion
			if papers.Listen(far, &q, longestHello) != nil || papers.Say(far, &answers[i]) != nil {
				return
			}
		}
	}()
	for i := range len(answers) + 1 {
		_, err := askCopy(near, &copies.Question{Begin: true}, time.Minute)
		if err == nil || errors.Is(err, errRefused) != (i < len(answers)) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// begun lets a member begin a copy of member 3.
func begun(t *testing.T, s *helpers) *copies.Taker {
	t.Helper()
	taker, err := copies.Begin(s.Data, 3, &copies.Manifest{ID: strings.Repeat("a", 32),
		Files: []copies.File{{Name: "mark"}, {Name: "journal/1.log"}}})
	if err != nil {
		t.Fatal(err)
	}
	return taker
}
