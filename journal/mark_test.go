package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// markOf is the mark of the data folder, which must be there.
func markOf(t testing.TB, on vfs.FS) Mark {
	t.Helper()
	m, found, err := ReadMark(on, "data")
	if err != nil || !found {
		t.Fatalf("mark: %v, %v", found, err)
	}
	return m
}

// awaitPeace waits until both slots of the mark say the end: then nothing is written any more.
func awaitPeace(t *testing.T, on vfs.FS, m *maker) {
	t.Helper()
	await(t, "second slot", func() bool {
		slots := contents(t, on, filepath.Join("data", markName))
		a, _, ok := decodeMark(slots[:markSlot])
		b, _, also := decodeMark(slots[markSlot:])
		return ok && also && a.Hash == m.head.Hash && b.Hash == m.head.Hash
	})
}

// TestMarkFollows: the mark comes behind the acknowledgement, into both slots when there is peace,
// and a stop leaves it at the end.
func TestMarkFollows(t *testing.T) {
	on := vfs.NewMem()
	m, j := newMaker(1), open(t, Options{Dir: "data", FS: on})
	if got := markOf(t, on); got != (Mark{Journal: j.ID}) {
		t.Fatalf("mark of a new journal: %+v", got)
	}
	end := func() Mark { return Mark{j.ID, m.head.Frame, m.head.Sequence, m.head.Hash, Promise{}} }
	for range 5 {
		m.write(t, j, 10, 5)
		await(t, "mark", func() bool { return markOf(t, on) == end() })
	}
	awaitPeace(t, on, m)
	m.write(t, j, 10, 5)
	shut(t, j)
	if got := markOf(t, on); got != end() {
		t.Fatalf("after a stop %+v, want %+v", got, end())
	}
	j = open(t, Options{Dir: "data", FS: on, Async: true})
	m.write(t, j, 1, 1)
	shut(t, j)
	if got := markOf(t, on); got.Frame != m.head.Frame-1 {
		t.Fatalf("without a sync the mark went to %+v", got)
	}
}

// TestLostEnd: a journal that ends before what was acknowledged does not start, and says what is
// lost; accepted, it goes on from where it ends.
func TestLostEnd(t *testing.T) {
	const frames, each, kept = 50, 20, 33
	on := vfs.NewMem()
	m, _ := newMaker(1), 0
	j := open(t, Options{Dir: "data", FS: on})
	_, end := follow(t, j, FollowerOptions{})
	m.write(t, j, 25, each)
	end()
	_, end = follow(t, j, FollowerOptions{})
	m.write(t, j, frames-25, each)
	end()
	for no := uint64(kept + 1); no <= frames; no++ {
		cut(t, j, no)
	}
	shut(t, j)

	j = reopen(t, on)
	r, err := j.Restore(context.Background(), fresh)
	var lost *LossError
	if !errors.As(err, &lost) || r.State != nil || lost.First() != kept*each+1 ||
		lost.Last() != frames*each || lost.Count() != (frames-kept)*each {
		t.Fatalf("restore: %v", err)
	}
	for _, want := range []string{"340 acknowledged commands are lost", "Sequences 661 to 1000",
		"recover --accept-loss", "data/journal", "frame 33"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal lacks %q: %v", want, err)
		}
	}
	if Advice(err) != lost.advice() {
		t.Errorf("advice: %q", Advice(err))
	}
	if err := j.Append(m.frame(1)); err == nil {
		t.Fatal("append after a refusal")
	}
	if r.Head.Frame != kept || r.From == nil || r.From.Head.Frame != 25 {
		t.Fatalf("restored %+v", r)
	}
	shut(t, j)
	o := Options{Dir: "data", FS: on, Log: quiet()}
	if l, err := AcceptLoss(context.Background(), rescuing(o)); err != nil || l.Head != r.Head {
		t.Fatalf("accept: %+v, %v", l, err)
	}
	again := newMaker(1)
	for range kept {
		again.frame(each)
	}
	j = reopen(t, on)
	if r, err = j.Restore(context.Background(), fresh); err != nil || r.Head != again.head {
		t.Fatalf("after the loss was accepted: %+v, %v", r, err)
	}
	if good, _ := j.Checkpoints(); len(good) != 1 {
		t.Fatalf("%d checkpoints: those ahead must be gone", len(good))
	}
	again.write(t, j, 3, each)
	shut(t, j)
	shut(t, open(t, Options{Dir: "data", FS: on}))
}

// TestAcceptBreak: so it goes with a journal that is damaged in its middle.
func TestAcceptBreak(t *testing.T) {
	on := vfs.NewMem()
	j := open(t, Options{Dir: "data", FS: on})
	newMaker(1).write(t, j, 40, 10)
	b := value(t, j, 21)
	b[len(b)/2] ^= 3
	put(t, j, 21, b)
	shut(t, j)
	j = reopen(t, on)
	head, err := j.Recover(engine.NewExchange(1), nil)
	var broken *Break
	if !errors.As(err, &broken) || head.Frame != 20 {
		t.Fatalf("recover: %+v, %v", head, err)
	}
	shut(t, j)
	o := Options{Dir: "data", FS: on, Log: quiet()}
	if l, err := AcceptLoss(context.Background(), rescuing(o)); err != nil || l.Head != head {
		t.Fatalf("accept: %+v, %v", l, err)
	}
	j = open(t, Options{Dir: "data", FS: on})
	if j.head != head {
		t.Fatalf("head %+v, want %+v", j.head, head)
	}
	shut(t, j)
}

// TestDamagedMark flips every bit of both slots' used bytes, one at a time: the other slot serves.
// With both damaged, or another journal's mark, nothing starts.
func TestDamagedMark(t *testing.T) {
	on, path := vfs.NewMem(), filepath.Join("data", markName)
	m, j := newMaker(1), open(t, Options{Dir: "data", FS: on})
	m.write(t, j, 10, 5)
	shut(t, j)
	for at := range 2 * markSlot {
		if at%markSlot >= markSize {
			continue
		}
		for bit := range 8 {
			edit(t, on, path, func(b []byte) []byte { b[at] ^= 1 << bit; return b })
			got := markOf(t, on)
			edit(t, on, path, func(b []byte) []byte { b[at] ^= 1 << bit; return b })
			if got.Frame != m.head.Frame {
				t.Fatalf("bit %d of byte %d: mark %+v", bit, at, got)
			}
		}
	}
	refused := func(what string, how func([]byte) []byte) {
		t.Helper()
		var was []byte
		edit(t, on, path, func(b []byte) []byte { was = bytes.Clone(b); return how(b) })
		j := reopen(t, on)
		_, err := j.Recover(nil, nil)
		if err == nil || Advice(err) == "" || !strings.Contains(err.Error(), what) {
			t.Fatalf("%s: %v", what, err)
		}
		shut(t, j)
		edit(t, on, path, func([]byte) []byte { return was })
	}
	refused("damaged", func(b []byte) []byte { b[40]++; b[markSlot+40]++; return b })
	refused("damaged", func([]byte) []byte { return nil })
	other := Mark{j.ID + 1, m.head.Frame, m.head.Sequence, m.head.Hash, Promise{}}
	refused("belongs to another journal", func([]byte) []byte { return append(other.encode(1), other.encode(2)...) })
	third := Mark{j.ID, 3, 15, engine.Hash{1}, Promise{}}
	refused("another frame", func([]byte) []byte { return append(third.encode(1), third.encode(2)...) })
	shut(t, open(t, Options{Dir: "data", FS: on}))
}

// TestMarkIsNoLie crashes at random moments: what the mark says is in the journal, and is at most
// one write behind what was acknowledged.
func TestMarkIsNoLie(t *testing.T) {
	on, r := vfs.NewCrashableMem(), rand.New(rand.NewPCG(4, 4))
	m, j := newMaker(1), open(t, Options{Dir: "data", FS: on})
	for i := range 60 {
		m.write(t, j, r.IntN(8), 5)
		crashed := on.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[i%3], RNG: r})
		mark, found, err := ReadMark(crashed, "data")
		if err != nil || !found {
			t.Fatalf("mark: %v, %v", found, err)
		}
		c := reopen(t, crashed)
		if head, err := c.Recover(nil, nil); err != nil || head.Frame < mark.Frame || head != m.head {
			t.Fatalf("head %+v, mark %+v: %v", head, mark, err)
		}
		shut(t, c)
	}
	shut(t, j)
}

// TestMarkFails: a mark whose sync fails is the end, as the log's would be.
func TestMarkFails(t *testing.T) {
	var failing atomic.Bool
	on := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && op.Kind == errorfs.OpFileSyncData && strings.HasSuffix(op.Path, markName) {
			return errorfs.ErrInjected
		}
		return nil
	}))
	var log safeBuffer
	exits := make(chan int, 1)
	j := open(t, Options{Dir: "data", FS: on, Log: log.logger(), Exit: func(c int) { exits <- c }})
	m := newMaker(1)
	m.write(t, j, 5, 5)
	awaitPeace(t, on, m)
	failing.Store(true)
	m.write(t, j, 1, 5) // only then is there something to be noted
	select {
	case code := <-exits:
		if code != disk.ExitCode || !strings.Contains(log.String(), "high-water mark") {
			t.Fatalf("exit %d: %s", code, log.String())
		}
	case <-time.After(soon):
		t.Fatal("it goes on without a mark")
	}
	if err := j.Append(m.frame(1)); err == nil {
		t.Fatal("append after it")
	}
	shut(t, j)
}

// TestMarkIsMadeForOldFolders: a folder without a mark gets one, with a warning.
func TestMarkIsMadeForOldFolders(t *testing.T) {
	on := vfs.NewMem()
	m, j := newMaker(1), open(t, Options{Dir: "data", FS: on})
	m.write(t, j, 5, 5)
	shut(t, j)
	if err := on.Remove(filepath.Join("data", markName)); err != nil {
		t.Fatal(err)
	}
	var log safeBuffer
	j = open(t, Options{Dir: "data", FS: on, Log: log.logger()})
	if !strings.Contains(log.String(), "no high-water mark") {
		t.Fatalf("log: %s", log.String())
	}
	shut(t, j)
	if got := markOf(t, on); got.Frame != 5 {
		t.Fatalf("mark %+v", got)
	}
	if err := WriteMark(on, "data", Mark{Journal: j.ID, Frame: 7, Sequence: 99}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(markOf(t, on)); !strings.Contains(got, " 7 99 ") {
		t.Fatalf("mark %s", got)
	}
}

// TestLostManifest: where a journal was none is begun anew. Without its manifest, what is left of
// it stays as it is, and without its folder the mark still says that there was one.
func TestLostManifest(t *testing.T) {
	for _, lost := range []string{"manifest", "folder"} {
		on := vfs.NewMem()
		j, m := open(t, Options{Dir: "data", FS: on}), newMaker(1)
		m.write(t, j, 40, 20)
		if err := j.db.Flush(); err != nil {
			t.Fatal(err)
		}
		shut(t, j)
		path := filepath.Join("data", "journal")
		var before []string
		gone := path
		names, err := on.List(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasPrefix(name, "marker.manifest") && lost == "manifest" {
				gone = filepath.Join(path, name)
			} else if strings.HasSuffix(name, ".sst") && lost == "manifest" {
				before = append(before, name)
			}
		}
		if err := on.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := Open(Options{Dir: "data", FS: on, Log: quiet()})
			if err == nil || Advice(err) != hintGone {
				t.Fatalf("without its %s: %v", lost, err)
			}
		}
		for _, name := range before {
			if _, err := on.Stat(filepath.Join(path, name)); err != nil {
				t.Errorf("without its %s: %v", lost, err)
			}
		}
		if lost == "manifest" && len(before) == 0 {
			t.Error("nothing was there to be lost")
		}
	}
}
