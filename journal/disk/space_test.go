package disk

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// TestSpace: the guard warns, takes only cancels, deletes the ballast, and comes back from each of
// them when there is room again, without going to and fro.
func TestSpace(t *testing.T) {
	const unit = 1 << 20
	dir := t.TempDir()
	var free atomic.Int64
	var blind atomic.Bool
	free.Store(40 * unit)
	var states []SpaceState
	s := &Space{o: SpaceOptions{Dir: dir, Reserve: 8 * unit, Ballast: 2 * unit, Log: quiet(),
		Changed: func(s SpaceState) { states = append(states, s) },
		Free: func(string) (int64, error) {
			if blind.Load() {
				return 0, errors.New("who knows")
			}
			return free.Load(), nil
		}}}
	if err := s.o.validate(); err != nil {
		t.Fatal(err)
	}
	s.path, s.status.Reserve = filepath.Join(dir, ballastName), s.o.Reserve
	s.changes = ofDisk.Counter("changes", "")
	now := time.Now()
	look := func(units float64, want SpaceState, ballast int64) {
		t.Helper()
		free.Store(int64(units * unit))
		now = now.Add(time.Second)
		s.look(now, len(states) == 0)
		is := s.Status()
		if is.State != want || is.Ballast != ballast*unit || states[len(states)-1] != want {
			t.Errorf("with %v: %+v, told %v", units, is, states)
		}
		about, err := os.Stat(s.path)
		if (err == nil) != (ballast > 0) || err == nil && about.Size() != ballast*unit {
			t.Errorf("with %v: ballast file %v, %v", units, about, err)
		}
	}
	look(40, Roomy, 2)
	look(16, Roomy, 2)
	look(15.9, Low, 2)
	look(16.5, Low, 2)
	look(17.1, Roomy, 2)
	look(7.9, Full, 2)
	look(8.5, Full, 2)
	look(9.1, Low, 2)
	look(1.9, Full, 0)
	look(3.9, Full, 0)
	look(18, Roomy, 0) // the ballast would take it back below
	blind.Store(true)
	look(1, Roomy, 0) // what was known last stands
	blind.Store(false)
	look(30, Roomy, 2)
}

// TestWatch: it looks by itself, finds the ballast of its predecessor, and tells how much is free.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	var free, state atomic.Int64
	free.Store(1 << 40)
	o := SpaceOptions{Dir: dir, Reserve: 1 << 30, Ballast: 1 << 20, Every: time.Millisecond,
		Log: quiet(), Changed: func(s SpaceState) { state.Store(int64(s)) },
		Free: func(string) (int64, error) { return free.Load(), nil }}
	for range 2 {
		s, err := Watch(o)
		if err != nil {
			t.Fatal(err)
		}
		await(t, "the ballast", func() bool { return s.Status().Ballast == 1<<20 })
		free.Store(1 << 29)
		await(t, "a full disk", func() bool { return SpaceState(state.Load()) == Full })
		free.Store(1 << 40)
		await(t, "an empty one", func() bool { return SpaceState(state.Load()) == Roomy })
		s.Close()
	}
	o.Reserve, o.Dir, o.Ballast = -1, "", 1<<60
	if _, err := Watch(o); err == nil {
		t.Error("nonsense was accepted")
	}
	bytes, err := freeBytes(dir)
	if err != nil || bytes <= 0 {
		t.Errorf("%d bytes are free here: %v", bytes, err)
	}
}
