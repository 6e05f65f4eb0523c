package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"clobd/bench/process"
)

// hiccupMeasures explains the figure in every report.
const hiccupMeasures = "how much later than asked a process of its own woke from sleeps of 1 ms; " +
	"it runs on the same cores, so waiting for one that the run itself kept busy is included"

// Hiccup is how late a process that only sleeps woke up while the run was measured.
type Hiccup struct {
	Measures  string  `json:"measures"`
	Looks     int64   `json:"looks"`      // sleeps that were timed
	P99Millis float64 `json:"p99_millis"` // of several windows, of the worst one
	MaxMillis float64 `json:"max_millis"`
	// StealMillis is the time, added up over the cores, that the host gave to somebody else while
	// this machine wanted to run. 0 where the host does not tell.
	StealMillis float64 `json:"steal_millis"`
}

// add joins another window to this one.
func (h *Hiccup) add(other Hiccup) {
	h.Measures = other.Measures
	h.Looks += other.Looks
	h.P99Millis = max(h.P99Millis, other.P99Millis)
	h.MaxMillis = max(h.MaxMillis, other.MaxMillis)
	h.StealMillis += other.StealMillis
}

// String is the window in one line.
func (h *Hiccup) String() string {
	return fmt.Sprintf("p99 %.2f ms, longest %.1f ms, stolen by the host %.0f ms (%s)",
		h.P99Millis, h.MaxMillis, h.StealMillis, h.Measures)
}

// sleeper is the meter: one thread sleeps and records, another takes the records.
type sleeper struct {
	mutex sync.Mutex
	seen  Recorder
	stop  atomic.Bool
}

// WatchHiccups is the main function of the meter's process. For each line of in it writes one line
// of JSON: the Hiccup of the time since the previous line. It returns at the end of in.
func WatchHiccups(in io.Reader, out io.Writer) error {
	s := &sleeper{seen: NewRecorder()}
	var wait sync.WaitGroup
	wait.Go(s.sleep)
	defer wait.Wait()
	defer s.stop.Store(true)
	steal := stolen()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		h := s.take()
		now := stolen()
		h.StealMillis, steal = float64((now - steal).Milliseconds()), now
		if err := json.NewEncoder(out).Encode(h); err != nil {
			return fmt.Errorf("tell hiccups: %w", err)
		}
	}
	return lines.Err()
}

// sleep sleeps in the kernel and not with Go's timers, which are late by themselves.
func (s *sleeper) sleep() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const length = time.Millisecond
	wanted := syscall.NsecToTimespec(length.Nanoseconds())
	for !s.stop.Load() {
		at := time.Now()
		if syscall.Nanosleep(&wanted, nil) != nil {
			continue // a signal woke it early
		}
		late := time.Since(at) - length
		s.mutex.Lock()
		s.seen.Record(max(late, 0))
		s.mutex.Unlock()
	}
}

// take returns what was seen since the last take.
func (s *sleeper) take() Hiccup {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	h := Hiccup{Measures: hiccupMeasures, Looks: s.seen.h.TotalCount(),
		P99Millis: float64(s.seen.h.ValueAtQuantile(99)) / 1e6,
		MaxMillis: float64(s.seen.h.Max()) / 1e6}
	s.seen.h.Reset()
	return h
}

// stolen returns the machine's steal time so far, 0 if the kernel does not report it.
func stolen() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(first) // cpu user nice system idle iowait irq softirq steal …
	if len(fields) < 9 {
		return 0
	}
	ticks, _ := strconv.ParseInt(fields[8], 10, 64)
	return time.Duration(ticks) * 10 * time.Millisecond
}

// Watch is a meter as the measuring process sees it.
type Watch struct{ meter *process.Partner }

// StartWatch starts a meter from the program self. It ends with End, with ctx, or with its parent.
func StartWatch(ctx context.Context, self string) (*Watch, error) {
	p, err := process.Start(ctx, self, "hiccups")
	if err != nil {
		return nil, fmt.Errorf("hiccup meter: %w", err)
	}
	w := &Watch{p}
	if _, err := w.Lap(); err != nil { // the first answer says that it is up
		return nil, fmt.Errorf("%w\n%s", err, p.End())
	}
	return w, nil
}

// Lap returns what the meter saw since the last Lap.
func (w *Watch) Lap() (h Hiccup, err error) {
	if err := w.meter.Ask("lap", &h); err != nil {
		return h, fmt.Errorf("ask hiccup meter: %w", err)
	}
	return h, nil
}

// during returns what the meter saw while work ran.
func (w *Watch) during(work func() error) (Hiccup, error) {
	if h, err := w.Lap(); err != nil {
		return h, err
	}
	err := work()
	h, lapErr := w.Lap()
	return h, errors.Join(err, lapErr)
}

// End ends the meter.
func (w *Watch) End() { w.meter.End() }
