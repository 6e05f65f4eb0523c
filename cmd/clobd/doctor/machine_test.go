package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestExamine: each part of a real machine is measured, and nothing is left behind.
func TestExamine(t *testing.T) {
	data := t.TempDir()
	o := *asked()
	o.Data, o.During = filepath.Join(data, "a", "b"), 100*time.Millisecond
	sealed := false
	o.Seal = func() error { sealed = true; return nil }
	d, err := Examine(t.Context(), o)
	if err != nil || !sealed || d.Estimate == nil || d.Estimate.Check <= 0 ||
		d.Estimate.Stranger <= 0 || d.Estimate.Singles <= 0 {
		t.Fatalf("%v, sealed %v: %+v, %+v", err, sealed, d, d.Estimate)
	}
	for _, c := range d.Checks {
		if c.Value == "" || c.Reason == "" || c.Grade == "" {
			t.Errorf("%+v", c)
		}
	}
	if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
		t.Errorf("left %v %v", left, err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := *asked()
	o.Data = t.TempDir()
	if d, err := Examine(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", d, err)
	}
	if left, err := os.ReadDir(o.Data); err != nil || len(left) > 0 {
		t.Errorf("left %v %v", left, err)
	}
}

// TestHanging: a disk that does not answer is a finding, and no end of waiting.
func TestHanging(t *testing.T) {
	m, hold := &machine{}, make(chan struct{})
	defer close(hold)
	s, err := m.probe(t.Context(), 10*time.Millisecond, func(context.Context) (syncs, error) {
		<-hold
		return nil, nil
	})
	if s != nil || err == nil || !strings.Contains(err.Error(), "hangs") {
		t.Errorf("%v, %v", s, err)
	}
}

// TestNotAFolder: a file cannot be measured, and the finding says why.
func TestNotAFolder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := probeSyncs(t.Context(), name, time.Millisecond); err == nil {
		t.Error("a file was measured as a folder")
	}
}

// TestNoRoom: a disk that is nearly full is not filled to measure it.
func TestNoRoom(t *testing.T) {
	m := sound()
	m.room.free, m.syncs, m.failed = probeRoom-1, nil, errNoRoom
	if got := m.judge(asked()).Broken(); !slices.Equal(got, []string{"fsync", "disk"}) {
		t.Errorf("broken: %v", got)
	}
}

func TestNearest(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{root: true, root + "/x/y": false, root + "/link": true,
		root + "/link/x": false} {
		if got, exists := nearest(path); got != root || exists != want {
			t.Errorf("%s: %s %v", path, got, exists)
		}
	}
}

// TestLastWrite: the youngest file counts, also one in the journal's folder.
func TestLastWrite(t *testing.T) {
	data := t.TempDir()
	if !lastWrite(data).IsZero() {
		t.Error("an empty folder was written")
	}
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	if err := os.Mkdir(filepath.Join(data, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(data, "journal", "000001.log")
	err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chtimes(name, at, at))
	if got := lastWrite(data); err != nil || !got.Equal(at) {
		t.Errorf("%v, want %v, %v", got, at, err)
	}
}

// TestWatchClocks: a step in either direction is found, a thread that waited between two readings
// is no step, and a true pair of clocks has none.
func TestWatchClocks(t *testing.T) {
	for name, c := range map[string]struct {
		add         func(look int) time.Duration // to the wall clock
		shift, back time.Duration
	}{
		"steady":  {func(int) time.Duration { return 0 }, 0, 0},
		"forward": {func(n int) time.Duration { return time.Hour * time.Duration(n/50) }, time.Hour, 0},
		"back": {func(n int) time.Duration { return -time.Hour * time.Duration(n/50) }, -time.Hour,
			time.Hour - time.Millisecond},
		"waited": {func(n int) time.Duration { return -time.Microsecond * time.Duration(n/99) }, 0, 0},
	} {
		stop, n := make(chan struct{}), 0
		shift, back := watchClocks(stop, func() (wall, elapsed time.Duration) {
			if n++; n == 99 {
				close(stop)
			}
			elapsed = time.Duration(n) * time.Millisecond
			return elapsed + c.add(n), elapsed
		})
		if shift != c.shift || back != c.back {
			t.Errorf("%s: %v, back %v", name, shift, back)
		}
	}
	stop := make(chan struct{})
	close(stop)
	if shift, back := watchClocks(stop, clocks()); shift.Abs() > time.Second || back > time.Second {
		t.Errorf("this machine: %v, back %v", shift, back)
	}
}
