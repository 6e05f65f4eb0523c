package membership

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clobd/cmd/clobd/papers"
	"clobd/cmd/clobd/role"
	"clobd/engine"
	"clobd/journal"
)

// founding is one of a voter and a gateway.
func founding(t *testing.T, folder string) *Founding {
	t.Helper()
	at := func(name string) string { return filepath.Join(folder, name) }
	all, err := papers.Founders("a@x:1", at("a"), nil, []string{"g@x:2=" + at("g")})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(at("a"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &Founding{All: all, Secrets: map[string][]byte{"master.key": []byte("secret")},
		Open:   func() (*journal.Journal, error) { return journal.Open(journal.Options{Dir: at("a")}) },
		Others: func(data string) journal.Options { return journal.Options{Dir: data} }}
}

// whole checks that all folders are those of members of one cluster that could start.
func whole(f *Founding, cluster uint64) (err error) {
	for i := range f.All {
		x := &f.All[i]
		who, _, wrong := papers.Read(x.Data)
		if wrong != nil || who.ID != x.ID || who.Journal != papers.JournalID(cluster) {
			err = errors.Join(err, wrong, fmt.Errorf("%s: %+v", x.Name, who))
		}
		j, wrong := journal.Open(journal.Options{Dir: x.Data})
		if wrong == nil {
			_, wrong = j.Recover(engine.NewExchange(0), nil)
			if journal.Member(j) == nil || j.ID != cluster {
				err = errors.Join(err, fmt.Errorf("%s: not a member's journal", x.Name))
			}
			wrong = errors.Join(wrong, j.Close())
		}
		if _, there := os.Stat(papers.Part(x.Data)); there == nil {
			err = errors.Join(err, fmt.Errorf("%s: a part is left", x.Name))
		}
		if text, wrong := os.ReadFile(filepath.Join(x.Data, "master.key")); i > 0 &&
			(wrong != nil || string(text) != "secret") {
			err = errors.Join(err, fmt.Errorf("%s: the secret is %q %w", x.Name, text, wrong))
		}
		err = errors.Join(err, wrong)
	}
	return err
}

// TestFoundingEnds ends a founding at each of its steps, and carries it out again.
func TestFoundingEnds(t *testing.T) {
	ended := errors.New("ended")
	for last := 0; ; last++ {
		f, n := founding(t, t.TempDir()), 0
		f.step = func() error {
			if n++; n > last {
				return ended
			}
			return nil
		}
		_, err := f.Run(context.Background())
		if err == nil {
			if last < 12 {
				t.Errorf("only %d steps", last)
			}
			return
		}
		if !errors.Is(err, ended) {
			t.Fatalf("step %d: %v", last, err)
		}
		if _, _, err := papers.Read(f.All[0].Data); last < n-1 && !errors.Is(err, papers.ErrNone) {
			t.Errorf("step %d: the first one is a member before all is done: %v", last, err)
		}
		f.step = nil
		cluster, err := f.Run(context.Background())
		if err == nil {
			err = whole(f, cluster)
		}
		if err != nil {
			t.Errorf("again after step %d: %v", last, err)
		}
		if _, err := f.Run(context.Background()); err == nil ||
			!strings.Contains(err.Error(), "a member already") {
			t.Errorf("a third time: %v", err)
		}
	}
}

// TestFoundingOthers: a founding that has begun goes on with the same members and with no others,
// and one that has not begun touches no folder of somebody else.
func TestFoundingOthers(t *testing.T) {
	folder := t.TempDir()
	f := founding(t, folder)
	foreign := filepath.Join(folder, "g", "letters")
	if err := errors.Join(os.Mkdir(filepath.Dir(foreign), 0o700),
		os.WriteFile(foreign, []byte("dear"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a used folder: %v", err)
	}
	j, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	if journal.Member(j) != nil {
		t.Error("a member's journal after a refusal")
	}
	if err := errors.Join(j.Close(), os.Remove(foreign)); err != nil {
		t.Fatal(err)
	}
	f.step = func() error { // just after the one write
		j, err := journal.Open(journal.Options{Dir: f.All[0].Data})
		if err == nil { // nobody has it open any more
			return errors.Join(errors.New("ended"), j.Close())
		}
		return nil
	}
	if _, err := f.Run(context.Background()); err == nil {
		t.Fatal("did not end")
	}
	f.step = nil
	other := founding(t, folder)
	other.All = other.All[:1]
	if _, err := other.Run(context.Background()); err == nil ||
		!strings.Contains(err.Error(), "begun with other members here: a@x:1 g@x:2") {
		t.Errorf("other members: %v", err)
	}
	cluster, err := f.Run(context.Background())
	if err == nil {
		err = whole(f, cluster)
	}
	if err != nil {
		t.Error(err)
	}
	j, err = journal.Open(journal.Options{Dir: f.All[0].Data})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Restore(context.Background(), role.Fresh); err != nil {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
