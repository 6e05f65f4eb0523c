package history

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestRebuildIndex: made anew by command it is what it was, and a folder in use is left alone.
func TestRebuildIndex(t *testing.T) {
	dir, head := folder(t)
	if err := os.WriteFile(filepath.Join(dir, "index", "CURRENT"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(t, journal.Options{Dir: dir})
	x, stop := run(t, j, Options{})
	var locked *disk.LockedError
	_, err := Rebuild(context.Background(), j, Options{patience: unhurried}, nil)
	if !errors.As(err, &locked) {
		t.Errorf("an index that is open: %v", err)
	}
	_ = x
	stop()
	told := uint64(0)
	at, err := Rebuild(context.Background(), j, Options{patience: unhurried},
		func(done, total uint64) { told = done })
	if err != nil || at != head.Sequence || told != head.Frame {
		t.Errorf("made anew up to %d, %d frames: %v", at, told, err)
	}
	shut(t, j)
	if v := verify(t, dir); len(v.findings()) > 0 || v.index.Sequence != head.Sequence {
		t.Errorf("verified %+v, %+v", v.index, v.findings())
	}
}

// TestRebuildSaysIfItIsDurable: an index that cannot be written was not made.
func TestRebuildSaysIfItIsDurable(t *testing.T) {
	var f faults
	j, m := newJournal(t, f.on(vfs.NewMem()), 5)
	m.write(t, j, 20, 30)
	f.set(func(op errorfs.Op) error {
		if writes(op, "index", ".sst") {
			return syscall.ENOSPC
		}
		return nil
	})
	o := Options{Log: quiet(), patience: unhurried}
	_, err := Rebuild(context.Background(), j, o, nil)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	f.set(nil)
	if at, err := Rebuild(context.Background(), j, o, nil); err != nil || at != m.head.Sequence {
		t.Errorf("with room again: %d of %d, %v", at, m.head.Sequence, err)
	}
	shut(t, j)
}

// TestSpoilRows is a part of a test of the node: in the folder of an index that the environment
// names it makes all orders unreadable. Alone it looks how Run takes that.
func TestSpoilRows(t *testing.T) {
	spoil := func(db *pebble.DB) {
		t.Helper()
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceOrder},
			UpperBound: []byte{spaceOrder + 1}})
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for ok := it.First(); ok; ok = it.Next() {
			rows++
			err = errors.Join(err, db.Set(it.Key(), []byte{0xff}, pebble.NoSync))
		}
		if err = errors.Join(err, it.Close(), db.Flush()); err != nil || rows == 0 {
			t.Fatalf("%d rows: %v", rows, err)
		}
	}
	if folder := os.Getenv("CLOBD_TEST_SPOIL"); folder != "" {
		var o Options
		if err := o.validate(&journal.Journal{Dir: folder, Options: journal.Options{FS: vfs.Default,
			Log: quiet()}}); err != nil {
			t.Fatal(err)
		}
		db, err := pebble.Open(folder, o.pebbleOptions())
		if err != nil {
			t.Fatal(err)
		}
		spoil(db)
		shut(t, db)
		return
	}
	j, m := newJournal(t, vfs.NewMem(), 5)
	x, stop := run(t, j, Options{})
	m.write(t, j, 20, 30)
	mustEqual(t, x, m)
	stop()
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	spoil(x.db)
	m.write(t, j, 20, 30)
	if err := x.Run(); !IsRemade(err) || journal.IsDamage(err) || journal.Advice(err) == "" {
		t.Errorf("%v", err)
	}
	shut(t, x)
	x, stop = run(t, j, Options{})
	m.write(t, j, 20, 30)
	mustEqual(t, x, m)
	stop()
	shut(t, j)
}
