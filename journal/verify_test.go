package journal

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
	"clobd/scripts/setting"
)

// verify checks a folder that nobody has open. That it cannot be opened is a Finding.
func verify(t testing.TB, dir string) *Checked {
	t.Helper()
	j, err := Open(Options{Dir: dir, ReadOnly: true, Log: quiet()})
	if err != nil {
		return &Checked{Findings: []Finding{{"journal", err.Error(), ""}}}
	}
	defer shut(t, j)
	v, err := j.Verify(context.Background(), VerifyOptions{Fresh: fresh})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// folder makes a data folder with two checkpoints and a mark.
func folder(t testing.TB) (dir string, head engine.Head) {
	t.Helper()
	dir = t.TempDir()
	j, m := open(t, Options{Dir: dir}), newMaker(7)
	for i := range 3 {
		_, end := follow(t, j, FollowerOptions{})
		m.write(t, j, 40, 1+12*i)
		end()
	}
	m.write(t, j, 20, 3)
	shut(t, j)
	return dir, m.head
}

func TestVerify(t *testing.T) {
	dir, head := folder(t)
	before := listing(t, dir)
	v := verify(t, dir)
	if found := v.Findings; len(found) > 0 {
		t.Fatalf("findings %+v", found)
	}
	if v.Head != head || v.Frames != head.Frame || !v.Marked ||
		v.Replayed != uint64(head.Sequence) || v.Commands != v.Replayed ||
		v.Checkpoints != 2 || v.Compared != 2 || len(v.Notes) > 0 {
		t.Errorf("verified %+v", v)
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
func remark(dir string, change func(m *Mark)) error {
	m, _, err := ReadMark(nil, dir)
	change(&m)
	return errors.Join(err, WriteMark(nil, dir, m))
}

// TestFlips: one flipped bit anywhere in the folder is found, or it changes nothing: then the
// journal holds what it held. CLOBD_SIZE says how many.
func TestFlips(t *testing.T) {
	dir, head := folder(t)
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
		case len(v.Findings) > 0:
			found++
		case v.Head != head:
			t.Fatalf("CLOBD_SEED=%d: byte %d of %s: silent: %+v", seed, at, name, v)
		}
		if err := os.WriteFile(name, []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("CLOBD_SEED=%d figures: flips=%d found=%d silent=0", seed, flips, found)
}

// TestVerifyFindsDamage: each part that is not what it was is found and named.
func TestVerifyFindsDamage(t *testing.T) {
	for name, c := range map[string]struct {
		spoil       func(dir string) error
		where, what string
	}{
		"checkpoint": {func(dir string) error { return flipIn(dir, "checkpoints/*") }, "checkpoint", ""},
		"mark gone back": {func(dir string) error {
			return remark(dir, func(m *Mark) { m.Hash[0]++ })
		}, "mark", "another frame"},
		"mark ahead": {func(dir string) error {
			return remark(dir, func(m *Mark) { m.Frame, m.Sequence = m.Frame+5, m.Sequence+9 })
		}, "mark", "9 acknowledged commands are lost"},
		"mark torn": {func(dir string) error { return os.Truncate(dir+"/mark", 50) }, "mark", "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := folder(t)
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			found := verify(t, dir).Findings
			for _, f := range found {
				if strings.Contains(f.Where, c.where) && strings.Contains(f.What, c.what) && f.Hint != "" {
					return
				}
			}
			t.Errorf("findings %+v", found)
		})
	}
}
