package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestHistoryBeforeTheCheckpoint: what is damaged before the newest checkpoint keeps no node from
// starting as long as its index has the history. It is named all the same; and without the index
// the journal ends there.
func TestHistoryBeforeTheCheckpoint(t *testing.T) {
	for _, indexed := range []bool{true, false} {
		t.Run(fmt.Sprint("indexed=", indexed), func(t *testing.T) {
			dir, heads := scattered(t, 60)
			ctx, o := context.Background(), rescuing(dir)
			err := inDatabase(vfs.Default, filepath.Join(dir, "journal"), func(db *pebble.DB) error {
				b, _, err := disk.Get(db, frameKey(11), nil)
				b[len(b)/2] ^= 3
				return errors.Join(err, db.Set(frameKey(11), b, nil), db.Flush(),
					db.Compact(ctx, []byte{0}, []byte{255}, false))
			})
			if err != nil {
				t.Fatal(err)
			}
			if !indexed {
				if err := os.RemoveAll(filepath.Join(dir, "index")); err != nil {
					t.Fatal(err)
				}
			}
			l, err := journal.Diagnose(ctx, o)
			if err != nil || l.Why == nil || len(l.Holes) != 1 ||
				l.Holes[0].First != heads[10].Sequence+1 || l.Holes[0].Last != heads[11].Sequence ||
				l.Indexed != indexed || l.Starts != indexed || l.Through != heads[40].Sequence || l.Whole {
				t.Fatalf("%+v, %v", l, err)
			}
			if end := heads[10]; indexed && l.Head != heads[60] || !indexed && l.Head != end {
				t.Errorf("good up to %+v", l.Head)
			}
			if l, err = journal.Repair(ctx, o); err != nil || l.Kept != "" {
				t.Errorf("it was not asked for: %+v, %v", l, err)
			}
			if l, err = journal.AcceptLoss(ctx, o); err != nil || l.Kept == "" {
				t.Fatalf("%+v, %v", l, err)
			}
			mustFollow(t, dir, l)
			l, err = journal.Diagnose(ctx, o)
			if err != nil || l.Why != nil || (len(l.Holes) == 1) != indexed {
				t.Errorf("afterwards: %+v, %v", l, err)
			}
			backUpHole(t, dir, indexed)
		})
	}
}

// mustFollow opens a rescued folder: an index that has the history of what is lost is used.
func mustFollow(t *testing.T, dir string, l *journal.Loss) {
	t.Helper()
	j := open0(t, journal.Options{Dir: dir})
	defer shut(t, j)
	if r, err := j.Restore(context.Background(), fresh); err != nil || r.Head != l.Head {
		t.Fatalf("the next start: %+v, %v", r, err)
	}
	x, stop := run(t, j, Options{})
	if l.Indexed && x.fresh {
		t.Error("the index was made anew")
	}
	await(t, "the index", func() bool { return x.History.Sequence() == l.Head.Sequence })
	stop()
}

// rescuing are the options of a rescue of the journal in dir.
func rescuing(dir string) journal.RescueOptions {
	return journal.RescueOptions{Options: journal.Options{Dir: dir, Log: quiet()}, Fresh: fresh,
		Indexed: Covers}
}

// backUpHole: a journal that knows of a hole is backed up with the index that has its history, or
// not at all; the copy, and a copy of that, know it, too.
func backUpHole(t *testing.T, dir string, hole bool) {
	t.Helper()
	for range 2 {
		j := open0(t, journal.Options{Dir: dir})
		r, err := j.Restore(context.Background(), fresh)
		if err != nil || (j.Hole == 11) != hole {
			t.Fatalf("restored %+v with hole %d, %v", r, j.Hole, err)
		}
		to := filepath.Join(t.TempDir(), "copy")
		if _, err := j.Backup(to, nil); hole && err == nil || !hole && err != nil {
			t.Errorf("backed up without the index: %v", err)
		}
		x, err := openIndex(j, Options{})
		if err != nil {
			t.Fatal(err)
		}
		go x.Run()
		to = filepath.Join(t.TempDir(), "copy")
		c, err := j.Backup(to, x.Copy)
		if err != nil || c.Hole != j.Hole || c.Head != r.Head {
			t.Fatalf("%+v, %v", c, err)
		}
		shut(t, x)
		shut(t, j)
		l, err := journal.Diagnose(context.Background(), rescuing(to))
		if err != nil || l.Why != nil || !l.Starts || l.Head != c.Head || l.Indexed != hole {
			t.Fatalf("the copy: %+v, %v", l, err)
		}
		dir = to
	}
}

// TestHistoryThatCannotBeRead: a start that has to make its index of a journal with a damaged frame
// before the checkpoint says so, and leads to the rescue.
func TestHistoryThatCannotBeRead(t *testing.T) {
	dir, _ := scattered(t, 60)
	err := inDatabase(vfs.Default, filepath.Join(dir, "journal"), func(db *pebble.DB) error {
		return db.Delete(frameKey(11), nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	j := open0(t, journal.Options{Dir: dir})
	if _, err := j.Restore(context.Background(), fresh); err != nil {
		t.Fatalf("the state is in the checkpoint: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "index")); err != nil {
		t.Fatal(err)
	}
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Run(); err == nil || !strings.Contains(journal.Advice(err), "clobd recover") {
		t.Errorf("%v", err)
	}
	shut(t, x)
	shut(t, j)
}

// scattered makes a folder as a killed process leaves it, with its frames in tables and in the log,
// two checkpoints and an index that goes as far as the second one.
func scattered(t *testing.T, frames int) (dir string, heads []engine.Head) {
	t.Helper()
	live, m := t.TempDir(), newMaker(9)
	j := open(t, journal.Options{Dir: live})
	heads = append(heads, engine.Head{})
	for part := range 3 {
		_, end := follow(t, j, journal.FollowerOptions{})
		// No flush of its own: the copy is of files that stand still.
		x, stop := run(t, j, Options{Flush: time.Hour})
		for range frames / 3 {
			m.write(t, j, 1, 30)
			heads = append(heads, m.head)
		}
		if part < 2 {
			end()
			await(t, "the index", func() bool { return x.History.Sequence() == m.head.Sequence })
			stop()
			shut(t, j) // so that the next Open makes tables of the log
			j = open(t, journal.Options{Dir: live})
			continue
		}
		await(t, "the mark", func() bool {
			m, _, err := journal.ReadMark(nil, live)
			return err == nil && m.Frame == uint64(len(heads)-1)
		})
		await(t, "the index", func() bool { return x.History.Sequence() == m.head.Sequence })
		dir = copyLive(t, live)
		end()
		stop()
	}
	shut(t, j)
	return dir, heads
}
