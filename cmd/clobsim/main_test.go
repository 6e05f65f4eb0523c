package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clobd/cmd/cli"
)

// run calls the program in process and returns its code and what it printed on standard output.
func run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	saved := os.Stdout
	os.Stdout = write
	printed := make(chan string)
	go func() {
		b, _ := io.ReadAll(read)
		printed <- string(b)
	}()
	code := cli.Run("clobsim", "", &commands{}, args)
	os.Stdout = saved
	write.Close()
	return code, <-printed
}

func TestVectors(t *testing.T) {
	const good = "vectors/testdata/signed.json"
	code, out := run(t, "vectors", good)
	if code != cli.Done || !strings.Contains(out, " agree, 0 disagree") {
		t.Fatalf("code %d:\n%s", code, out)
	}
	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte(`"orderHash": "0x`))
	if at < 0 {
		t.Fatal("the vectors hold no order hash")
	}
	at += len(`"orderHash": "0x`)
	if b[at]++; b[at] > 'f' || b[at] == '9'+1 {
		b[at] = '1'
	}
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, b, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out = run(t, "vectors", good, bad)
	if code != cli.Failed || !strings.Contains(out, ", 1 disagree") ||
		!strings.Contains(out, "bad.json") {
		t.Errorf("a wrong order hash: code %d:\n%s", code, out)
	}
	if err := os.WriteFile(bad, []byte(`{"orders":[{"foo":1}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _ = run(t, "vectors", bad); code != cli.Failed {
		t.Errorf("a file without vectors: code %d", code)
	}
	// An object that is nearly a vector disagrees too.
	if err := os.WriteFile(bad, []byte(`{"orders":[{"id":"o7","order":{"salt":1},"domian":{},`+
		`"signature":"0x12"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out = run(t, "vectors", good, bad)
	if code != cli.Failed || !strings.Contains(out, ".orders[0] o7: looks like a vector") ||
		!strings.Contains(out, ", 1 disagree") {
		t.Errorf("a vector with a misspelt domain: code %d:\n%s", code, out)
	}
	if code, _ = run(t, "vectors", "nowhere.json"); code != cli.Usage {
		t.Errorf("a missing file: code %d", code)
	}
}

func TestScenarios(t *testing.T) {
	const (
		good    = "cases/testdata/book.json"
		skipped = "cases/testdata/skipped.json"
	)
	code, out := run(t, "scenarios", good, skipped)
	if code != cli.Done || !strings.Contains(out, "amend: skipped: operation 3 (replace 1): ") ||
		!strings.HasSuffix(out, "\n6 agree, 0 disagree, 15 skipped\n") {
		t.Errorf("code %d:\n%s", code, out)
	}
	bad := change(t, good, `"remaining": 3}`, `"remaining": 4}`)
	code, out = run(t, "scenarios", bad, skipped)
	if code != cli.Failed || !strings.HasPrefix(out,
		bad+": levels, queues and counts: operation 10 (order b3): remaining: expected 4, got 3\n") ||
		!strings.HasSuffix(out, "\n5 agree, 1 disagree, 15 skipped\n") {
		t.Errorf("code %d:\n%s", code, out)
	}
	for _, c := range []struct {
		code int
		args []string
	}{
		{cli.Failed, []string{change(t, good, `"op": "counts"`, `"op": "count"`)}},
		{cli.Failed, []string{good, "nowhere.json"}},
		{cli.Failed, []string{t.TempDir()}},
		{cli.Usage, nil},
		{cli.Usage, []string{"--fast", good}},
	} {
		if code, out := run(t, append([]string{"scenarios"}, c.args...)...); code != c.code {
			t.Errorf("%v: code %d:\n%s", c.args, code, out)
		}
	}
}

func TestFlow(t *testing.T) {
	const good = "cases/testdata/flow.jsonl"
	code, out := run(t, "flow", good, good)
	if code != cli.Done || !strings.HasSuffix(out, "\n24 agree, 0 disagree, 0 skipped\n") ||
		!strings.Contains(out, good+": 5 placed, 1 cancelled, 3 takers with 3 fills, 3 book checks; ") {
		t.Errorf("code %d:\n%s", code, out)
	}
	bad := change(t, good, `["c",2,44]`, `["c",2,43]`)
	code, out = run(t, "flow", bad)
	if code != cli.Failed || !strings.HasPrefix(out, bad+": operation 6 (take B 6@45): makers: "+
		"expected [c 2@43 b 4@45], got [c 2@44 b 4@45]\n") ||
		!strings.HasSuffix(out, "\n11 agree, 1 disagree, 0 skipped\n") {
		t.Errorf("code %d:\n%s", code, out)
	}
	for _, c := range []struct {
		code int
		args []string
	}{
		{cli.Failed, []string{change(t, good, `"ops":12`, `"ops":13`)}},
		{cli.Failed, []string{change(t, good, `"op":"C"`, `"op":"c"`)}},
		{cli.Failed, []string{"nowhere.jsonl"}},
		{cli.Usage, nil},
	} {
		if code, out := run(t, append([]string{"flow"}, c.args...)...); code != c.code {
			t.Errorf("%v: code %d:\n%s", c.args, code, out)
		}
	}
}

// TestRun: the seed is printed first, the same seed prints the same output, and a failure says how
// to repeat it.
func TestRun(t *testing.T) {
	good := []string{"run", "--seed", "3", "--seeds", "2", "--steps", "300", "--trace"}
	code, out := run(t, good...)
	if code != cli.Done || !strings.HasPrefix(out, "seed 3\n0: ") ||
		!strings.HasSuffix(out, "\n2 seeds, 0 failed\n") || !strings.Contains(out, "\nseed 4: ") {
		t.Errorf("code %d:\n%s", code, out)
	}
	if _, again := run(t, good...); again != out {
		t.Error("the same seed is another run")
	}
	code, out = run(t, "run", "--until-failure", "--sabotage", "lost-frame", "--disk", "memory")
	_, repeat, _ := strings.Cut(out, "\nrepeat it: clobsim ")
	args := strings.Fields(repeat)
	if code != cli.Failed || !strings.Contains(out, ": FAILED: step ") || len(args) == 0 {
		t.Fatalf("code %d:\n%s", code, out)
	}
	last := out[strings.LastIndex(out, "\nseed "):]
	if code, again := run(t, args...); code != cli.Failed || !strings.HasSuffix(again, last) {
		t.Errorf("%s: code %d:\n%s\nwant %s", repeat, code, again, last)
	}
	for _, bad := range [][]string{{"--steps", "0"}, {"--faults", "flood"}, {"--disk", "tape"}} {
		if code, out := run(t, append([]string{"run"}, bad...)...); code != cli.Usage {
			t.Errorf("%v: code %d:\n%s", bad, code, out)
		}
	}
}

// TestItems: each item names existing tests, and its name selects it.
func TestItems(t *testing.T) {
	code, out := run(t, "reliability", "--list")
	if code != cli.Done || strings.Count(out, "\n") != len(items()) {
		t.Errorf("code %d:\n%s", code, out)
	}
	for _, i := range items() {
		var text string
		files, err := filepath.Glob(filepath.Join("../..", i.folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text += string(b)
		}
		for _, name := range strings.Split(i.test, "|") {
			if !strings.Contains(text, "\nfunc "+name+"(t *testing.T) {") {
				t.Errorf("%s: there is no %s in %s", i.name, name, i.folder)
			}
		}
	}
	if code, _ := run(t, "reliability", "--only", "luck"); code != cli.Usage {
		t.Errorf("an item that there is not: code %d", code)
	}
}

// TestOutcome: the output of go test becomes counts, failures and skips; a test that did not run
// proves nothing.
func TestOutcome(t *testing.T) {
	for text, want := range map[string]string{
		"    a_test.go:1: figures: kills=20 lost=0\n    a_test.go:2: figures: kills=1.5\n--- PASS: TestA\n": "kills=21.5 lost=0 0",
		"--- PASS: TestA\n--- FAIL: TestB\n":                   " 1",
		"ok  	clobd/journal	0.1s [no tests to run]\n":          " 1",
		"    a_test.go:1: SKIPPED: no disk\n--- SKIP: TestA\n": " 0no disk",
	} {
		o := outcome{Counts: map[string]float64{}}
		o.read([]byte(text))
		if got := fmt.Sprintf("%s %d%s", o.text(), o.Failures, o.Skipped); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// change copies a file and replaces the first from in it by to.
func change(t *testing.T, name, from, to string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(from)) {
		t.Fatalf("%s does not hold %s", name, from)
	}
	path := filepath.Join(t.TempDir(), "changed")
	if err := os.WriteFile(path, bytes.Replace(b, []byte(from), []byte(to), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
