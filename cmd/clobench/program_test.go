package main

import (
	"context"
	"encoding/json"
	"errors"
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
	"clobd/scripts/setting"
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
	out := measure(t, &r, func() bool { return r.Acknowledged > 0 }, "run", "--level", "L3",
		"--duration", "300ms", "--connections", "8", "--dir", dir)
	if r.Failure != "" || r.Errors != 0 || r.Checked == "" || r.Durability != "fsync" ||
		r.Filled == nil || r.CPUMicros == nil {
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
	if c.Node == nil || !c.Node.Started || c.Node.GOMAXPROCS != fmt.Sprint(4*runtime.NumCPU()) ||
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

// patience bounds all waits of a test function: far longer than needed, even on a slow machine that
// stops for seconds.
const patience = 3 * time.Minute

// deadlines are the deadlines of the running test functions.
var deadlines = map[string]time.Time{}

// deadline is when a test function gives up all waits: one deadline for all its measurements.
func deadline(t *testing.T) time.Time {
	t.Helper()
	end, known := deadlines[t.Name()]
	if !known {
		end = time.Now().Add(patience)
		deadlines[t.Name()] = end
		t.Cleanup(func() { delete(deadlines, t.Name()) })
	}
	return end
}

// tries is how often a test tries again after the same failure. A stall is over by then, so a
// failure that remains is a defect.
const tries = 5

// slow are the failures that a slow or stalled machine causes by itself. Any other failure is one
// of the product.
var slow = []string{
	// These report too little work in a short time.
	"nothing was answered, or the CPU time is unknown",
	"no operation was acknowledged",
	"the rounds are too short: the baseline's median rate or CPU time is 0",
	// The orders of a flood are drawn for the speed of the turns before: one of them stood still.
	"the flood ran dry",
	// A fan-out is worth nothing if a server stood still for a part of it.
	"the rate was not reached",
	// What was under way has a moment to end: a machine that stands still for it lets it end later.
	"the writer moved although it was stalled",
	// The generator waited for a core, or had too little of one, and does not blame the node.
	"the generator was late itself", "the generator was at its limit",
	// The node gives an order 10 s to become durable, and a request 5 s to come in.
	"status 504", "status 408",
}

// slowness is the one of slow that a failure is, "" if it is none.
func slowness(failure string) string {
	for _, cause := range slow {
		if strings.Contains(failure, cause) {
			return cause
		}
	}
	return ""
}

// measure runs clobench with a JSON report and returns what it printed. It measures again, each
// time for twice as long, if steady says that too little was done in the time, or if the failure is
// one of slow. Any other failure ends the test at once.
func measure[R any](t *testing.T, report *R, steady func() bool, args ...string) string {
	t.Helper()
	ctx, stop := context.WithDeadline(t.Context(), deadline(t))
	defer stop()
	file := filepath.Join(t.TempDir(), "report.json")
	args = append(slices.Clone(args), "--json", file)
	for seen := map[string]int{}; ; lengthen(t, args) {
		cmd := exec.CommandContext(ctx, filepath.Join(programs, "clobench"), args...)
		cmd.WaitDelay = time.Second // its own processes hold what it prints into
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			t.Fatalf("not measured within %v, after %v: %v\n%s", patience, seen, err, out)
		}
		cause := "too little in its time"
		if err == nil {
			readReport(t, file, report)
			if steady() {
				return string(out)
			}
		} else {
			_, failure, _ := strings.Cut(string(out), "error: ")
			if cause = slowness(failure); cause == "" {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		if seen[cause]++; seen[cause] == tries {
			t.Fatalf("%d times, so it is not a stall: %s\n%s", tries, cause, out)
		}
		t.Logf("again: %s\n%s", cause, out)
	}
}

// judged is measure for what says itself that a busy machine has made its figures: a report that
// calls itself INVALID, or behind its rate, is as good as another. The thread that sends is woken
// late there each time, and no second try mends it.
func judged[R any](t *testing.T, report *R, steady func() bool, args ...string) (out string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	args = append(slices.Clone(args), "--json", file)
	for try := 1; ; try++ {
		code, out := clobench(t, args...)
		condemned := strings.Contains(out, "INVALID: ") || strings.Contains(out, "fell behind: ")
		switch {
		case code == 0 || code == 1 && condemned:
			if readReport(t, file, report); steady() {
				return out
			}
		case slowness(out) == "":
			t.Fatalf("code %d\n%s", code, out)
		}
		if try == tries {
			t.Fatalf("%d times, so it is not a stall: code %d\n%s", tries, code, out)
		}
		lengthen(t, args)
	}
}

// readReport reads what a measurement wrote.
func readReport[R any](t *testing.T, file string, report *R) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	*report = *new(R)
	if err := json.Unmarshal(b, report); err != nil {
		t.Fatal(err)
	}
}

// lengthen doubles the time that the arguments ask for: a stall of seconds is the smaller part of a
// longer measurement.
func lengthen(t *testing.T, args []string) {
	t.Helper()
	for i, arg := range args {
		if arg != "--duration" && arg != "--length" {
			continue
		}
		d, err := time.ParseDuration(args[i+1])
		if err != nil {
			t.Fatal(err)
		}
		args[i+1] = (2 * d).String()
	}
}

// TestRunAtSomebodysNode measures a node that the test started, with settings that clobench does
// not have itself.
func TestRunAtSomebodysNode(t *testing.T) {
	setting.Full(t, "TestRunWithKeys stays")
	data := filepath.Join(t.TempDir(), "data")
	node := startNode(t, data)
	args := []string{"run", "--level", "L3", "--duration", "300ms", "--connections", "8",
		"--url", node.url, "--admin", node.admin, "--token-file", filepath.Join(data, "admin.token"),
		"--market", "101,102"}
	var r bench.Report
	out := measure(t, &r, func() bool {
		return r.Acknowledged > 0 && (r.CPUMicros == nil || *r.CPUMicros > 0) // a clock of 10 ms
	}, args...)
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
func startNode(t *testing.T, data string, more ...string) nodeAt {
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
	cmd := exec.Command(filepath.Join(programs, "clobd"), append([]string{"serve", "--data", data,
		"--listen", ports[0], "--admin", ports[1], "--catalog", catalog, "--durability", "async",
		"--limits", "off", "--log-level", "error"}, more...)...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=7", "GOGC=150", "GOMEMLIMIT=2GiB")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone already
		_ = cmd.Wait()
	})
	for end := deadline(t); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
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
	setting.Full(t, "TestKeysInterrupted stays")
	ctx, stop := context.WithDeadline(t.Context(), deadline(t))
	defer stop()
	for _, c := range []struct {
		args  string
		after time.Duration
	}{
		{"run --level L0 --duration 1m", 500 * time.Millisecond},
		{"run --level L1 --duration 2s", 800 * time.Millisecond},
		{"run --level L2 --duration 2s", 800 * time.Millisecond},
		{"run --level L3 --duration 1m", 500 * time.Millisecond},
		{"run --level L3 --duration 2s", 2 * time.Second},
		{"compare orders --duration 1s", 1500 * time.Millisecond},
		{"compare book --duration 1m", time.Second},
	} {
		t.Run(c.args, func(t *testing.T) {
			for try := 1; !interrupted(ctx, t, c.args, c.after); try++ {
				if try == tries {
					t.Fatalf("%d times it came to its end, signal or not", tries)
				}
			}
		})
	}
}

// interrupted interrupts clobench after a while, and checks that it stops and what it leaves. It
// returns false if the process had ended before, because the test was delayed.
func interrupted(ctx context.Context, t *testing.T, args string, after time.Duration) bool {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "clobench"),
		append(strings.Fields(args), "--dir", dir)...)
	cmd.WaitDelay = time.Second // its own processes hold what it prints into
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the code is looked at below
		close(ended)
	}()
	if awaitMeter(t, ended) {
		time.Sleep(after)
	}
	err := cmd.Process.Signal(os.Interrupt)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-ended // at the latest when ctx is done
	is := cmd.ProcessState
	if ctx.Err() != nil {
		t.Fatalf("not through within %v, %v\n%s%s", patience, is, &stdout, &stderr)
	}
	switch by := is.Sys().(syscall.WaitStatus); {
	case is.ExitCode() == 0, by.Signaled() && stdout.String() != "": // it had printed its figures
		t.Logf("%s after %v: %v", args, after, is)
		return false
	case by.Signaled():
		t.Fatalf("killed by the signal (%v): it has nothing that waits for one", by.Signal())
	}
	if is.ExitCode() != 1 || stdout.String() != "" ||
		!strings.HasPrefix(stderr.String(), "error: stopped before its end (interrupt") {
		t.Errorf("code %d\n%s%s", is.ExitCode(), &stdout, &stderr)
	}
	left, _ := os.ReadDir(dir)
	if len(left) > 0 {
		t.Errorf("left in the folder: %v", left)
	}
	alone(ctx, t)
	return true
}

// awaitMeter waits until clobench has started its hiccup meter: it asks for the signal before that,
// and draws, signs and measures after it. False says that it ended first.
func awaitMeter(t *testing.T, ended <-chan struct{}) bool {
	t.Helper()
	for {
		for _, command := range running(t) {
			if strings.Contains(command, " hiccups") {
				return true
			}
		}
		select {
		case <-ended:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// alone waits until no process of the programs runs any more.
func alone(ctx context.Context, t *testing.T) {
	t.Helper()
	left := running(t)
	for len(left) > 0 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
		left = running(t)
	}
	if len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
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
		if testing.Short() && what == "book" {
			continue
		}
		dir := t.TempDir()
		var c bench.Compared
		steady := func() bool { return c.CPURatio > 0 && c.Ratio > 0 }
		out := judged(t, &c, steady, "compare", what, "--rounds", "2", "--duration", "200ms",
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
			m.Node.GOMAXPROCS != fmt.Sprint(4*runtime.NumCPU()) || m.Node.Durability != "fsync" ||
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
		{"run --url http://127.0.0.1:1 --level L3", 2, "error: --url needs --admin"},
		{"run --arrivals poisson", 2, "--arrivals poisson wants --rate"},
		{"run --rate 100", 2, "--rate wants --level L1, L2 or L3"},
		{"run --thresholds /nonexistent", 2, "error: read thresholds: "},
		{"run --url http://127.0.0.1:1 --level L3 --market 1,2 --keys /dev/null", 2, "there is none"},
		{"soak --rate 0", 2, "--rate is not above 0"},
		{"run --connections 65", 2, "--connections 65 is not in [1, 64]"},
		{"run --level L2 --dir /nonexistent", 1, "error: make folder for the run"},
		{"compare book --rounds 0", 2, "comparison: no rounds"},
		{"compare fanout --cases 3", 2, `case "3": want SUBSCRIBERSxBURST@RATE`},
		{"compare fanout --cases 3x201@1 --rounds 0", 2, "the burst is not in [1, 200]"},
		{"compare fanout --cases none --idle 0", 2, "there is no case"},
		{"turns --node a", 2, "error: turns wants two nodes"},
		{"turns --node a,b --rounds 0", 2, "turns: no rounds"},
		{"compare orders --connections 65", 2, "the connections are not in [1, 64]"},
		{"ramp orders --connections 65", 2, "the connections are not in [1, 64]"},
		{"flood --connections 65", 2, "the connections are not in [1, 64]"},
		{"budget --duration 1s", 2, "the duration is below 2 s"},
		{"run --level L3 --url https://127.0.0.1:1 --market 1,2", 2, "does not begin with http://"},
		{"stall --hgrm x", 2, "unknown flag --hgrm"},
		{"stall --json /proc/x.json", 2, "error: --json: open /proc/x.json: "},
		{"run --html /proc/x.html", 2, "error: --html: open /proc/x.html: "},
		{"run --hgrm /proc/x", 2, "error: --hgrm: mkdir /proc/x: "},
		{"ramp book --hgrm /dev/null/x.hgrm", 2, "error: --hgrm: mkdir /dev/null: "},
		{"compare book --json /proc/x", 2, "error: --json: open /proc/x: "},
		{"soak --json /proc/x", 2, "error: --json: open /proc/x: "},
		{"turns --node a,b --json /proc/x,/proc/y", 2, "error: --json: open /proc/y: "},
		{"matching --json /proc/x", 2, "error: --json: open /proc/x: "},
		{"budget --json /proc/x", 2, "error: --json: open /proc/x: "},
		{"flood --url http://127.0.0.1:1", 2, "error: no --url here: it starts nodes of its own"},
		{"compare book --url http://127.0.0.1:1", 2, "error: no --url here: it starts nodes of its own"},
		{"compare fanout --url http://127.0.0.1:1", 2, "error: no --url here: it starts nodes of its own"},
		{"turns --node a,b --url http://127.0.0.1:1", 2, "error: no --url here"},
		{"stall --url http://127.0.0.1:1", 2, "error: no --url here: it makes nodes of its own inside"},
		{"pages --url http://127.0.0.1:1", 2, "error: no --url here: it writes a history of its own"},
		{"stall --dir x", 2, "unknown flag --dir"},
		{"diff nowhere.json nowhere.json", 1, "error: read report"},
		{"page nowhere.json --html x.html", 1, "error: read report"},
		{"order --key 0x12 --token 1 --side BUY --price 0.5 --size 5", 2, "error: order: key: want 0x"},
	} {
		var stderr strings.Builder
		cmd := exec.Command(filepath.Join(programs, "clobench"), strings.Fields(c.args)...)
		cmd.Stderr = &stderr
		_ = cmd.Run() // the code is looked at below
		said := stderr.String()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(said, c.says) ||
			c.code == 2 && !(strings.HasPrefix(said, "error: ") && strings.Contains(said, "\nhint: ")) {
			t.Errorf("clobench %s: code %d, standard error:\n%s", c.args,
				cmd.ProcessState.ExitCode(), said)
		}
	}
}
