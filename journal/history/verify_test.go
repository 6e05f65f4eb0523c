package history

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clobd/engine"
	"clobd/journal"
	"clobd/scripts/setting"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// verifyRun is what both checks found in a folder that nobody has open.
type verifyRun struct {
	journal *journal.Checked
	index   *Verdict
	refused error // the journal could not even be opened
}

// findings are all that is wrong.
func (v *verifyRun) findings() []journal.Finding {
	if v.refused != nil {
		return []journal.Finding{{Where: "journal", What: v.refused.Error()}}
	}
	return append(v.journal.Findings, v.index.Findings...)
}

// verify checks a folder.
func verify(t testing.TB, dir string) *verifyRun {
	t.Helper()
	v := &verifyRun{}
	j, err := journal.Open(journal.Options{Dir: dir, ReadOnly: true, Log: quiet()})
	if err != nil {
		v.refused = err
		return v
	}
	defer shut(t, j)
	v.journal, err = j.Verify(context.Background(), journal.VerifyOptions{Fresh: fresh})
	if err != nil {
		t.Fatal(err)
	}
	v.index, err = Verify(context.Background(), j, VerifyOptions{Scratch: t.TempDir(),
		Index: Options{Log: quiet(), patience: unhurried}, Last: v.journal.Head.Frame})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// folder makes a data folder with two checkpoints, a mark and an index that was opened several
// times, one of which ended with its process.
func folder(t testing.TB) (dir string, head engine.Head) {
	t.Helper()
	dir = t.TempDir()
	w := newExpectation(7)
	j, rested := open(t, journal.Options{Dir: dir}), 0
	for i := range 3 {
		_, end := follow(t, j, journal.FollowerOptions{})
		x, stop := run(t, j, Options{})
		x.fold.recent.keep = 10 // so small that lists have several runs
		w.write(t, j, 40, 1+12*i)
		for len(w.live) == 0 {
			w.write(t, j, 1, 3)
		}
		end()
		if !x.History.Await(w.head.Sequence, soon) {
			t.Fatal("the index does not follow")
		}
		rested = x.resting.live
		stop()
	}
	if rested == 0 {
		t.Fatal("no order rests")
	}
	w.write(t, j, 20, 3) // the index is behind
	shut(t, j)
	return dir, w.head
}

func TestVerify(t *testing.T) {
	dir, head := folder(t)
	before := listing(t, dir)
	v := verify(t, dir)
	if found := v.findings(); len(found) > 0 {
		t.Fatalf("findings %+v", found)
	}
	if v.journal.Head != head || v.journal.Frames != head.Frame || !v.journal.Marked ||
		v.journal.Replayed != uint64(head.Sequence) || v.journal.Commands != v.journal.Replayed ||
		v.journal.Checkpoints != 2 || v.journal.Compared != 2 || len(v.journal.Notes) > 0 {
		t.Errorf("verified %+v", v.journal)
	}
	if v.index.Rows < 500 || v.index.Sequence >= head.Sequence || len(v.index.Notes) > 0 {
		t.Errorf("index %+v", v.index)
	}
	for name, is := range listing(t, dir) {
		if was := before[name]; is != was && filepath.Base(name) != "LOCK" {
			t.Errorf("%s was changed", name)
		}
	}
}

// listing is what is in the files below a folder.
func listing(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// flipIn flips a bit in the middle of the first file of a pattern.
func flipIn(dir, pattern string) error {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		return errors.Join(err, errors.New("no file is like "+pattern))
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		return err
	}
	b[len(b)/2] ^= 4
	return os.WriteFile(names[0], b, 0o600)
}

// remark changes the mark of a folder.
func remark(dir string, change func(m *journal.Mark)) error {
	m, _, err := journal.ReadMark(nil, dir)
	change(&m)
	return errors.Join(err, journal.WriteMark(nil, dir, m))
}

// TestVerifyFindsDamage: each part that is not what it was is found and named.
func TestVerifyFindsDamage(t *testing.T) {
	setting.Full(t, "TestFlips stays")
	index := func(change func(db *pebble.DB) error) func(string) error {
		return func(dir string) error { return inDatabase(vfs.Default, filepath.Join(dir, "index"), change) }
	}
	for name, c := range map[string]struct {
		spoil       func(dir string) error
		where, what string
	}{
		"checkpoint": {func(dir string) error { return flipIn(dir, "checkpoints/*") }, "checkpoint", ""},
		"mark gone back": {func(dir string) error {
			return remark(dir, func(m *journal.Mark) { m.Hash[0]++ })
		}, "mark", "another frame"},
		"mark ahead": {func(dir string) error {
			return remark(dir, func(m *journal.Mark) { m.Frame, m.Sequence = m.Frame+5, m.Sequence+9 })
		}, "mark", "9 acknowledged commands are lost"},
		"mark torn":    {func(dir string) error { return os.Truncate(dir+"/mark", 50) }, "mark", "damaged"},
		"row gone":     {index(firstKey(spaceOrder, nil)), "index", "orders: 1 rows"},
		"row changed":  {index(firstKey(spacePurse, []byte{1, 0})), "index", "collateral: 1 rows"},
		"list gone":    {index(firstKey(spaceLists, nil)), "index", "lists of trades: "},
		"trades gone":  {index(firstKey(spaceDeals, nil)), "index", "trades: "},
		"notice":       {index(firstKey(spaceNotice, nil)), "index", "notices: 1 rows"},
		"mark of time": {index(firstKey(spaceMarks, []byte{9})), "index", "marks of time: 1"},
		"strange key": {index(func(db *pebble.DB) error {
			return db.Set([]byte("zz"), nil, nil)
		}), "index", "of no kind"},
		"resting log": {index(func(db *pebble.DB) error {
			return db.DeleteRange([]byte{spaceResting}, []byte{spaceResting + 1}, nil)
		}), "index", "resting orders: "},
		"place": {index(func(db *pebble.DB) error {
			return db.Delete(stateKey(metaPlace), nil)
		}), "index", "orders: "},
		"marked as such": {index(func(db *pebble.DB) error {
			return db.Set(stateKey(metaBroken), []byte("it is old"), nil)
		}), "index", "it is old"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := folder(t)
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			found := verify(t, dir).findings()
			for _, f := range found {
				if strings.Contains(f.Where, c.where) && strings.Contains(f.What, c.what) && f.Hint != "" {
					return
				}
			}
			t.Errorf("findings %+v", found)
		})
	}
}

// firstKey changes the value of the first key of a space, or deletes it.
func firstKey(space byte, value []byte) func(db *pebble.DB) error {
	return func(db *pebble.DB) error {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{space},
			UpperBound: []byte{space + 1}})
		if err != nil {
			return err
		}
		if !it.First() {
			return errors.Join(errors.New("there is none"), it.Close())
		}
		key := append([]byte(nil), it.Key()...)
		if err := it.Close(); err != nil {
			return err
		}
		if value == nil {
			return db.Delete(key, nil)
		}
		return db.Set(key, value, nil)
	}
}

// TestFlips: one flipped bit anywhere in the folder is found, or it changes nothing: then the
// journal holds what it held, and the index what the journal makes, if perhaps less of it than
// before, which a start folds again. CLOBD_SIZE says how many.
func TestFlips(t *testing.T) {
	dir, head := folder(t)
	whole := verify(t, dir)
	files := listing(t, dir)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	seed := setting.Seed(t, 11)
	r := rand.New(rand.NewPCG(seed, 5))
	found := 0
	usual := uint64(150)
	if testing.Short() {
		usual = 15
	}
	flips := int(setting.Number(t, "CLOBD_SIZE", usual))
	for range flips {
		// Files of one kind are as likely as those of another one, whatever their length.
		name := names[r.IntN(len(names))]
		b := []byte(files[name])
		if len(b) == 0 {
			continue
		}
		at := r.IntN(len(b))
		b[at] ^= 1 << r.IntN(8)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		v := verify(t, dir)
		switch {
		case len(v.findings()) > 0:
			found++
		case v.journal.Head != head, v.index.Sequence > whole.index.Sequence:
			t.Fatalf("CLOBD_SEED=%d: byte %d of %s: silent: %+v, %+v", seed, at, name, v.journal, v.index)
		}
		if err := os.WriteFile(name, []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("CLOBD_SEED=%d figures: flips=%d found=%d silent=0", seed, flips, found)
}
