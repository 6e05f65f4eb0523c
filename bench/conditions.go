package bench

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// unknown stands in a report for a value that the run could not read. Nothing is guessed.
const unknown = "unknown"

// Conditions are the machine and the programs of a run. A figure is worth nothing without them.
type Conditions struct {
	Kernel string `json:"kernel"` // of this machine, like CPU and Cores
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	// Program is clobench itself: the load, and at L0 to L2 also what is measured.
	Program Program `json:"program"`
	// Node is the node under L3 and compare, as it answers itself. Null at L0 to L2.
	Node *Node `json:"node"`
	// Baseline is the other side of compare. Null elsewhere.
	Baseline *Program `json:"baseline,omitempty"`
	// Data is where the journal lies. Null where nothing is written.
	Data   *Disk     `json:"data"`
	Hiccup Hiccup    `json:"hiccup"`
	Start  time.Time `json:"start"`
	// Command is the command line that repeats the measurement, for a shell.
	Command string `json:"command,omitempty"`
}

// Program says how a process was built and set up. A field that could not be read is "unknown".
type Program struct {
	Version    string `json:"version"`
	Go         string `json:"go"`
	Cgo        string `json:"cgo"` // on or off: without it signatures are checked by other code
	GOMAXPROCS string `json:"gomaxprocs"`
	GOGC       string `json:"gogc"`       // percent, or off
	GOMEMLIMIT string `json:"gomemlimit"` // bytes, or off
}

// Node is what a node's admin listener says about it.
type Node struct {
	Program
	Admin      string `json:"admin"`      // HOST:PORT of its admin listener
	Durability string `json:"durability"` // fsync or async
	// Started reports whether this run started the node. If not, the node's machine, its disk and
	// its other users are unknown.
	Started bool `json:"started_by_this_run"`
}

// NewConditions reads the machine and this process, which was built from version.
func NewConditions(version string) Conditions {
	return Conditions{Kernel: firstLine("/proc/sys/kernel/osrelease", ""),
		CPU: firstLine("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(),
		Program: thisProgram(version), Start: time.Now().UTC(), Command: commandLine(os.Args)}
}

// plainWord is an argument that a shell reads as it stands.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// commandLine is the command line of this process, as a shell would read it again.
func commandLine(args []string) string {
	words := []string{filepath.Base(args[0])}
	for _, word := range args[1:] {
		if !plainWord.MatchString(word) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// The runtime's own names of its settings. The node's metrics have the same ones, with underscores.
const (
	metricProcs = "/sched/gomaxprocs:threads"
	metricGC    = "/gc/gogc:percent"
	metricLimit = "/gc/gomemlimit:bytes"
)

// thisProgram reads how this process was built and set up.
func thisProgram(version string) Program {
	p := Program{Version: version, Go: runtime.Version(), Cgo: unknown}
	if info, ok := debug.ReadBuildInfo(); ok {
		p.Cgo = cgoOf(info)
	}
	samples := []metrics.Sample{{Name: metricProcs}, {Name: metricGC}, {Name: metricLimit}}
	metrics.Read(samples)
	told := map[string]float64{}
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			told[s.Name] = float64(s.Value.Uint64())
		}
	}
	p.set(told)
	return p
}

// set fills in the runtime's settings from their readings; what is missing is unknown.
func (p *Program) set(told map[string]float64) {
	read := func(name string, off float64) string {
		v, ok := told[name]
		switch {
		case !ok:
			return unknown
		case v < 0 || v >= off:
			return "off"
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	p.GOMAXPROCS = read(metricProcs, 1<<31)
	p.GOGC = read(metricGC, 1<<31) // off is -1, which some readings show as a huge number
	p.GOMEMLIMIT = read(metricLimit, 1<<62)
}

// cgoOf reports whether a program was built with cgo.
func cgoOf(info *debug.BuildInfo) string {
	for _, s := range info.Settings {
		if s.Key == "CGO_ENABLED" {
			return map[string]string{"1": "on", "0": "off"}[s.Value]
		}
	}
	return unknown
}

// cgoIn reports whether the program in a file was built with cgo.
func cgoIn(binary string) string {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return unknown
	}
	return cgoOf(info)
}

// String is the program in one line.
func (p *Program) String() string {
	return fmt.Sprintf("version %s, %s, cgo %s, GOMAXPROCS %s, GOGC %s, GOMEMLIMIT %s",
		p.Version, p.Go, p.Cgo, p.GOMAXPROCS, p.GOGC, p.GOMEMLIMIT)
}

// String is the node in one line.
func (n *Node) String() string {
	by := "started by this run"
	if !n.Started {
		by = "started by somebody else"
	}
	return fmt.Sprintf("%s, durability %s, admin %s, %s", &n.Program, n.Durability, n.Admin, by)
}

// machine is this machine in one line, and who shares it as far as the run knows.
func (c *Conditions) machine() string {
	who := "load and hiccup meter share them"
	switch {
	case c.Node != nil && c.Node.Started:
		who = "server, load and hiccup meter share them"
	case c.Node != nil:
		who = "load and hiccup meter share them; the node's machine is unknown"
	}
	return fmt.Sprintf("%s, %d cores, Linux %s: %s", c.CPU, c.Cores, c.Kernel, who)
}

// WriteText prints the conditions of a measurement with a node of its own.
func (c *Conditions) WriteText(w io.Writer) {
	fmt.Fprintf(w, "  machine: %s\n  clobench: %s\n", c.machine(), &c.Program)
	if c.Node != nil {
		fmt.Fprintf(w, "  node: %s\n", c.Node)
	}
	if c.Data != nil {
		fmt.Fprintf(w, "  data: %s\n", c.Data)
	}
	fmt.Fprintf(w, "  hiccups: %s\n", &c.Hiccup)
}

// firstLine is the value of the first line of file that starts with key.
func firstLine(file, key string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return unknown
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
	return unknown
}
