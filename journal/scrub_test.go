package journal

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestScrub: everything is read; damage of a frame, a checkpoint and a table is found, each named,
// and changes nothing.
func TestScrub(t *testing.T) {
	on := vfs.NewMem()
	m, _ := checkpointed(t, on)
	j := reopen(t, on)
	s, err := Scrub(context.Background(), j, 0)
	if err != nil || s.Damaged != 0 || s.Frames != m.head.Frame || s.Checkpoints != 2 || s.Bytes == 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Scrub(stopped, j, 1); err == nil {
		t.Error("it does not stop")
	}
	good, _ := j.Checkpoints()
	shut(t, j)
	edit(t, on, good[1].Path, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	j = open(t, Options{Dir: "data", FS: on})
	cut(t, j, 5)
	shut(t, j)
	j = reopen(t, on)
	s, err = Scrub(context.Background(), j, 1<<30)
	told := strings.Join(s.Damages, "\n")
	if err != nil || s.Damaged != 2 || s.Frames != m.head.Frame-1 || s.Took > time.Hour ||
		!strings.Contains(told, "frames 5 to 5 are missing") || !strings.Contains(told, good[1].Path) {
		t.Errorf("%+v, %v", s, err)
	}
	shut(t, j)
}

// TestScrubEnds: that the beginning or the end of a journal is missing is found as well.
func TestScrubEnds(t *testing.T) {
	for _, atEnd := range []bool{false, true} {
		on := vfs.NewMem()
		m, _ := checkpointed(t, on)
		j := open(t, Options{Dir: "data", FS: on})
		for i := range uint64(4) {
			if atEnd {
				cut(t, j, m.head.Frame-i)
			} else {
				cut(t, j, 1+i)
			}
		}
		shut(t, j)
		j, err := Open(Options{Dir: "data", FS: on, ReadOnly: true, Log: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := Scrub(context.Background(), j, 0); err != nil || s.Damaged != 1 {
			t.Errorf("at its end %v: %+v, %v", atEnd, s, err)
		}
		shut(t, j)
	}
}

// TestScrubOfTheLiveLog: damage of the log that is still being written costs nothing once a Scrub
// has passed.
func TestScrubOfTheLiveLog(t *testing.T) {
	for _, scrubbed := range []bool{false, true} {
		on := vfs.NewCrashableMem()
		m, j := newMaker(1), open(t, Options{Dir: "data", FS: on})
		m.write(t, j, 40, 20)
		awaitMark(t, on, m.head.Frame) // without it nobody knows of a loss
		names, err := on.List(j.Path)
		if err != nil {
			t.Fatal(err)
		}
		logs := 0
		for _, name := range names {
			if strings.HasSuffix(name, ".log") {
				logs++
				edit(t, on, on.PathJoin(j.Path, name), func(b []byte) []byte {
					b[1000] ^= 1 // the rest may be room for more
					return b
				})
			}
		}
		if logs == 0 {
			t.Fatalf("no log in %v", names)
		}
		if scrubbed {
			if s, err := Scrub(context.Background(), j, 0); err != nil || s.Damaged != 0 {
				t.Fatalf("%+v, %v", s, err)
			}
		}
		killed := on.CrashClone(vfs.CrashCloneCfg{})
		shut(t, j)
		again, err := Open(Options{Dir: "data", FS: killed, Log: quiet()})
		if err == nil {
			_, err = again.Recover(nil, nil)
			shut(t, again)
		}
		if (err == nil) != scrubbed {
			t.Errorf("scrubbed %v: the next start says %v", scrubbed, err)
		}
	}
}

// awaitMark waits until a mark that names a frame is durable: its slots are written one after the
// other, each with a sync.
func awaitMark(t *testing.T, on vfs.FS, frame uint64) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		b := contents(t, on, "data/"+markName)
		one, _, first := decodeMark(b[:markSlot])
		two, _, second := decodeMark(b[markSlot:])
		if first && second && one.Frame == frame && two.Frame == frame {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the mark names frames %d and %d, not %d", one.Frame, two.Frame, frame)
		}
	}
}
