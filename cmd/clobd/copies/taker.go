package copies

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"clobd/journal/disk"
)

const (
	takenDir     = "copy"
	wholeDir     = "whole"
	manifestName = "manifest.json"
	// mostDamaged is how many answers in a row may be damaged.
	mostDamaged = 5
)

// ErrDamaged is the error of a chunk that stays damaged.
var ErrDamaged = errors.New("a chunk of the copy is not what its sum says")

// Whole is the folder with the files of a copy. They lie as in a data folder.
func Whole(data string) string { return filepath.Join(data, takenDir, wholeDir) }

// Drop removes a copy, taken or not, if there is one.
func Drop(data string) error {
	dir := filepath.Join(data, takenDir)
	if _, err := os.Lstat(dir); err != nil {
		return nil
	}
	return errors.Join(os.RemoveAll(dir), disk.SyncFolder(disk.Filesystem(nil), data))
}

// Taker is a copy on its way into a node's folder.
type Taker struct {
	Manifest
	From     uint64 `json:"from"`               // the member that gives it
	Complete bool   `json:"complete,omitempty"` // all of it is there, durably
	dir      string
}

// Begin begins to take a copy, in place of any other one.
func Begin(data string, from uint64, m *Manifest) (*Taker, error) {
	t := &Taker{Manifest: *m, From: from, dir: Whole(data)}
	b, err := json.Marshal(t)
	if err = errors.Join(err, m.Check()); err == nil {
		err = errors.Join(Drop(data), disk.MakeFolder(nil, t.dir))
	}
	if err != nil {
		return nil, err
	}
	return t, os.WriteFile(filepath.Join(data, takenDir, manifestName), b, 0o600)
}

// Resume returns the copy that an earlier process has begun to take; nil if there is none.
func Resume(data string) *Taker {
	t := &Taker{dir: Whole(data)}
	b, err := os.ReadFile(filepath.Join(data, takenDir, manifestName))
	if err != nil || json.Unmarshal(b, t) != nil || t.Check() != nil { // a crash may have cut it
		return nil
	}
	return t
}

// Run asks for all chunks, one after the other, makes them durable, and notes that the copy is
// complete. Of a chunk that is there already only the sum travels. Each is told how many bytes are
// there.
func (t *Taker) Run(ask func(*Question) (*Answer, error), each func(have int64)) error {
	have, dirs := int64(0), map[string]bool{t.dir: true}
	for i := range t.Files {
		path := filepath.Join(t.dir, filepath.FromSlash(t.Files[i].Name))
		dirs[filepath.Dir(path)] = true
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		err = t.fill(f, i, ask, func(size int) {
			have += int64(size)
			each(have)
		})
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	t.Complete = true
	b, err := json.Marshal(t)
	for dir := range dirs { // the names come before the note that no file is missing
		err = errors.Join(err, disk.SyncFolder(disk.Filesystem(nil), dir))
	}
	if err == nil {
		err = disk.Replace(filepath.Join(filepath.Dir(t.dir), manifestName), b)
	}
	if err == nil {
		_, _ = ask(&Question{ID: t.ID, Done: true}) // else the giver finds out that nobody asks
	}
	return err
}

// fill asks for the chunks of a file.
func (t *Taker) fill(f *os.File, file int, ask func(*Question) (*Answer, error),
	each func(size int)) error {
	size, b, damaged := t.Files[file].Size, make([]byte, Chunk), 0
	for at := int64(0); at < size; {
		b, q := b[:min(Chunk, size-at)], &Question{ID: t.ID, File: file, At: at}
		if n, _ := f.ReadAt(b, at); n == len(b) {
			sum := sha256.Sum256(b)
			q.Have = sum[:]
		}
		a, err := ask(q)
		if err != nil {
			return err
		}
		if a.Size > 0 || q.Have == nil || !bytes.Equal(a.Sum, q.Have) {
			if sum := sha256.Sum256(a.Data); len(a.Data) != len(b) || !bytes.Equal(a.Sum, sum[:]) {
				if damaged++; damaged > mostDamaged {
					return fmt.Errorf("%w: at %d of %s", ErrDamaged, at, t.Files[file].Name)
				}
				continue
			}
			if _, err := f.WriteAt(a.Data, at); err != nil {
				return err
			}
		}
		at, damaged = at+int64(len(b)), 0
		each(len(b))
	}
	return f.Truncate(size)
}
