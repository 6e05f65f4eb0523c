package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/bench"
)

// programs is the folder that TestMain builds the programs into.
var programs string

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "clobench-test")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", dir+"/",
		"clobd/cmd/clobd", "clobd/cmd/clobench").CombinedOutput()
	if err != nil {
		panic("build: " + err.Error() + "\n" + string(out))
	}
	programs = dir
	return m.Run()
}

// TestRunHTTP measures a node of its own over HTTP for a moment and reads the report.
func TestRunHTTP(t *testing.T) {
	dir := t.TempDir()
	var r bench.Report
	out := measure(t, &r, func() bool { return r.Acknowledged > 0 && r.Errors == 0 }, "run", "--level",
		"L3", "--duration", "300ms", "--connections", "8", "--dir", dir)
	if r.Failure != "" || r.Checked == "" || r.Durability != "fsync" || r.Filled == nil ||
		r.CPUMicros == nil {
		t.Fatalf("report: %+v", r)
	}
	if r.Loop != "closed" || !strings.Contains(out, "closed loop") {
		t.Errorf("the loop is not named: %s", out)
	}
	c := &r.Conditions
	if c.Data == nil || filepath.Dir(c.Data.Dir) != dir || c.Data.FsyncMicros == 0 ||
		c.Data.Filesystem == "unknown" || !strings.Contains(out, c.Data.Filesystem) {
		t.Errorf("the data was on %+v, asked for %s", c.Data, dir)
	}
	if c.Node == nil || !c.Node.Started || c.Node.GOMAXPROCS != fmt.Sprint(2*runtime.NumCPU()) ||
		!strings.HasPrefix(c.Node.Go, "go1.") || c.Node.Cgo != c.Program.Cgo {
		t.Errorf("the node's conditions: %+v", c.Node)
	}
	if c.Hiccup.Looks == 0 || !strings.Contains(out, "a process of its own") {
		t.Errorf("the hiccup meter saw %+v", c.Hiccup)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left in the folder: %v", left)
	}
}

// patience is how long a test waits for what must come: far longer than it takes, also where the
// machine is slow and stands still for seconds.
const patience = 3 * time.Minute

// measure runs clobench with a JSON report and returns what it printed. A machine that stands still
// in the middle of a short measurement gives a report of that, or none: the measurement is repeated
// until its report is steady.
func measure[R any](t *testing.T, report *R, steady func() bool, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	for end := time.Now().Add(patience); ; {
		out, err := exec.Command(filepath.Join(programs, "clobench"),
			append(args, "--json", file)...).CombinedOutput()
		if err == nil {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			*report = *new(R)
			if err := json.Unmarshal(b, report); err != nil {
				t.Fatal(err)
			}
			if steady() {
				return string(out)
			}
		}
		if time.Now().After(end) {
			t.Fatalf("the measurement was never steady: %v\n%s", err, out)
		}
		t.Logf("not steady: %v\n%s", err, out)
	}
}

// TestRunAtSomebodysNode measures a node that the test started, with settings that clobench does
// not have itself.
func TestRunAtSomebodysNode(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	node := startNode(t, data)
	args := []string{"run", "--level", "L3", "--duration", "300ms", "--connections", "8",
		"--url", node.url, "--admin", node.admin, "--token-file", filepath.Join(data, "admin.token"),
		"--market", "101,102"}
	var r bench.Report
	out := measure(t, &r, func() bool { return r.Acknowledged > 0 }, args...)
	c := &r.Conditions
	if r.Durability != "async" || c.Node == nil || c.Node.Started {
		t.Fatalf("report:\n%s", out)
	}
	if c.Node.GOMAXPROCS != "7" || c.Node.GOGC != "150" || c.Node.GOMEMLIMIT != "2147483648" ||
		c.Node.Cgo != "unknown" || c.Node.Version != "dev" || c.Node.Go != runtime.Version() {
		t.Errorf("the node's conditions: %+v", c.Node)
	}
	if c.Program.GOMAXPROCS == "7" || c.Program.GOGC == "150" {
		t.Errorf("the node's settings are given as clobench's: %+v", c.Program)
	}
	if c.Data == nil || c.Data.Dir != "unknown" || c.Data.FsyncMicros != 0 || r.Filled != nil {
		t.Errorf("claims what it cannot know: %+v, filled %v", c.Data, r.Filled)
	}
	if r.CPUMicros == nil || *r.CPUMicros <= 0 {
		t.Errorf("the node's CPU time was not read from its metrics:\n%s", out)
	}
	for _, want := range []string{"durability async", "GOMAXPROCS 7", "started by somebody else",
		"the node's machine is unknown", "filled unknown"} {
		if !strings.Contains(out, want) {
			t.Errorf("the text does not say %q:\n%s", want, out)
		}
	}
}

// nodeAt is where a node of the test answers.
type nodeAt struct{ url, admin string }

// startNode starts a node with unusual settings until the test ends.
func startNode(t *testing.T, data string) nodeAt {
	t.Helper()
	var ports [2]string
	var listeners [2]net.Listener
	pid := os.Getpid()
	for i := range ports { // of an own host: on 127.0.0.1 a connection of another process may get them
		ln, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 128+pid>>16&63, pid>>8&255, pid&255))
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = ln.Addr().String()
		listeners[i] = ln
	}
	for _, ln := range listeners { // together, so that no port is found twice
		ln.Close()
	}
	catalog := filepath.Join(t.TempDir(), "catalog.json")
	event := `[{"id":"1","title":"T","slug":"t","markets":[{"id":"1","question":"Q?","slug":"q",` +
		`"conditionId":"0x` + strings.Repeat("ab", 32) + `","clobTokenIds":"[\"101\",\"102\"]",` +
		`"outcomes":"[\"Yes\",\"No\"]","active":true,"closed":false,"archived":false,` +
		`"enableOrderBook":true,"acceptingOrders":true,"orderMinSize":5,` +
		`"orderPriceMinTickSize":0.01}]}]`
	if err := os.WriteFile(catalog, []byte(event), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(programs, "clobd"), "serve", "--data", data, "--listen",
		ports[0], "--admin", ports[1], "--catalog", catalog, "--durability", "async",
		"--limits", "off", "--log-level", "error")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=7", "GOGC=150", "GOMEMLIMIT=2GiB")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone already
		_ = cmd.Wait()
	})
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get("http://" + ports[1] + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == 200 {
				return nodeAt{"http://" + ports[0], ports[1]}
			}
		}
	}
	t.Fatalf("the node was not ready after %v", patience)
	return nodeAt{}
}

// TestInterrupted presses Ctrl-C in the middle of everything that takes time: drawing, signing and
// measuring. Which of them it meets depends on the machine; it must stop all.
func TestInterrupted(t *testing.T) {
	for _, c := range []struct {
		args  string
		after time.Duration
	}{
		{"run --level L0 --duration 1m", time.Second},
		{"run --level L1 --duration 4s", 1500 * time.Millisecond},
		{"run --level L2 --duration 4s", 1500 * time.Millisecond},
		{"run --level L3 --duration 1m", time.Second},
		{"run --level L3 --duration 4s", 4 * time.Second},
		{"compare orders --duration 1s", 2500 * time.Millisecond},
		{"compare book --duration 1m", 1500 * time.Millisecond},
	} {
		t.Run(c.args, func(t *testing.T) {
			for end := time.Now().Add(patience); !interrupted(t, c.args, c.after); {
				if time.Now().After(end) {
					t.Fatal("it never was in the middle of anything")
				}
			}
		})
	}
}

// interrupted interrupts clobench after a while, and looks whether it stops and what it leaves. It
// is false if a slow machine let the process not begin before, or let it come to its end.
func interrupted(t *testing.T, args string, after time.Duration) bool {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(filepath.Join(programs, "clobench"),
		append(strings.Fields(args), "--dir", dir)...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err) // it was not waited for: it is there
	}
	_ = cmd.Wait() // the code is looked at below
	is := cmd.ProcessState
	if is.Sys().(syscall.WaitStatus).Signaled() || is.ExitCode() == 0 {
		t.Logf("%s after %v: %v", args, after, is)
		return false
	}
	if is.ExitCode() != 1 || stdout.String() != "" ||
		!strings.HasPrefix(stderr.String(), "error: stopped before its end (interrupt") {
		t.Errorf("code %d\n%s%s", is.ExitCode(), &stdout, &stderr)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left in the folder: %v", left)
	}
	left := running(t)
	for end := time.Now().Add(patience); len(left) > 0 && time.Now().Before(end); left = running(t) {
		time.Sleep(10 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	return true
}

// running lists the processes of this test's programs.
func running(t *testing.T) (commands []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatal("no processes in /proc")
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(b), programs) {
			commands = append(commands, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return commands
}

// TestCompare runs two short interleaved rounds of each comparison.
func TestCompare(t *testing.T) {
	for _, what := range []string{"orders", "book"} {
		dir := t.TempDir()
		var c bench.Compared
		steady := func() bool { return c.CPURatio > 0 && c.Ratio > 0 }
		out := measure(t, &c, steady, "compare", what, "--rounds", "2", "--duration", "200ms",
			"--connections", "8", "--dir", dir)
		if !strings.Contains(out, "times the baseline") || !strings.Contains(out, "checked: ") {
			t.Errorf("%s printed:\n%s", what, out)
		}
		if !slices.Equal(c.First, []string{"node", "baseline"}) ||
			len(c.Node.CPUMicros) != 2 || len(c.Baseline.CPUMicros) != 2 {
			t.Errorf("%s: %+v", what, c)
		}
		m := &c.Conditions
		if m.Node == nil || m.Baseline == nil || m.Data == nil || filepath.Dir(m.Data.Dir) != dir ||
			m.Node.GOMAXPROCS != fmt.Sprint(2*runtime.NumCPU()) || m.Node.Durability != "fsync" ||
			m.Baseline.GOMAXPROCS != m.Program.GOMAXPROCS || m.Hiccup.Looks == 0 {
			t.Errorf("%s: conditions %+v", what, m)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: left in the folder: %v", what, left)
		}
	}
}

func TestWrongUse(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"run --level L9", 2, "error: "},
		{"nonsense", 2, "hint: "},
		{"run --workload nonsense", 2, "error: no workload is called"},
		{"run --url http://127.0.0.1:1", 2, "error: --url wants --level L3"},
		{"run --url http://127.0.0.1:1 --level L3 --durability async", 2, "neither --durability nor"},
		{"run --url http://127.0.0.1:1 --level L3", 1, "error: --url needs --admin"},
		{"run --connections 65", 1, "65 connections are outside [1, 64]"},
		{"run --level L2 --dir /nonexistent", 1, "error: make folder for the run"},
		{"compare book --rounds 0", 1, "0 rounds"},
		{"order --key 0x12 --token 1 --side BUY --price 0.5 --size 5", 1, "error: key: want 0x"},
	} {
		var stderr strings.Builder
		cmd := exec.Command(filepath.Join(programs, "clobench"), strings.Fields(c.args)...)
		cmd.Stderr = &stderr
		_ = cmd.Run() // the code is looked at below
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("clobench %s: code %d, standard error:\n%s", c.args,
				cmd.ProcessState.ExitCode(), &stderr)
		}
	}
}
