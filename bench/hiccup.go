package bench

import (
	"bufio"
	"context"
	"encoding/json"
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
	seen  recorder
	stop  atomic.Bool
}

// WatchHiccups is the main function of the meter's process. For each line of in it writes one line
// of JSON: the Hiccup of the time since the previous line. It returns at the end of in.
func WatchHiccups(in io.Reader, out io.Writer) error {
	s := &sleeper{seen: newRecorder()}
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
		s.seen.record(max(late, 0))
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

// watch is a meter as the measuring process sees it: the process that runs it, and its output.
type watch struct {
	c   *child
	in  io.Writer
	out *bufio.Reader
}

// startWatch starts a meter from the program self. It ends with end, with ctx, or with its parent.
func startWatch(ctx context.Context, self string) (*watch, error) {
	c := &child{cmd: command(ctx, self, "hiccups")}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start hiccup meter: %w", err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start hiccup meter: %w", err)
	}
	if err := c.start(); err != nil {
		return nil, err
	}
	w := &watch{c, in, bufio.NewReader(out)}
	if _, err := w.lap(); err != nil { // the first answer says that it is up
		w.end()
		return nil, fmt.Errorf("%w\n%s", err, c.output.String())
	}
	return w, nil
}

// lap returns what the meter saw since the last lap.
func (w *watch) lap() (h Hiccup, err error) {
	if _, err = w.in.Write([]byte("\n")); err != nil {
		return h, fmt.Errorf("ask hiccup meter: %w", err)
	}
	line, err := w.out.ReadBytes('\n')
	if err != nil {
		return h, fmt.Errorf("read hiccup meter: %w", err)
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, fmt.Errorf("read hiccup meter: %w", err)
	}
	return h, nil
}

func (w *watch) end() { w.c.end() }
