package journal

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"clobd/engine"
)

// TestBackupBesideWrites: a copy that is made while frames are appended ends with one of them, has
// all that were acknowledged before, and is a folder that verify finds nothing wrong with.
func TestBackupBesideWrites(t *testing.T) {
	dir := t.TempDir()
	j, m := open(t, Options{Dir: filepath.Join(dir, "data"), MemTable: 1 << 20}), newMaker(3)
	_, end := follow(t, j, FollowerOptions{Commands: 400})
	var heads []engine.Head
	stop, done := make(chan struct{}), make(chan struct{})
	acked := make(chan uint64, 1)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			f := m.frame(20)
			err := j.Append(f)
			if err == nil {
				err = j.Wait(f.No)
			}
			if err != nil {
				t.Error(err)
				return
			}
			heads = append(heads, f.Head())
			select {
			case <-acked:
			default:
			}
			acked <- f.No
		}
	}()
	type copied struct {
		dir   string
		least uint64
		*Copied
	}
	var all []copied
	for i := range 5 {
		least := <-acked
		to := filepath.Join(dir, string(rune('a'+i)))
		c, err := j.Backup(to, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, copied{to, least, c})
	}
	close(stop)
	<-done
	end()
	if _, err := j.Backup(all[0].dir, nil); err == nil {
		t.Error("an existing folder was written over")
	}
	shut(t, j)
	for _, c := range all {
		if c.Head.Frame < c.least || !slices.Contains(heads, c.Head) || c.Journal != j.ID {
			t.Errorf("copy %+v, frame %d was acknowledged before", c.Copied, c.least)
		}
		v := verify(t, c.dir)
		if len(v.Findings) > 0 || v.Head != c.Head || !v.Marked {
			t.Errorf("copy of %+v: %+v, findings %+v", c.Head, v, v.Findings)
		}
		if (c.Checkpoint != nil) != (v.Checkpoints == 1) {
			t.Errorf("checkpoint %+v, %d found", c.Checkpoint, v.Checkpoints)
		}
	}
}

// TestStateAt: the state after any Sequence, from a checkpoint or not, within a frame or at its
// end, is the one that Apply made there.
func TestStateAt(t *testing.T) {
	dir, m := t.TempDir(), newMaker(5)
	j := open(t, Options{Dir: dir})
	_, end := follow(t, j, FollowerOptions{})
	m.write(t, j, 20, 7)
	end()
	m.write(t, j, 20, 7)
	shut(t, j)
	j, err := Open(Options{Dir: dir, ReadOnly: true, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, j)
	x, want := engine.NewExchange(1), map[engine.Sequence]engine.Digest{}
	err = j.Frames(0, func(f *engine.Frame) bool {
		for i := range f.Commands {
			seq := f.First + engine.Sequence(i)
			x.Apply(&f.Commands[i], seq, f.Time, nil)
			want[seq] = x.Digest()
		}
		return true
	})
	if err != nil || len(want) != 280 {
		t.Fatalf("%d commands: %v", len(want), err)
	}
	for _, seq := range []engine.Sequence{1, 6, 7, 8, 139, 140, 141, 200, 279, 280} {
		s, at, err := j.StateAt(context.Background(), seq, fresh)
		if err != nil || at != seq || s.Exchange.Digest() != want[seq] {
			t.Errorf("state at %d: %d, %v", seq, at, err)
		}
	}
	s, at, err := j.StateAt(context.Background(), 999, fresh)
	if err != nil || at != 280 || s.Exchange.Digest() != want[280] {
		t.Errorf("state behind the end: %d, %v", at, err)
	}
	if err := j.Append(m.frame(1)); err == nil {
		t.Error("a journal that is open for reading was written")
	}
}
