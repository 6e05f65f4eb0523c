package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clobd/bench"
	"clobd/scripts/setting"
)

// clobench runs the program and returns its exit code and what it said.
func clobench(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "clobench"), args...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// insist runs the program, and again for twice as long while it fails with one of slow.
func insist(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	for try := 1; ; try++ {
		code, said = clobench(t, args...)
		if _, failure, _ := strings.Cut(said, "error: "); code == 0 || slowness(failure) == "" ||
			try == tries {
			return code, said
		}
		lengthen(t, args)
	}
}

// TestTurns measures one build of the node beside itself for a moment.
func TestTurns(t *testing.T) {
	setting.Full(t, "a node is loaded four times; TestDiffCodes judges reports that nobody measured")
	dir := t.TempDir()
	node := filepath.Join(programs, "clobd")
	var b bench.Report
	a := filepath.Join(dir, "a.json")
	// measure adds --json for the second report; a node that stood still for a turn has no figure.
	out := measure(t, &b, always, "turns", "--node", node, "--node", node, "--rounds", "2",
		"--duration", "300ms", "--connections", "8", "--dir", t.TempDir(), "--json", a)
	if len(b.Turns) != 2 || b.Beside == "" || b.Failure != "" || b.CPUMicros == nil ||
		b.Histograms["service"] == "" || !strings.HasPrefix(b.Conditions.Command, "clobench turns --node") {
		t.Errorf("%+v", b)
	}
	if !strings.Contains(out, "verdict: no difference found") || !strings.Contains(out, "n=1 pairs of rounds") {
		t.Errorf("printed\n%s", out)
	}
	var lists bench.Report
	measure(t, &lists, always, "turns", "--node", node, "--node", node, "--rounds", "1", "--duration",
		"300ms", "--connections", "8", "--lists", "--dir", t.TempDir(), "--json", filepath.Join(dir, "b"))
	if lists.Workload != "place, in lists of 15" || lists.Failure != "" || lists.Acknowledged == 0 ||
		lists.Acknowledged%15 != 0 {
		t.Errorf("lists: %d of %s: %s", lists.Acknowledged, lists.Workload, lists.Failure)
	}
	code, said := clobench(t, "diff", a, a, "--fail-on", "different")
	if code != 0 || !strings.Contains(said, "no difference found in CPU µs/op +0.0% (paired sign-flip test, p=1.000, n=1 pairs of rounds)") {
		t.Errorf("a run and itself: code %d\n%s", code, said)
	}
}

// TestDiffCodes: the exit code says what was asked for.
func TestDiffCodes(t *testing.T) {
	dir := t.TempDir()
	side := func(name, level string, cpu float64) string {
		r := &bench.Report{Workload: "canonical", Level: level, AskedSeconds: 6}
		for i := range 6 {
			r.Turns = append(r.Turns, bench.Part{Seconds: 1, Rate: 100, CPUMicros: new(cpu + float64(i)/10)})
		}
		file := filepath.Join(dir, name)
		if err := bench.WriteJSON(file, r); err != nil {
			t.Fatal(err)
		}
		return file
	}
	fast, slow, other := side("fast", "L3", 50), side("slow", "L3", 55), side("other", "L2", 50)
	for _, c := range []struct {
		a, b, on string
		code     int
		says     string
	}{
		{fast, fast, "different", 0, "verdict: no difference found"},
		{fast, slow, "never", 0, "verdict: B is worse: CPU µs/op +10.0%"},
		{fast, slow, "worse", 1, "error: B is worse"},
		{slow, fast, "worse", 0, "verdict: B is better"},
		{slow, fast, "different", 1, "error: B is better"},
		{fast + "," + fast, slow, "never", 0, "n=12+6"},
		{fast, other, "never", 1, "hint: --force"},
	} {
		code, said := clobench(t, "diff", c.a, c.b, "--fail-on", c.on)
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%s and %s, %s: code %d\n%s", filepath.Base(c.a), filepath.Base(c.b), c.on, code, said)
		}
	}
	if code, said := clobench(t, "diff", fast, other, "--force"); code != 0 ||
		!strings.Contains(said, `warning: the level differs: "L3" and "L2"`) {
		t.Errorf("forced: code %d\n%s", code, said)
	}
}

// TestFiles writes a run's page and percentile logs, and joins reports on a page.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	code, said := insist(t, "run", "--level", "L1", "--duration", "200ms", "--rounds", "2", "--json",
		file("run.json"), "--html", file("run.html"), "--hgrm", file("run.hgrm"))
	if code != 0 {
		t.Fatalf("code %d\n%s", code, said)
	}
	code, said = clobench(t, "page", file("run.json"), file("run.json"), "--html", file("two.html"),
		"--title", "Two <b>runs</b>")
	if code != 0 {
		t.Fatalf("code %d\n%s", code, said)
	}
	for name, want := range map[string]string{"run.html": "canonical at L1", "two.html": "chapter-1",
		"run-uncorrected.hgrm": "1/(1-Percentile)"} {
		b, err := os.ReadFile(file(name))
		if err != nil || !strings.Contains(string(b), want) || strings.Contains(string(b), "<b>") {
			t.Errorf("%s lacks %q: %v", name, want, err)
		}
	}
	if _, err := os.Stat(file("run-corrected.hgrm")); err == nil {
		t.Error("a closed loop has corrected latencies")
	}
}
