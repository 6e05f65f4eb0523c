package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// oldFolder was written by engine version 5, journal layout 1, frame format 2 and checkpoint format
// 1: 24 frames of 10 Commands each of newMaker(1), a checkpoint at their end, and the mark. It is
// never made anew: whoever changes a format reads it.
const (
	oldFolder = "testdata/v1"
	oldEngine = 5
	oldFrames = 24
	oldEach   = 10
)

// TestMakeOldFolder makes such a folder for a new layout, in a place of the caller's choice:
//
//	CLOBD_MAKE_FOLDER=testdata/v2 go test ./journal -run TestMakeOldFolder
func TestMakeOldFolder(t *testing.T) {
	dir := os.Getenv("CLOBD_MAKE_FOLDER")
	if dir == "" {
		t.Skip("makes a folder only when it is asked to")
	}
	j := open(t, Options{Dir: dir, MemTable: 1 << 20})
	_, end := follow(t, j, FollowerOptions{})
	newMaker(1).write(t, j, oldFrames, oldEach)
	end()
	shut(t, j)
}

// TestOldFolder: every later version opens it, reads what was recorded in it, and goes on from its
// checkpoint; the version that wrote it also replays it.
func TestOldFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(oldFolder)); err != nil {
		t.Fatal(err)
	}
	j, err := Open(Options{Dir: dir, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	commands, events := 0, 0
	head, err := j.Recover(nil, func(f *engine.Frame) error {
		if f.Engine != oldEngine {
			t.Errorf("frame %d is of engine version %d", f.No, f.Engine)
		}
		commands, events = commands+len(f.Commands), events+len(f.Events)
		return nil
	})
	if err != nil || head.Frame != oldFrames || commands != oldFrames*oldEach || events < commands {
		t.Fatalf("head %+v, %d commands, %d events: %v", head, commands, events, err)
	}
	if mark, found, err := ReadMark(nil, dir); err != nil || !found || mark.Hash != head.Hash {
		t.Fatalf("mark %+v: %v", mark, err)
	}
	shut(t, j)
	if engine.Version == oldEngine {
		if j, err = Open(Options{Dir: dir, Log: quiet()}); err != nil {
			t.Fatal(err)
		}
		if again, err := j.Recover(engine.NewExchange(1), nil); err != nil || again != head {
			t.Fatalf("replayed to %+v: %v", again, err)
		}
		shut(t, j)
	}
	for range 2 { // the second time with frames of this version after it
		if j, err = Open(Options{Dir: dir, Log: quiet()}); err != nil {
			t.Fatal(err)
		}
		r, err := j.Restore(context.Background(), fresh)
		if err != nil || r.From == nil || r.From.Head != head || r.From.Engine != oldEngine {
			t.Fatalf("restored %+v: %v", r, err)
		}
		appendNext(t, j, r)
		shut(t, j)
	}
}

// appendNext appends one frame of this version to what was restored.
func appendNext(t *testing.T, j *Journal, r *Restored) {
	t.Helper()
	f := &engine.Frame{Engine: engine.Version, Epoch: r.Head.Epoch + 1, No: r.Head.Frame + 1,
		First: r.Head.Sequence + 1, Time: r.Head.Time + 1,
		Commands: []engine.Command{{Kind: engine.Started, Seen: 2}}}
	f.Events = r.State.Exchange.Apply(&f.Commands[0], f.First, f.Time, nil)
	f.Ends = []uint32{uint32(len(f.Events))}
	f.Digest = r.State.Exchange.Digest()
	f.Encode(r.Head.Hash)
	if err := j.Append(f); err != nil {
		t.Fatal(err)
	}
	if err := j.Wait(f.No); err != nil {
		t.Fatal(err)
	}
}

// TestUpgrade: frames of an earlier engine version are not replayed. Their checkpoint at the
// journal's end is what a later version goes on from, and it stays when newer ones come.
func TestUpgrade(t *testing.T) {
	on := vfs.NewMem()
	m, j := newMaker(1), open(t, Options{Dir: "data", FS: on})
	for range 10 {
		f := m.frame(20)
		f.Engine--
		f.Encode(f.Prev)
		m.head = f.Head()
		if err := j.Append(f); err != nil {
			t.Fatal(err)
		}
		if err := j.Wait(f.No); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, j)
	j = reopen(t, on)
	_, err := j.Restore(context.Background(), fresh)
	var b *Break
	if !errors.As(err, &b) || b.Frame != 1 || !strings.Contains(Advice(err), "clobd checkpoint") {
		t.Fatalf("without a checkpoint: %v", err)
	}
	c := &Checkpoint{Journal: j.ID, Head: m.head, Engine: engine.Version - 1,
		Path: filepath.Join("data", checkpointFolder, "1"+checkpointSuffix)}
	if err := disk.MakeFolder(on, filepath.Dir(c.Path)); err != nil {
		t.Fatal(err)
	}
	s := &State{Exchange: m.x}
	if err := c.write(on, s, &pacedWriter{ctx: context.Background()}); err != nil {
		t.Fatal(err)
	}
	shut(t, j)
	plain := func() *State { return &State{Seed: 1} }
	for i := range 4 {
		j = reopen(t, on)
		r, err := j.Restore(context.Background(), plain)
		if err != nil || r.Head != m.head {
			t.Fatalf("start %d: %+v, %v", i, r, err)
		}
		m.write(t, j, 5, 20)
		_, end := follow(t, j, FollowerOptions{Fresh: plain})
		end()
		good, bad := j.Checkpoints()
		if len(good) != min(i+2, 3) || len(bad) != 0 || good[len(good)-1].Path != c.Path {
			t.Fatalf("start %d: checkpoints %+v, %v", i, good, bad)
		}
		shut(t, j)
	}
}
