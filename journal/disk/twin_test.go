package disk

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// twins is a file that is kept twice, and what the log says of it.
type twins struct {
	*testing.T
	path string
	log  bytes.Buffer
}

func newTwins(t *testing.T, text string) *twins {
	t.Helper()
	w := &twins{T: t, path: filepath.Join(t.TempDir(), "small")}
	w.put(w.path, []byte(text))
	if err := w.read(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *twins) put(path string, b []byte) {
	w.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *twins) get(path string) []byte {
	w.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		w.Fatal(err)
	}
	return b
}

// read is a start.
func (w *twins) read() error {
	w.log.Reset()
	paths := func() []string { return []string{w.path} }
	return Twice(slog.New(slog.NewTextHandler(&w.log, nil)), paths, func() error { return nil })
}

// TestSweep: a start deletes what a crash has left of a file that is kept twice, and of its copy,
// and nothing else: not what another process may still write, and no name that is not ours.
func TestSweep(t *testing.T) {
	w := newTwins(t, "secret\n")
	dir, old := filepath.Dir(w.path), time.Now().Add(-2*stillWritten)
	put := func(name string, at time.Time) {
		w.put(filepath.Join(dir, name), []byte("sec"))
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	stay := []string{"small.tmp-4", "other.tmp-1", "small.tmp-1.old", "small.tmp-x", "small.tmp-",
		"smaller.tmp-1", "small.copy.copy.tmp-1"}
	for _, name := range stay {
		put(name, old)
	}
	put(stay[0], time.Now())
	put("small.tmp-123", old)
	put("small.copy.tmp-9", old)
	stay = append(stay, "small", "small.copy", "small.tmp-5")
	if err := os.Mkdir(filepath.Join(dir, "small.tmp-5"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := w.read(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	slices.Sort(stay)
	if err != nil || !slices.Equal(left, stay) {
		t.Errorf("%v are left, not %v: %v", left, stay, err)
	}
}

// TestTwins: whichever bit of a file or of its copy is flipped, the next reading has the file as it
// was, both are whole again, and the log says so without a byte of the file.
func TestTwins(t *testing.T) {
	const text = "3d6f0000secretsecretsecret\n"
	w := newTwins(t, text)
	copied := w.get(w.path + ".copy")
	if about, err := os.Stat(w.path + ".copy"); err != nil || about.Mode().Perm() != 0o600 {
		t.Fatal(about, err)
	}
	for _, path := range []string{w.path, w.path + ".copy"} {
		whole := w.get(path)
		for bit := range 8 * len(whole) {
			b := bytes.Clone(whole)
			b[bit/8] ^= 1 << (bit % 8)
			w.put(path, b)
			if err := w.read(); err != nil {
				t.Fatalf("bit %d of %s: %v", bit, path, err)
			}
			if string(w.get(w.path)) != text || !bytes.Equal(w.get(w.path+".copy"), copied) {
				t.Fatalf("bit %d of %s is not flipped back", bit, path)
			}
			if said := w.log.String(); !strings.Contains(said, w.path) || strings.Contains(said, "secret") {
				t.Fatalf("bit %d of %s: %s", bit, path, said)
			}
		}
	}
	if err := w.read(); err != nil || w.log.Len() > 0 {
		t.Error(err, w.log.String())
	}
}

// TestTwinsReplaced: what a person has put there, or taken away, stays so, and then has the copy.
func TestTwinsReplaced(t *testing.T) {
	w := newTwins(t, strings.Repeat("0123", 16))
	for _, text := range []string{strings.Repeat("abcd", 16), "short", "short, and a line more"} {
		w.put(w.path, []byte(text))
		if err := w.read(); err != nil || string(w.get(w.path)) != text ||
			!bytes.HasSuffix(w.get(w.path+".copy"), []byte("\n"+text)) {
			t.Errorf("%s: %s %v", text, w.get(w.path), err)
		}
	}
	for name, b := range map[string][]byte{"torn": []byte("short, and"), "empty": nil,
		"zeros": make([]byte, len("short, and a line more"))} {
		w.put(w.path, b)
		if err := w.read(); err != nil || string(w.get(w.path)) != "short, and a line more" {
			t.Errorf("%s: %q %v", name, w.get(w.path), err)
		}
	}
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	if err := w.read(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file that somebody has deleted is back")
	}
	if err := errors.Join(DropCopy(w.path), DropCopy(w.path)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.path + ".copy"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("its copy is there")
	}
}

// TestTwinsBoth: with both damaged nobody guesses, and a copy that others can read is refused. What
// a reader refuses gets no copy.
func TestTwinsBoth(t *testing.T) {
	w := newTwins(t, "0123456789")
	flip := func(path string, at int) {
		b := w.get(path)
		b[at] ^= 1
		w.put(path, b)
	}
	flip(w.path, 3)
	flip(w.path+".copy", sumLine+5)
	for range 2 {
		if err := w.read(); err == nil || !strings.Contains(err.Error(), w.path+" or its copy small.copy") {
			t.Errorf("%v", err)
		}
	}
	flip(w.path, 3)
	if err := errors.Join(w.read(), os.Chmod(w.path+".copy", 0o640)); err != nil {
		t.Fatal(err)
	}
	if err := w.read(); err == nil || !strings.Contains(err.Error(), "chmod 600 "+w.path+".copy") {
		t.Errorf("%v", err)
	}
	other := newTwins(t, "first")
	bad := errors.New("no good")
	other.put(other.path, []byte("something else"))
	err := Twice(nil, func() []string { return []string{other.path} }, func() error { return bad })
	if !errors.Is(err, bad) || !bytes.HasSuffix(other.get(other.path+".copy"), []byte("\nfirst")) {
		t.Errorf("%v %s", err, other.get(other.path+".copy"))
	}
}
