package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
	file := filepath.Join(t.TempDir(), "report.json")
	out, err := exec.Command(filepath.Join(programs, "clobench"), "run", "--level", "L3",
		"--duration", "300ms", "--connections", "8", "--json", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r bench.Report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if r.Acknowledged == 0 || r.Errors != 0 || r.Failure != "" || r.Checked == "" ||
		r.Durability != "fsync" || r.Conditions.FsyncMicros == 0 {
		t.Fatalf("report: %s", b)
	}
	if r.Loop != "closed" || !strings.Contains(string(out), "closed loop") {
		t.Errorf("the loop is not named: %s", out)
	}
}

// TestCompare runs one short interleaved round of each comparison.
func TestCompare(t *testing.T) {
	for _, what := range []string{"orders", "book"} {
		out, err := exec.Command(filepath.Join(programs, "clobench"), "compare", what, "--rounds", "1",
			"--duration", "200ms", "--connections", "8").CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", what, err, out)
		}
		if !strings.Contains(string(out), "times the baseline") ||
			!strings.Contains(string(out), "checked: ") {
			t.Errorf("%s printed:\n%s", what, out)
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
