package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Small files that nobody can make anew, as secrets, are kept twice. The second one is path.copy: a
// line with the SHA-256 of the first one, and the same bytes. The first one has no checksum of its
// own, so that people and older programs can read and replace it.
//
//	mend ─► read as always ─► the contents are good ─► copyOf
const twin = ".copy"

// Twice reads files that are kept twice, and makes damaged ones whole again of their copies before.
// A file is damaged if it differs from a good copy in a few bits, or ends too early, or has zeros
// instead of text. A file that differs otherwise was put there by a person, and stays. So do files
// without a copy, and links. The error names a file that is damaged, or may be, as its copy is.
// Twice asks for the paths again after the reading, which may make some of the files. A node
// without a copy is as good as one with it: what keeps a copy from being made is logged only.
func Twice(log *slog.Logger, paths func() []string, read func() error) error {
	for _, path := range paths() {
		sweep(path)
		if err := mend(log, path); err != nil {
			return err
		}
	}
	if err := read(); err != nil {
		return err
	}
	for _, path := range paths() {
		if err := copyOf(log, path); err != nil && log != nil {
			log.Warn("a file has no good copy", "file", path, "error", err)
		}
	}
	return nil
}

// sweep deletes what a crash has left of a file, or its copy, that was about to be replaced. What
// is young may be another process's, which still writes it.
func sweep(path string) {
	dir, name := filepath.Split(path)
	entries, _ := os.ReadDir(filepath.Clean(dir)) // whoever needs the file says what is wrong
	for _, e := range entries {
		base, number, _ := strings.Cut(e.Name(), ".tmp-")
		about, err := e.Info()
		if err == nil && about.Mode().IsRegular() && time.Since(about.ModTime()) > stillWritten &&
			strings.TrimSuffix(base, twin) == name && number != "" &&
			strings.Trim(number, "0123456789") == "" {
			_ = os.Remove(filepath.Join(dir, e.Name())) // the next start tries again
		}
	}
}

func mend(log *slog.Logger, path string) error {
	b, err := readSmall(path)
	if err != nil {
		return nil // whoever needs the file says what is wrong
	}
	defer clear(b)
	kept, err := readSmall(path + twin)
	if err != nil || len(kept) <= sumLine {
		return nil // copyOf makes one
	}
	defer clear(kept)
	if about, err := os.Lstat(path + twin); err == nil && about.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o, so others may have it: if they do not, chmod 600 %s",
			path+twin, about.Mode().Perm(), path+twin)
	}
	sum, copied := kept[:sumLine], kept[sumLine:]
	switch {
	case bytes.Equal(b, copied) || bytes.Equal(sum, lineOf(b)):
		return nil // copyOf makes it anew if it is not what it should be
	case !bytes.Equal(sum, lineOf(copied)):
		return fmt.Errorf("%s or its copy %s is damaged, and nobody can tell which is whole: if it is the "+
			"file, delete the copy", path, filepath.Base(path)+twin)
	case !damaged(b, copied):
		return nil
	}
	if err := replace(path, path, copied); err != nil {
		return fmt.Errorf("make %s anew of its copy: %w", path, err)
	}
	note(log, "a file was damaged and is whole again: its copy was good", path)
	return nil
}

func copyOf(log *slog.Logger, path string) error {
	b, err := readSmall(path)
	if err != nil {
		return err
	}
	defer clear(b)
	want := append(lineOf(b), b...)
	defer clear(want)
	kept, err := readSmall(path + twin)
	defer clear(kept)
	if bytes.Equal(kept, want) {
		return nil
	}
	if err == nil {
		note(log, "the copy of a file was damaged, or older than the file: it is made anew", path)
	}
	return replace(path+twin, path, want)
}

// DropCopy deletes the copy of a file that is gone for good.
func DropCopy(path string) error {
	err := os.Remove(path + twin)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, SyncFolder(Filesystem(nil), filepath.Dir(path)))
}

func note(log *slog.Logger, what, path string) {
	if log != nil {
		log.Warn(what, "file", path)
	}
}

const (
	// sumLine is how long the first line of a copy is.
	sumLine = 2*sha256.Size + 1
	// mostSmall bounds a file that is kept twice.
	mostSmall = 1 << 20
	// stillWritten is how long a process may take to replace a file.
	stillWritten = time.Minute
	// fewBits is in how many bits a damaged file may differ from its copy. Two secrets, keys or
	// certificates differ in more than a hundred.
	fewBits = 16
)

func lineOf(b []byte) []byte {
	sum := sha256.Sum256(b)
	return append(hex.AppendEncode(make([]byte, 0, sumLine+len(b)), sum[:]), '\n')
}

// damaged reports whether b looks like the contents good after damage. A person who replaces a file
// writes something that differs more.
func damaged(b, good []byte) bool {
	if len(b) != len(good) {
		return bytes.HasPrefix(good, b)
	}
	differ := 0
	for i := range b {
		differ += bits.OnesCount8(b[i] ^ good[i])
	}
	isText := !slices.ContainsFunc(good, func(c byte) bool { return c < '\t' || c > '~' })
	return differ <= fewBits || isText && bytes.IndexByte(b, 0) >= 0
}

// readSmall reads a file of its own, no link.
func readSmall(path string) ([]byte, error) {
	about, err := os.Lstat(path)
	if err == nil && (!about.Mode().IsRegular() || about.Size() > mostSmall) {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// Replace durably writes a file that only this user may read, or replaces one and leaves the new
// file to the old one's owner.
func Replace(path string, b []byte) error {
	if err := replace(path, path, b); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// replace is Replace with the owner of another file.
func replace(path, like string, b []byte) error {
	owner, err := os.Stat(like)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if owner != nil && err == nil {
		if of, is := owner.Sys().(*syscall.Stat_t); is && int(of.Uid) != os.Geteuid() {
			err = f.Chown(int(of.Uid), int(of.Gid))
		}
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = SyncFolder(Filesystem(nil), filepath.Dir(path))
	}
	return err
}
