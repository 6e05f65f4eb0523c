package main

import (
	"cmp"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"clobd/bench"
)

// TestWritable checks that clobench tries its output files before it measures, and that trying
// leaves a file's content alone.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept.json")
	if err := os.WriteFile(kept, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := outputs{JSON: kept, HTML: filepath.Join(dir, "new", "a.html"), logs: filepath.Join(dir, "logs"),
		like: &bench.Report{Workload: "w"}}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(kept); string(b) != "before" {
		t.Errorf("%q, %v", b, err)
	}
	for _, folder := range []string{"new", "logs"} {
		if left, err := os.ReadDir(filepath.Join(dir, folder)); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", folder, left, err)
		}
	}
	bad := outputs{JSON: filepath.Join(kept, "a.json"), HTML: dir, logs: filepath.Join(kept, "b.hgrm"),
		like: &bench.Report{}}
	err := bad.check()
	for _, flag := range []string{"--json: ", "--html: ", "--hgrm: "} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("error %v, want %q", err, flag)
		}
	}
	if err := (&outputs{JSON: "-"}).check(); err != nil {
		t.Errorf("standard output: %v", err)
	}
}

// TestWritableLogs: those percentile logs are tried that will be written, and no others.
func TestWritableLogs(t *testing.T) {
	closed := &bench.Report{Workload: "w", Level: "L3"}
	open := &bench.Report{Workload: "w", Level: "L3", CorrectedMicros: &bench.Latency{}}
	climb := (&rampCommand{What: "book", Start: 100, Factor: 1.5, Steps: 2}).steps()
	for _, c := range []struct {
		logs    string
		like    any
		blocked string // by a folder
		refused bool
	}{
		{"a.hgrm", open, "a.hgrm", false},
		{"a.hgrm", open, "a-corrected.hgrm", true},
		{"a.hgrm", open, "a-uncorrected.hgrm", true},
		{"a.hgrm", closed, "a-corrected.hgrm", false},
		{"a.hgrm", closed, "a-uncorrected.hgrm", true},
		{"a.hgrm", climb, "a-2-corrected.hgrm", true},
		{"a.hgrm", climb, "a-3-corrected.hgrm", false},
		{"", closed, "w-L3-uncorrected.hgrm", true},
		{"", closed, "clobench.hgrm", false},
		{"", climb, "ramp-book-150-uncorrected.hgrm", true},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, c.blocked), 0o700); err != nil {
			t.Fatal(err)
		}
		o := outputs{logs: filepath.Join(dir, c.logs), like: c.like}
		err := o.check()
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), c.blocked) {
			t.Errorf("%q with %s in the way: %v", c.logs, c.blocked, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("%q: left %v", c.logs, left)
		}
	}
}

// TestHelp: a command that cannot load a node which runs already says so, and why; those that can
// take its keys.
func TestHelp(t *testing.T) {
	reasons := map[string]string{"stall": nodesInside, "pages": noNode}
	for _, command := range []string{"ramp", "flood", "overload", "streams", "stall", "pages", "agree",
		"compare", "turns", "budget"} {
		reason := cmp.Or(reasons[command], ownNodes)
		code, said := clobench(t, command, "--help")
		if flat := strings.Join(strings.Fields(said), " "); code != 0 || strings.Contains(flat, "--url=") ||
			!strings.Contains(flat, " "+reason+" "+useRun) ||
			strings.Contains(flat, "It starts nodes") != (reason == ownNodes) {
			t.Errorf("%s: code %d\n%s", command, code, said)
		}
	}
	for _, command := range []string{"run", "soak"} {
		_, said := clobench(t, command, "--help")
		for _, flag := range []string{"--url=", "--keys=", "--chain-id=", "--market="} {
			if !strings.Contains(said, flag) {
				t.Errorf("%s has no %s", command, flag)
			}
		}
	}
	_, said := clobench(t, "page", "--help")
	for _, kind := range []string{"run", "ramp", "compare", "flood", "streams", "soak"} {
		if !strings.Contains(said, kind) {
			t.Errorf("page does not name %s:\n%s", kind, said)
		}
	}
}

// TestDoc: the picture in doc.go has all commands.
func TestDoc(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	all := reflect.TypeFor[commands]()
	for i := range all.NumField() {
		f := all.Field(i)
		name := f.Tag.Get("name")
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		if name == "fanside" {
			name = "fan-side"
		}
		if !strings.Contains(string(text), "\n//\tclobench "+name+" ") {
			t.Errorf("doc.go does not list clobench %s", name)
		}
	}
}
