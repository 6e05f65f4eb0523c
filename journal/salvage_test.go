package journal

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clobd/engine"
	"clobd/journal/disk"
)

// used is what of a log was written: the rest of it is reserved.
func used(b []byte) []byte { return bytes.TrimRight(b, "\x00") }

// newestLog is the log that a journal's database writes: the last one that has anything in it.
// Older ones may be there, too, until they are used again.
func newestLog(t testing.TB, dir string) string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "journal", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs %v: %v", logs, err)
	}
	for _, name := range slices.Backward(logs) {
		if b, err := os.ReadFile(name); err == nil && len(used(b)) > 0 {
			return name
		}
	}
	return logs[len(logs)-1]
}

// killed makes a folder as a killed process leaves it: with its frames in the log.
func killed(t testing.TB, frames int) (dir string, heads []engine.Head) {
	t.Helper()
	live, m := t.TempDir(), newMaker(9)
	j := open(t, Options{Dir: live})
	_, end := follow(t, j, FollowerOptions{})
	heads = append(heads, engine.Head{})
	for i := range frames {
		if i == frames/2 {
			end()
			_, end = follow(t, j, FollowerOptions{})
		}
		m.write(t, j, 1, 30)
		heads = append(heads, m.head)
	}
	end()
	await(t, "the mark", func() bool {
		m, _, err := ReadMark(nil, live)
		return err == nil && m.Frame == uint64(frames)
	})
	dir = copyLive(t, live)
	shut(t, j)
	return dir, heads
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

// TestAcceptLoss: whatever is wrong with the end, a start is refused and says what is lost; without
// a word nothing is changed; accepted, the folder starts where it was good, and all that was cut
// off is kept.
func TestAcceptLoss(t *testing.T) {
	const frames = 60
	damage := func(at func(size int) int) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			name := newestLog(t, dir)
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			b[at(len(used(b)))] ^= 0x18
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"log cut": func(t *testing.T, dir string) {
			log := newestLog(t, dir)
			b, err := os.ReadFile(log)
			if err == nil {
				err = os.Truncate(log, int64(len(used(b))*3/4))
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"log damaged in the middle": damage(func(n int) int { return n / 2 }),
		"log damaged early":         damage(func(n int) int { return n / 20 }),
		"frame damaged": func(t *testing.T, dir string) {
			j := open(t, Options{Dir: dir})
			b := value(t, j, 41)
			b[len(b)/2] ^= 3
			put(t, j, 41, b)
			good, _ := j.Checkpoints() // a start from the newest one never reads the frame
			if err := os.Remove(good[0].Path); err != nil {
				t.Fatal(err)
			}
			shut(t, j)
		},
		"mark unreadable": func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "mark"), 10); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, heads := killed(t, frames)
			spoil(t, dir)
			acceptLoss(t, dir, heads)
		})
	}
}

// acceptLoss goes through a rescue of a folder that is damaged.
func acceptLoss(t *testing.T, dir string, heads []engine.Head) {
	t.Helper()
	ctx, o := context.Background(), Options{Dir: dir, Log: quiet()}
	if len(verify(t, dir).Findings) == 0 {
		t.Fatal("verify finds nothing")
	}
	before := listing(t, dir)
	l, err := Diagnose(ctx, rescuing(o))
	if err != nil || l.Why == nil || l.Final || l.Kept != "" {
		t.Fatalf("diagnosis %+v, %v", l, err)
	}
	if l.Head != heads[l.Head.Frame] {
		t.Errorf("good up to %+v, which never was the end", l.Head)
	}
	_, _, count := l.Lost()
	if l.Marked && count != uint64(heads[len(heads)-1].Sequence-l.Head.Sequence) {
		t.Errorf("%d lost of %d after %d", count, heads[len(heads)-1].Sequence, l.Head.Sequence)
	}
	for name, was := range before {
		if is, err := os.ReadFile(name); err != nil || string(is) != was {
			t.Errorf("the diagnosis changed %s: %v", name, err)
		}
	}
	if now := len(listing(t, dir)); now != len(before) {
		t.Errorf("%d files became %d", len(before), now)
	}
	l, err = AcceptLoss(ctx, rescuing(o))
	if err != nil || !strings.HasPrefix(filepath.Base(l.Kept), "lost-") {
		t.Fatalf("accept: %+v, %v", l, err)
	}
	if _, err := os.Stat(filepath.Join(l.Kept, "lost.json")); err != nil {
		t.Error(err)
	}
	if found := verify(t, dir).Findings; len(found) > 0 {
		t.Errorf("after it: findings %+v", found)
	}
	j, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := j.Restore(ctx, fresh)
	if err != nil || r.Head != l.Head {
		t.Errorf("the next start: %+v, %v", r, err)
	}
	again := newMaker(9)
	for again.head.Frame < l.Head.Frame {
		again.frame(30)
	}
	again.write(t, j, 3, 10)
	shut(t, j)
	if l, err := Diagnose(ctx, rescuing(o)); err != nil || l.Why != nil || l.Head != again.head {
		t.Errorf("in the end: %+v, %v", l, err)
	}
}

// TestAcceptLossLeavesAlone: what is whole, in use, or not there.
func TestAcceptLossLeavesAlone(t *testing.T) {
	dir, heads := killed(t, 10)
	ctx, o := context.Background(), Options{Dir: dir, Log: quiet()}
	l, err := AcceptLoss(ctx, rescuing(o))
	if err != nil || l.Why != nil || l.Head != heads[10] || l.Kept != "" {
		t.Errorf("whole: %+v, %v", l, err)
	}
	j := open(t, Options{Dir: dir})
	var locked *disk.LockedError
	if _, err = AcceptLoss(ctx, rescuing(o)); !errors.As(err, &locked) {
		t.Errorf("in use: %v", err)
	}
	shut(t, j)
	if _, err = AcceptLoss(ctx, rescuing(Options{Dir: t.TempDir(), Log: quiet()})); err == nil {
		t.Error("nothing was accepted")
	}
}
