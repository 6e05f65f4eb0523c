package history

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// safeBuffer collects a log from several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *safeBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(s, nil)) }

// edit changes a file that nobody has open.
func edit(t testing.TB, on vfs.FS, path string, how func([]byte) []byte) {
	t.Helper()
	f, err := on.Open(path)
	var b []byte
	if err == nil {
		b, err = io.ReadAll(f)
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = writeFile(on, path, string(how(b)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fresh is a journal.State that nobody looks at.
func fresh() *journal.State { return &journal.State{Seed: 1} }

// follow starts a Follower, and end stops it.
func follow(t testing.TB, j *journal.Journal, o journal.FollowerOptions) (
	f *journal.Follower, end func()) {
	t.Helper()
	if o.Fresh == nil {
		o.Fresh = fresh
	}
	f, err := j.Follow(o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- f.Run() }()
	return f, func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		f.Close(ctx)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// await waits for something that must come soon.
func await(t testing.TB, what string, come func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !come(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s", what)
		}
	}
}

// frameKey is the key of a frame in the journal's database.
func frameKey(no uint64) []byte { return binary.BigEndian.AppendUint64([]byte{'f'}, no) }

// inDatabase changes a database behind everybody's back.
func inDatabase(on vfs.FS, path string, change func(db *pebble.DB) error) error {
	o := disk.Appended(1<<20, 1<<20)
	o.FS, o.Logger = on, discard{}
	db, err := pebble.Open(path, o)
	if err == nil {
		err = errors.Join(change(db), db.Flush(), db.Close())
	}
	return err
}

// copyLive copies the folder of a journal that is open, as a killed process would leave it. While
// tables are merged the copy could be of no single moment: then it begins anew.
func copyLive(t testing.TB, live string) string {
	t.Helper()
	for {
		dir, before := filepath.Join(t.TempDir(), "data"), sizes(t, live)
		err := os.CopyFS(dir, os.DirFS(live))
		switch {
		case err == nil && maps.Equal(before, sizes(t, live)):
			return dir
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			t.Fatal(err)
		}
	}
}

// sizes are those of all files below a folder, of which some may vanish meanwhile.
func sizes(t testing.TB, dir string) map[string]int64 {
	t.Helper()
	all := make(map[string]int64)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		var about fs.FileInfo
		if err == nil {
			about, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err == nil {
			all[path] = about.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// open0 opens a journal without recovering.
func open0(t testing.TB, o journal.Options) *journal.Journal {
	t.Helper()
	o.Log = quiet()
	j, err := journal.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// discard is a Pebble logger that says nothing.
type discard struct{}

func (discard) Infof(string, ...any) {}

func (discard) Errorf(string, ...any) {}

func (discard) Fatalf(string, ...any) {}

// positions lists what a wallet holds or ever held.
func positions(h *History, wallet engine.WalletNo) (rows []PositionRow, err error) {
	err = h.EachPosition(wallet, func(both *[2]PositionRow) {
		for o := range both {
			if both[o].Bought != 0 {
				rows = append(rows, both[o])
			}
		}
	})
	return rows, err
}
