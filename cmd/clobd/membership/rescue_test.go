package membership

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clobd/cmd/clobd/papers"
	"clobd/cmd/clobd/role"
	"clobd/engine"
	"clobd/journal"
)

// survivor makes the folder of a voter of three that has frames, of which the last ones are not
// known to be committed, and returns the Sequence of the last one.
func survivor(t *testing.T, data string) engine.Sequence {
	t.Helper()
	all, err := papers.Founders("a@x:1", data, []string{"b@x:2=" + t.TempDir(), "c@x:3=" +
		t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &Founding{All: all, Secrets: map[string][]byte{},
		Open:   func() (*journal.Journal, error) { return journal.Open(journal.Options{Dir: data}) },
		Others: func(data string) journal.Options { return journal.Options{Dir: data} }}
	if _, err := f.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	j, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	x := engine.NewExchange(0)
	if _, err := j.Recover(x, nil); err != nil {
		t.Fatal(err)
	}
	a := journal.Member(j)
	entries := []journal.Entry{{EntryID: journal.EntryID{Index: a.Last().Index + 1, Term: 2}}}
	frames := frames(t, x, 5)
	for _, b := range frames {
		entries = append(entries, journal.Entry{Data: b, EntryID: journal.EntryID{
			Index: entries[len(entries)-1].Index + 1, Term: 2}})
	}
	commit := entries[2].Index // the second frame
	if err = a.Write(entries, journal.Ballot{Term: 5, Vote: 2, Commit: commit}); err == nil {
		err = a.Settle()
	}
	if err = errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	return engine.Sequence(len(frames))
}

// frames are so many frames of one Command each, in term 2.
func frames(t *testing.T, x *engine.Exchange, count int) (all [][]byte) {
	t.Helper()
	var prev engine.Hash
	for i := range count {
		f := engine.Frame{Engine: engine.Version, No: uint64(i + 1), First: engine.Sequence(i + 1),
			Epoch: 2, Time: engine.Time(1000 + i), Commands: []engine.Command{{Kind: engine.Deposit,
				Cash: 5, Address: engine.Address{1}, ID: engine.OrderID{byte(i + 1)}}}}
		f.Events = x.Apply(&f.Commands[0], f.First, f.Time, nil)
		f.Ends = []uint32{uint32(len(f.Events))}
		f.Digest = x.Digest()
		f.Encode(prev)
		prev = f.Hash
		all = append(all, slices.Clone(f.Bytes))
	}
	return all
}

func rescue(data string) *Rescue {
	return &Rescue{Data: data, Agree: func(*papers.Passport, *role.Remains) error { return nil },
		Open: func() (*journal.Journal, error) { return journal.Open(journal.Options{Dir: data}) }}
}

// refounded checks that the folder is that of a voter alone in a cluster, with the whole journal.
func refounded(data string, who, was *papers.Passport, last engine.Sequence) error {
	read, _, err := papers.Read(data)
	if err != nil {
		return err
	}
	if read.Journal != was.Journal || read.ClusterText() == was.ClusterText() || read.ID != 4 ||
		read.ClusterText() != who.ClusterText() || read.Name != "a" || len(read.Members) != 1 {
		return fmt.Errorf("%+v after %+v", read, was)
	}
	if _, err := papers.ReadAuthority(data); err != nil {
		return err
	}
	old, err := papers.ReadPassport(papers.Folder(data) + ".of-" + was.ClusterText())
	if err != nil || old.ID != was.ID {
		return fmt.Errorf("the old papers: %+v %w", old, err)
	}
	if _, err := os.Stat(papers.Part(data)); err == nil {
		return errors.New("a part is left")
	}
	j, err := journal.Open(journal.Options{Dir: data})
	if err != nil {
		return err
	}
	r, err := role.Examine(context.Background(), j)
	if err == nil && (r.Head.Sequence != last || r.Agreed != r.Head || r.Term != 6 ||
		!slices.Equal(r.Voters, []uint64{4}) || !slices.Equal(r.Members, []string{"a@x:1"})) {
		err = fmt.Errorf("%+v", r)
	}
	return errors.Join(err, j.Close())
}

// TestRescueEnds interrupts a rescue at each of its steps and repeats the rescue. The new folder
// has all entries of the old one, committed or not.
func TestRescueEnds(t *testing.T) {
	ended := errors.New("ended")
	for last := 0; ; last++ {
		data, n := filepath.Join(t.TempDir(), "a"), 0
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		count := survivor(t, data)
		was, err := papers.ReadPassport(papers.Folder(data))
		if err != nil {
			t.Fatal(err)
		}
		r := rescue(data)
		var told *role.Remains
		r.Agree = func(who *papers.Passport, r *role.Remains) error {
			told = r
			return nil
		}
		r.step = func() error {
			if n++; n > last {
				return ended
			}
			return nil
		}
		who, err := r.Run(context.Background())
		if told == nil || told.Agreed.Sequence != 2 || told.Head.Sequence != count ||
			told.Term != 5 || told.Last.Index-told.Commit != 3 || told.Unknown != 1002 ||
			told.Highest != 3 || len(told.Members) != 3 {
			t.Fatalf("told: %+v", told)
		}
		if err == nil {
			if err := refounded(data, who, was, count); err != nil || last < 6 {
				t.Errorf("%d steps: %v", last, err)
			}
			return
		}
		if !errors.Is(err, ended) {
			t.Fatalf("step %d: %v", last, err)
		}
		r.step = nil
		if who, err = r.Run(context.Background()); err == nil {
			err = refounded(data, who, was, count)
		}
		if err != nil {
			t.Errorf("again after step %d: %v", last, err)
		}
		if _, err := r.Run(context.Background()); err == nil ||
			!strings.Contains(err.Error(), "a is the only voter") {
			t.Errorf("a third time: %v", err)
		}
	}
}

// TestRescueRefused: who does not agree has the folder as it was.
func TestRescueRefused(t *testing.T) {
	data := filepath.Join(t.TempDir(), "a")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	survivor(t, data)
	r, no := rescue(data), errors.New("no")
	r.Agree = func(*papers.Passport, *role.Remains) error { return no }
	if _, err := r.Run(context.Background()); !errors.Is(err, no) {
		t.Fatal(err)
	}
	if _, err := os.Stat(papers.Part(data)); err == nil {
		t.Error("a part is left")
	}
	j, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	remains, err := role.Examine(context.Background(), j)
	if err != nil || remains.Term != 5 || len(remains.Voters) != 3 || remains.Agreed.Sequence != 2 {
		t.Errorf("%+v %v", remains, err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	r.Data = filepath.Join(t.TempDir(), "none")
	if _, err := r.Run(context.Background()); !errors.Is(err, papers.ErrNone) {
		t.Error("no member's folder:", err)
	}
}
