package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// SpaceOptions says how a Space watches. Zero values of Free, Every and Log stand for defaults.
type SpaceOptions struct {
	// Dir is the data folder.
	Dir string
	// Reserve is how many bytes of the disk must be free for orders to be taken; 0: orders are never
	// refused. Below twice that number the state is Low.
	Reserve int64
	// Ballast is the size of a file in Dir that is deleted when the disk is all but full, so that
	// cancels and an orderly stop still find room; 0: there is none.
	Ballast int64
	// Changed is called with each new state: with the first by Watch, then by the Space's goroutine.
	Changed func(SpaceState)
	// Free returns how many bytes are free on the disk of a folder. Default: the system's answer.
	Free func(dir string) (int64, error)
	// Every is the time between two looks. Default 100 ms.
	Every time.Duration
	Log   *slog.Logger
}

// SpaceState says how much room the disk has.
type SpaceState int32

// The states. A Space leaves Low or Full only when an eighth of the reserve more is free than at
// the limit, so that it does not change to and fro.
const (
	Roomy SpaceState = iota // enough room
	Low                     // less than twice the reserve: warn, write no checkpoints
	Full                    // less than the reserve: take only cancels
)

// String is the state's name in logs and answers.
func (s SpaceState) String() string { return [...]string{"plenty", "low", "cancel-only"}[s] }

// validate returns all problems of the options at once, or nil, and fills in the defaults.
func (o *SpaceOptions) validate() error {
	var problems []error
	for _, v := range []struct {
		name  string
		bytes int64
	}{{"Reserve", o.Reserve}, {"Ballast", o.Ballast}} {
		if v.bytes < 0 || v.bytes > 1<<50 {
			problems = append(problems, fmt.Errorf("space option %s is outside [0, 1 PiB]", v.name))
		}
	}
	if o.Dir == "" || o.Changed == nil {
		problems = append(problems, errors.New("space options Dir and Changed must be set"))
	}
	if o.Free == nil {
		o.Free = freeBytes
	}
	o.Every = cmp.Or(o.Every, 100*time.Millisecond)
	o.Log = cmp.Or(o.Log, slog.Default())
	return errors.Join(problems...)
}

// Space watches how much room the disk of a data folder has, so that orders are refused long before
// a write of the log fails, which would end the process. It keeps a ballast file.
type Space struct {
	o       SpaceOptions
	path    string // of the ballast
	closing chan struct{}
	ended   chan struct{}
	changes prometheus.Counter

	retry time.Time // run's: the ballast is not tried again before
	blind bool      // run's: the system did not say how much is free

	mu     sync.Mutex
	status SpaceStatus
}

// SpaceStatus is the result of a Space's last look.
type SpaceStatus struct {
	State   SpaceState
	Free    int64 // bytes, without the ballast
	Reserve int64
	Ballast int64 // size of the ballast file, 0 while there is none
}

// ballastName is the file that is deleted when the disk is full.
const ballastName = "ballast"

// ballastRetry is the pause after a ballast could not be made.
const ballastRetry = 30 * time.Second

// Watch looks once and then keeps watching until Close.
func Watch(o SpaceOptions) (*Space, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Space{o: o, path: filepath.Join(o.Dir, ballastName), closing: make(chan struct{}),
		ended:   make(chan struct{}),
		changes: ofDisk.Counter("state_changes_total", "Times the disk guard changed its mind.")}
	if _, err := o.Free(o.Dir); err != nil {
		return nil, fmt.Errorf("look how much of the disk is free: %w", err)
	}
	s.status.Reserve = o.Reserve
	if about, err := os.Stat(s.path); err == nil {
		s.status.Ballast = about.Size()
	}
	if s.status.Ballast != o.Ballast && s.status.Ballast > 0 {
		s.release("it is to have another size")
	}
	s.look(time.Now(), true)
	go s.run()
	return s, nil
}

func (s *Space) run() {
	defer close(s.ended)
	tick := time.NewTicker(s.o.Every)
	defer tick.Stop()
	for {
		select {
		case <-s.closing:
			return
		case now := <-tick.C:
			s.look(now, false)
		}
	}
}

// Close ends the watch. The ballast stays.
func (s *Space) Close() {
	close(s.closing)
	<-s.ended
}

// Status is the result of the last look.
func (s *Space) Status() SpaceStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// look measures the free room once, and acts on it.
func (s *Space) look(now time.Time, first bool) {
	free, err := s.o.Free(s.o.Dir)
	if err != nil {
		if !s.blind {
			s.o.Log.Error("nobody can tell how much of the disk is free", "path", s.o.Dir, "error", err)
		}
		s.blind = true
		return // the last state stays
	}
	s.blind = false
	s.mu.Lock()
	was := s.status
	s.status.Free = free
	s.status.State = judgeSpace(was.State, free, s.o.Reserve)
	is := s.status
	s.mu.Unlock()
	if is.State != was.State || first {
		s.tell(&is, first)
	}
	switch {
	case is.Ballast > 0 && free < s.o.Reserve/4:
		s.release("the disk is full")
	case is.Ballast == 0 && s.o.Ballast > 0 && now.After(s.retry) &&
		free-s.o.Ballast >= 2*s.o.Reserve+s.o.Reserve/8:
		s.load(now)
	}
}

// judgeSpace is the state that follows was when free bytes are free.
func judgeSpace(was SpaceState, free, reserve int64) SpaceState {
	full, low := reserve, 2*reserve
	if was == Full {
		full += reserve / 8
	}
	if was != Roomy {
		low += reserve / 8
	}
	switch {
	case free < full:
		return Full
	case free < low:
		return Low
	}
	return Roomy
}

// tell logs the state and calls Changed.
func (s *Space) tell(is *SpaceStatus, first bool) {
	if !first {
		s.changes.Inc()
	}
	args := []any{"path", s.o.Dir, "state", is.State.String(), "free", is.Free, "reserve", is.Reserve}
	switch {
	case is.State == Full:
		s.o.Log.Error("the disk is nearly full: only cancels are taken", append(args, "hint",
			"make room: orders are taken again without a restart")...)
	case is.State == Low:
		s.o.Log.Warn("the disk has little room left: no checkpoints are written", args...)
	case !first:
		s.o.Log.Info("the disk has room", args...)
	}
	s.o.Changed(is.State)
}

func (s *Space) release(why string) {
	err := os.Remove(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.o.Log.Error("the ballast cannot be deleted", "path", s.path, "error", err)
		return
	}
	s.mu.Lock()
	bytes := s.status.Ballast
	s.status.Ballast = 0
	s.mu.Unlock()
	s.o.Log.Warn("ballast deleted", "path", s.path, "bytes", bytes, "why", why)
}

func (s *Space) load(now time.Time) {
	if err := makeBallast(s.path, s.o.Ballast); err != nil {
		s.retry = now.Add(ballastRetry)
		err = errors.Join(err, os.RemoveAll(s.path))
		s.o.Log.Warn("the ballast cannot be made, and is tried again", "path", s.path, "error", err)
		return
	}
	s.mu.Lock()
	s.status.Ballast = s.o.Ballast
	s.mu.Unlock()
	s.o.Log.Info("ballast made", "path", s.path, "bytes", s.o.Ballast)
}

// makeBallast makes a file that takes so many bytes of the disk.
func makeBallast(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err = allocate(f, size); err != nil {
		err = writeZeros(f, size)
	}
	return errors.Join(err, f.Close())
}

// writeZeros fills a file slowly, so that syncs of the log need not wait long.
func writeZeros(f *os.File, size int64) error {
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

const ofDisk Subsystem = "disk"

// Collectors are the Space's metrics, for the caller to register.
func (s *Space) Collectors() []prometheus.Collector {
	gauge := func(name, help string, value func(*SpaceStatus) int64) prometheus.Collector {
		return ofDisk.Gauge(name, help, func() float64 {
			is := s.Status()
			return float64(value(&is))
		})
	}
	return []prometheus.Collector{s.changes,
		gauge("free_bytes", "Free bytes of the data folder's disk.",
			func(is *SpaceStatus) int64 { return is.Free }),
		gauge("reserve_bytes", "Free bytes below which only cancels are taken.",
			func(is *SpaceStatus) int64 { return is.Reserve }),
		gauge("ballast_bytes", "Bytes that are freed when the disk is all but full.",
			func(is *SpaceStatus) int64 { return is.Ballast }),
		gauge("state", "0: plenty, 1: low, 2: only cancels are taken.",
			func(is *SpaceStatus) int64 { return int64(is.State) }),
	}
}
