package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Conditions are what a figure is worth nothing without.
type Conditions struct {
	Commit     string `json:"commit"`
	Go         string `json:"go"`
	Kernel     string `json:"kernel"`
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	GOGC       string `json:"gogc"`
	Cgo        bool   `json:"cgo"`
	// FsyncMicros is the median of 50 bare 4 KB write+fdatasync in the data folder, in µs.
	FsyncMicros float64 `json:"fsync_micros"`
	// HiccupMillis is the longest pause that a goroutine which only reads the clock saw during the
	// run, in ms: what the machine itself adds to any tail.
	HiccupMillis float64   `json:"hiccup_millis"`
	Start        time.Time `json:"start"`
}

// Latency are percentiles in µs.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Report is one run with its conditions. A run whose check failed has no figures: Failure says why.
type Report struct {
	Conditions  Conditions `json:"conditions"`
	Workload    string     `json:"workload"`
	Level       string     `json:"level"`
	Loop        string     `json:"loop"` // closed: the next request waits for the last answer
	Seed        uint64     `json:"seed"`
	Connections int        `json:"connections"`
	Durability  string     `json:"durability"`
	Seconds     float64    `json:"seconds"`
	Warmup      int        `json:"warmup_operations"`
	Operations  int64      `json:"operations"`
	// Acknowledged are answered (durable, where the level has a disk), Filled are executions, Refused
	// are cancels of orders that were gone.
	Acknowledged int64   `json:"acknowledged"`
	Filled       int64   `json:"filled"`
	Refused      int64   `json:"refused"`
	Busy         int64   `json:"busy"`
	Errors       int64   `json:"errors"`
	Rate         float64 `json:"operations_per_second"`
	// CPUMicros is user+system time per operation of the measured process, in µs.
	CPUMicros float64 `json:"cpu_micros_per_operation"`
	// ServiceMicros is from send to answer. In a closed loop it hides what a stall keeps from being
	// sent: it is no promise about a load that does not wait.
	ServiceMicros Latency `json:"service_micros"`
	Allocs        float64 `json:"allocs_per_operation"`
	Digest        string  `json:"digest"`
	Checked       string  `json:"checked"`
	Failure       string  `json:"failure,omitempty"`
}

// NewConditions reads the machine. dir is where the journal of the run lies; commit is what the
// binary was built from.
func NewConditions(dir, commit string) Conditions {
	c := Conditions{Commit: commit, Go: runtime.Version(), Cores: runtime.NumCPU(), Cgo: cgoEnabled(),
		GOMAXPROCS: runtime.GOMAXPROCS(0), GOGC: os.Getenv("GOGC"), Start: time.Now().UTC()}
	if c.GOGC == "" {
		c.GOGC = "100"
	}
	c.Kernel = firstLine("/proc/sys/kernel/osrelease", "")
	c.CPU = firstLine("/proc/cpuinfo", "model name")
	c.FsyncMicros = fsyncProbe(dir)
	return c
}

func cgoEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "CGO_ENABLED" {
			return s.Value == "1"
		}
	}
	return false
}

// firstLine is the value of the first line of file that starts with key.
func firstLine(file, key string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, key) {
			continue
		}
		if _, value, ok := strings.Cut(line, ":"); ok && key != "" {
			line = value
		}
		return strings.TrimSpace(line)
	}
	return "unknown"
}

// fsyncProbe measures the bare disk: the floor of every durable acknowledgement.
func fsyncProbe(dir string) float64 {
	f, err := os.CreateTemp(dir, "fsync-probe")
	if err != nil {
		return 0
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4096)
	var took []time.Duration
	for i := range 50 {
		at := time.Now()
		if _, err := f.WriteAt(block, int64(i*len(block))); err != nil {
			return 0
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0
		}
		took = append(took, time.Since(at))
	}
	slices.Sort(took)
	return float64(took[len(took)/2].Nanoseconds()) / 1e3
}

// WriteText prints the report for people: the figure, then what it was measured under.
func (r *Report) WriteText(w io.Writer) {
	if r.Failure != "" {
		fmt.Fprintf(w, "%s %s: NO FIGURE: %s\n", r.Workload, r.Level, r.Failure)
		return
	}
	fmt.Fprintf(w, "%s %s  %.0f operations/s  %.2f µs CPU each  %s loop\n",
		r.Workload, r.Level, r.Rate, r.CPUMicros, r.Loop)
	label := "service µs  "
	if r.Level == "L0" {
		label = "block mean µs" // of blocks of Commands: one is too short for the clock
	}
	fmt.Fprintf(w, "  "+label+" p50 %.1f  p90 %.1f  p99 %.1f  max %.1f\n",
		r.ServiceMicros.P50, r.ServiceMicros.P90, r.ServiceMicros.P99, r.ServiceMicros.Max)
	fmt.Fprintf(w, "  operations   %d: acknowledged %d, filled %d, refused %d, "+
		"busy %d, errors %d\n", r.Operations, r.Acknowledged, r.Filled, r.Refused,
		r.Busy, r.Errors)
	fmt.Fprintf(w, "  conditions   seed %d, %d connections, %.2f s after %d warm-up operations, "+
		"durability %s\n", r.Seed, r.Connections, r.Seconds, r.Warmup, r.Durability)
	c := &r.Conditions
	fmt.Fprintf(w, "  machine      %s, %d cores, GOMAXPROCS %d, GOGC %s, %s, Linux %s, commit %s\n",
		c.CPU, c.Cores, c.GOMAXPROCS, c.GOGC, c.Go, c.Kernel, c.Commit)
	fmt.Fprintf(w, "  floor        bare 4 KB write+fdatasync p50 %.0f µs, longest hiccup %.1f ms\n",
		c.FsyncMicros, c.HiccupMillis)
	fmt.Fprintf(w, "  checked      %s; digest %s\n", r.Checked, r.Digest)
}

// WriteJSON writes any report to file, "-" being standard output.
func WriteJSON(file string, report any) error {
	b, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	b = append(b, '\n')
	if file == "-" {
		_, err = os.Stdout.Write(b)
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
