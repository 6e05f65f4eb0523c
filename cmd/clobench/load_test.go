package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/bench"
	"clobd/scripts/setting"
)

// openLoop is an open loop in progress, and the node that it has started.
type openLoop struct {
	cmd   *exec.Cmd
	out   strings.Builder
	json  string
	node  int // its process
	admin string
}

// startLoad starts clobench and waits until its node has taken so many orders.
func startLoad(ctx context.Context, t *testing.T, orders int, args ...string) *openLoop {
	t.Helper()
	l := &openLoop{json: filepath.Join(t.TempDir(), "report.json")}
	l.cmd = exec.CommandContext(ctx, filepath.Join(programs, "clobench"),
		append(args, "--json", l.json, "--dir", t.TempDir())...)
	l.cmd.Stdout, l.cmd.Stderr, l.cmd.WaitDelay = &l.out, &l.out, time.Second
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		if l.node == 0 {
			l.find(t)
		} else if l.taken() >= orders {
			return l
		}
	}
	t.Fatalf("the load has not begun: %v", l.cmd.Wait())
	return nil
}

// find looks for the node among the processes.
func (l *openLoop) find(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(l.cmd.Process.Pid) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		words := strings.Split(string(line), "\x00")
		for i, word := range words {
			if word == "--admin" && strings.HasSuffix(words[0], "clobd") {
				l.admin = words[i+1]
				l.node, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
			}
		}
	}
}

// taken is how many orders the node has taken, 0 if it does not answer yet.
func (l *openLoop) taken() (n int) {
	answer, err := http.Get("http://" + l.admin + "/metrics")
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "clobd_sequencer_orders_total "); ok {
			v, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			n = int(v)
		}
	}
	return n
}

// pause stops a process for a while, and returns false if it has ended already.
func pause(t *testing.T, id int, d time.Duration) bool {
	t.Helper()
	for _, is := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := syscall.Kill(id, is); errors.Is(err, syscall.ESRCH) {
			return false
		} else if err != nil {
			t.Fatal(err)
		}
		if is == syscall.SIGSTOP {
			time.Sleep(d)
		}
	}
	return true
}

// end waits for the load and reads its report.
func (l *openLoop) end(t *testing.T) (r *bench.Report, code int) {
	t.Helper()
	_ = l.cmd.Wait() // the code is looked at by the caller
	readReport(t, l.json, &r)
	return r, l.cmd.ProcessState.ExitCode()
}

// TestPauseOfNode stops the node for 300 ms in the middle of an open loop of 3 s. The p99 of what
// is corrected shows it, as every tenth request was due meanwhile; the p99 of what a closed loop
// would have seen does not, as each of the four connections waited once, with 4 of 1,200 requests.
func TestPauseOfNode(t *testing.T) {
	const length, quiet = 300 * time.Millisecond, 100.0
	pauses, noisy := 0, 0
	for range 2 * tries {
		caught, r := pausedNode(t, length)
		if !caught {
			continue // the load was over already
		}
		pauses++
		c, s := r.CorrectedMicros, &r.ServiceMicros
		slowest := s.Max >= 250_000 // somebody waited for the pause
		if slowest && c.P99 >= 200_000 && s.P99 < 150_000 && lasting(r, 0.1) && len(r.Stages) > 0 {
			return
		}
		t.Logf("again: corrected %s, uncorrected %s, hiccups %s, marks %+v", c, s, &r.Conditions.Hiccup,
			r.Marks)
		if r.Conditions.Hiccup.MaxMillis >= quiet {
			noisy++
		}
	}
	if pauses > 0 && noisy == pauses {
		t.Skip("the machine itself stood still each time: which pause it was cannot be told")
	}
	t.Error("a pause of the node does not show in the corrected p99 alone")
}

// pausedNode is a load whose node was stopped for a while, unless it was over by then.
func pausedNode(t *testing.T, length time.Duration) (caught bool, r *bench.Report) {
	t.Helper()
	ctx, stop := context.WithDeadline(t.Context(), deadline(t))
	defer stop()
	// Without syncs, as a disk that stalls is another pause.
	l := startLoad(ctx, t, 1020, "run", "--level", "L3", "--rate", "400", "--connections", "4",
		"--duration", "3s", "--durability", "async")
	caught = pause(t, l.node, length)
	r, code := l.end(t)
	if caught && r.CorrectedMicros == nil {
		t.Fatalf("code %d\n%s", code, &l.out)
	}
	l.codeFits(t, r, code)
	return caught, r
}

// codeFits checks that the exit code follows from the report.
func (l *openLoop) codeFits(t *testing.T, r *bench.Report, code int) {
	t.Helper()
	if bad := r.Invalid != "" || r.Unsent > 0 || r.Failure != ""; bad != (code == 1) {
		t.Errorf("code %d: invalid %q, %d unsent, failure %q", code, r.Invalid, r.Unsent, r.Failure)
	}
}

// lasting reports whether the node is told to have been silent for so many seconds at once.
func lasting(r *bench.Report, seconds float64) bool {
	return slices.ContainsFunc(r.Marks, func(m bench.Mark) bool { return m.Lasted > seconds })
}

// TestPauseOfGenerator stops the generator: the pause is not the node's, and makes the run INVALID.
func TestPauseOfGenerator(t *testing.T) {
	setting.Full(t, "who is to blame is the verdict of package bench, too")
	ctx, stop := context.WithDeadline(t.Context(), deadline(t))
	defer stop()
	for try := 1; ; try++ {
		l := startLoad(ctx, t, 1020, "run", "--level", "L3", "--rate", "200", "--connections", "4",
			"--duration", "3s")
		caught := pause(t, l.cmd.Process.Pid, pauseLength)
		r, code := l.end(t)
		if caught && r.CorrectedMicros == nil {
			t.Fatalf("code %d\n%s", code, &l.out)
		}
		l.codeFits(t, r, code)
		if caught && blamesItself(t, l, r) || t.Failed() {
			return
		}
		if try == tries {
			t.Fatalf("caught %v: code %d: corrected %s, service %s, late %s, invalid %q\n%s", caught, code,
				r.CorrectedMicros, &r.ServiceMicros, &r.Generator.LateMicros, r.Invalid, &l.out)
		}
	}
}

// blamesItself reports whether a load whose generator stood still says so.
func blamesItself(t *testing.T, l *openLoop, r *bench.Report) bool {
	t.Helper()
	late := &r.Generator.LateMicros
	if !stoodStill(r) {
		return false
	}
	if late.P90 < 400_000 {
		t.Errorf("a pause of %v of the generator is told as late %s", pauseLength, late)
	}
	// The node is to blame only if it was far later than that still.
	if r.Invalid == "" && late.P90 > r.CorrectedMicros.P90/2 {
		t.Errorf("late %s of corrected %s is not the generator's", late, r.CorrectedMicros)
	}
	return r.Invalid != "" && strings.Contains(l.out.String(), "error: INVALID: ")
}

// pauseLength is a third of what TestPauseOfGenerator measures.
const pauseLength = time.Second

// stoodStill reports whether the generator did not turn to its clock for most of pauseLength, while
// a tenth of the requests and more became due.
func stoodStill(r *bench.Report) bool {
	since := 0.0
	for _, m := range r.Timeline {
		if m.Seconds-since > 0.9*pauseLength.Seconds() {
			return since < 2*pauseLength.Seconds() && m.Seconds < 3.5*pauseLength.Seconds()
		}
		since = m.Seconds
	}
	return false
}

// TestRunThresholds lets a run break a rule, and keep one.
func TestRunThresholds(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules")
	for text, want := range map[string]struct {
		code int
		says string
	}{
		"errors == 0\nrate >= 1":               {0, "held: rate >= 1"},
		"errors == 0\nmax <= 1us":              {1, "error: threshold broken: max <= 1us: had "},
		"corrected.p99 <= 1s":                  {1, "corrected.p99 <= 1s: the run has no such figure"},
		"errors == 0\np99 <= 3 apples\nq <= 1": {2, "line 2: "},
	} {
		if testing.Short() && want.code == 1 && strings.HasPrefix(text, "corrected") {
			continue // the same way, with another rule
		}
		if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out := insist(t, "run", "--level", "L1", "--duration", "200ms", "--connections", "2",
			"--thresholds", rules)
		if code != want.code || !strings.Contains(out, want.says) {
			t.Errorf("%q: code %d\n%s", text, code, out)
		}
	}
}

// TestRunWithKeys trades at a node with keys that have funds of its faucet, and with too little.
func TestRunWithKeys(t *testing.T) {
	node := startNode(t, filepath.Join(t.TempDir(), "data"), "--faucet", "100000")
	args := []string{"run", "--level", "L3", "--rate", "300", "--duration", "500ms", "--url", node.url,
		"--keys", keyFile(t), "--market", "101,102"}
	var r bench.Report
	out := measure(t, &r, func() bool { return r.Acknowledged > 0 }, args...)
	if r.Connections != 3 || r.CPUMicros != nil || r.Conditions.Node.Version != "dev" ||
		r.Durability != "unknown" || !strings.Contains(r.Checked, "tells their owners of each of the ") {
		t.Errorf("report: %+v\n%s", r, out)
	}
	poor, err := exec.Command(filepath.Join(programs, "clobench"),
		append(args, "--warmup", "60000")...).CombinedOutput()
	if err == nil || !strings.Contains(string(poor), "error: wallet 0x") ||
		!strings.Contains(string(poor), "of collateral, and its orders need up to ") {
		t.Errorf("too little: %v\n%s", err, poor)
	}
}

// TestSoakWithKeys soaks a node with keys that have funds of its faucet: it looks after them before
// each piece, and leaves nothing of them in the book. Other keys have too little.
func TestSoakWithKeys(t *testing.T) {
	node := startNode(t, filepath.Join(t.TempDir(), "data"), "--faucet", "100000")
	args := []string{"--rate", "400", "--duration", "2s", "--url", node.url, "--keys", keyFile(t),
		"--market", "101,102"}
	s, said := soaked(t, args...)
	behind := strings.Contains(said, "error: fell behind: ")
	if len(s.Laps) != 10 || s.Connections != 3 || s.Operations < 700 && !behind || s.Failure != "" ||
		s.Durability != "unknown" || !strings.Contains(s.Checked, "it tells their owners of each of ") ||
		strings.Contains(s.Checked, "each of 0 of them") {
		t.Errorf("%+v\n%s", s, said)
	}
	if n := resting(t.Context(), t, node); n != 0 {
		t.Errorf("%d levels are left in the book", n)
	}
	args[1] = "100000"
	if code, said := clobench(t, append([]string{"soak"}, args...)...); code != 1 ||
		!strings.Contains(said, "of collateral, and its orders need up to ") {
		t.Errorf("too little: code %d\n%s", code, said)
	}
}

// keyFile is a file of three private keys.
func keyFile(t *testing.T) string {
	t.Helper()
	list := ""
	for i := range 3 {
		list += fmt.Sprintf("0x%064x\n", i+4711)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestKeysOfAnotherChain: keys sign for the chain that is named, and a node of another one refuses
// them.
func TestKeysOfAnotherChain(t *testing.T) {
	setting.Full(t, "TestRunWithKeys stays")
	node := startNode(t, filepath.Join(t.TempDir(), "data"), "--faucet", "100000", "--chain-id", "31337")
	args := []string{"run", "--level", "L3", "--rate", "100", "--duration", "300ms", "--url", node.url,
		"--keys", keyFile(t), "--market", "101,102"}
	if code, said := clobench(t, args...); code != 1 || !strings.HasPrefix(said, "error: ") {
		t.Errorf("of the default chain: code %d\n%s", code, said)
	}
	if code, said := clobench(t, append(args, "--chain-id", "7")...); code != 2 ||
		!strings.Contains(said, "chain 7: no exchange is known there") {
		t.Errorf("of no chain: code %d\n%s", code, said)
	}
	var r bench.Report
	measure(t, &r, func() bool { return r.Acknowledged > 0 }, append(args, "--chain-id", "31337")...)
	if r.Failure != "" || r.Errors != 0 {
		t.Errorf("%+v", r)
	}
}

// TestKeysInterrupted presses Ctrl-C while orders of somebody's wallets rest: the run prints no
// figure and leaves none of them in the book.
func TestKeysInterrupted(t *testing.T) {
	node := startNode(t, filepath.Join(t.TempDir(), "data"), "--faucet", "1000000")
	ctx, stop := context.WithDeadline(t.Context(), deadline(t))
	defer stop()
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "clobench"), "run", "--level", "L3", "--quiet",
		"--rate", "50", "--duration", "2m", "--url", node.url, "--keys", keyFile(t), "--market", "101,102")
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the code is looked at below
		close(ended)
	}()
	for resting(ctx, t, node) == 0 {
		select {
		case <-ended:
			t.Fatalf("%v\n%s%s", cmd.ProcessState, &stdout, &stderr)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-ended
	if code := cmd.ProcessState.ExitCode(); code != 1 || stdout.String() != "" ||
		!strings.HasPrefix(stderr.String(), "error: stopped before its end (interrupt") {
		t.Errorf("code %d\n%s%s", code, &stdout, &stderr)
	}
	if n := resting(ctx, t, node); n != 0 {
		t.Errorf("%d levels are left in the book", n)
	}
	ofClobench := func(command string) bool { return strings.Contains(command, "/clobench ") }
	for slices.ContainsFunc(running(t), ofClobench) { // its own processes end when they see its end
		if time.Sleep(10 * time.Millisecond); ctx.Err() != nil {
			t.Fatalf("left running: %v", running(t))
		}
	}
}

// resting is how many levels the book of the test's market has.
func resting(ctx context.Context, t *testing.T, node nodeAt) int {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, node.url+"/book?token_id=101", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var book struct{ Bids, Asks []json.RawMessage }
	if err := json.NewDecoder(answer.Body).Decode(&book); err != nil {
		t.Fatal(err)
	}
	return len(book.Bids) + len(book.Asks)
}

// TestRunStreams lets subscribers listen to a run.
func TestRunStreams(t *testing.T) {
	setting.Full(t, "TestStreams stays")
	var r bench.Report
	// Changes that come together share a message: on a slow machine many do, for a while.
	steady := func() bool {
		return r.Acknowledged > 0 && r.Delivery != nil && r.Delivery.Messages >= 100
	}
	out := measure(t, &r, steady, "run",
		"--level", "L3", "--workload", "streams", "--subscribers", "5", "--rate", "200",
		"--connections", "4", "--duration", "1s")
	d := r.Delivery
	if d.Subscribers != 5 || d.Gaps != 0 || d.Cuts != 0 || d.DueMicros == nil ||
		d.DueMicros.P50 <= 0 || d.LastMicros.P50 < d.DueMicros.P50/2 {
		t.Errorf("delivery: %+v\n%s", d, out)
	}
}

// waitedInVain reports whether a request or an order has not had its time because the machine stood
// still.
func waitedInVain(said string) bool {
	return strings.Contains(said, "status 504") || strings.Contains(said, "status 408")
}

// soaked soaks a node, and returns the report and what was printed. It fails the test if anything
// goes wrong that other work of the machine cannot make.
func soaked(t *testing.T, args ...string) (s bench.Soaked, said string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "soak.json")
	code := 0
	for try := 1; try == 1 || try <= tries && waitedInVain(said); try++ {
		code, said = clobench(t, append([]string{"soak", "--json", file}, args...)...)
	}
	readReport(t, file, &s)
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "error: ") && !ofMachine(line, &s) {
			t.Fatalf("%q\n%s", line, said)
		}
	}
	if (code == 0) == strings.Contains(said, "error: ") {
		t.Errorf("code %d\n%s", code, said)
	}
	return s, said
}

// ofMachine reports whether other work of the machine can make a soak say this. A lap in which the
// load had no turn has no operation, and nothing that is counted by them: such a soak has fallen
// behind, or is INVALID.
func ofMachine(line string, s *bench.Soaked) bool {
	says := func(what string) bool { return strings.HasPrefix(line, "error: "+what) }
	if strings.Contains(line, ": unknown, ") {
		n := len(s.Laps)
		empty := n > 0 && (s.Laps[0].Done == 0 || s.Laps[n-1].Done == 0)
		return empty && (s.Invalid != "" || s.Kept < 0.97) &&
			(says("drift: corrected ") || says("drift: node's CPU, "))
	}
	return says("INVALID: ") || says("fell behind: ") || says("drift: corrected ") ||
		says("threshold broken: corrected.")
}

// TestSoak soaks a node for seconds.
func TestSoak(t *testing.T) {
	page, rules := filepath.Join(t.TempDir(), "soak.html"), filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(rules, []byte("errors == 0\ncorrected.p50 < 1us\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, out := soaked(t, "--rate", "400", "--duration", "2s", "--connections", "8", "--html", page,
		"--thresholds", rules, "--dir", t.TempDir())
	if !strings.Contains(out, "error: threshold broken: corrected.p50 < 1us") {
		t.Errorf("a threshold that cannot be held is not broken:\n%s", out)
	}
	behind := strings.Contains(out, "error: fell behind: ")
	if len(s.Laps) != 10 || s.Operations < 700 && !behind || s.Errors != 0 || s.Failure != "" ||
		!strings.Contains(s.Checked, "are those that were acknowledged") || len(s.Drifts) < 6 ||
		s.SigningSeconds <= 0 || len(s.Stages) == 0 || s.Due != 800 || s.Kept <= 0 && !behind {
		t.Errorf("%+v\n%s", s, out)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "Drift") ||
		!strings.Contains(string(text), "Corrected latency by lap") || len(s.Thresholds) != 2 {
		t.Errorf("the page: %v, %d bytes, thresholds %+v", err, len(text), s.Thresholds)
	}
	if l := s.Laps[9]; l.Memory == 0 || l.Goroutines == 0 || l.Files == 0 || l.Disk == 0 {
		t.Errorf("the last lap: %+v", l)
	}
}
