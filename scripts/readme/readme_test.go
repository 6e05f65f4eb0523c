// Package readme runs what README.md shows: its console blocks, in order, on binaries built for
// the purpose, and compares what they print with what the document says they print.
package readme

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// TestReadme runs the repository's own README in a folder that has binaries of its own in bin/ and
// shares the sources, so that nothing it makes stays in the repository.
func TestReadme(t *testing.T) {
	setting.Full(t, "a node and a load tester are built and run")
	document, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", "-o", folder+"/bin/", "./cmd/...")
	build.Dir = "../.."
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	for _, name := range []string{"api", "bench", "cmd", "engine", "ingress", "journal", "scripts"} {
		source, err := filepath.Abs("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(source, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := exec.LookPath("curl"); err != nil && strings.Contains(string(document), "curl") {
		t.Skipf("SKIPPED: the README's commands use curl, and this machine has none")
	}
	ports, err := freePorts(string(document))
	if err != nil {
		t.Fatal(err)
	}
	occupy(t, ports)
	// A command that names no address gets the node's own.
	t.Setenv("CLOBD_LISTEN", "127.0.0.1:"+ports[publicPort])
	t.Setenv("CLOBD_ADMIN", "127.0.0.1:"+ports[adminPort])
	runDocument(t, folder, onPorts(string(document), ports))
}

// occupy takes the ports that the document names, as another process of this machine may: the
// document must run all the same. One that is taken already is as good.
func occupy(t *testing.T, ports map[string]string) {
	t.Helper()
	for name := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:"+name)
		if err == nil {
			t.Cleanup(func() { listener.Close() })
		}
	}
}

func TestPorts(t *testing.T) {
	document := "$ a 127.0.0.1:18080 --x=localhost:18081/y\n127.0.0.1:18080 1127.0.0.1:1 10.0.0.1:18080\n"
	ports, err := freePorts(document)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, name := range []string{"18080", "18081", publicPort, adminPort} {
		if port := ports[name]; port == "" || port == name || seen[port] {
			t.Errorf("port %s became %q", name, port)
		}
		seen[ports[name]] = true
	}
	want := strings.NewReplacer("127.0.0.1:18080", "127.0.0.1:"+ports["18080"], "localhost:18081",
		"localhost:"+ports["18081"]).Replace(document)
	if got := onPorts(document, ports); got != want || len(ports) != 4 {
		t.Errorf("%d ports: got %s, want %s", len(ports), got, want)
	}
}

// runDocument runs every step and reports all that differ, so that one run shows what the document
// has to say.
func runDocument(t *testing.T, folder, document string) {
	t.Helper()
	all := steps(document)
	if len(all) == 0 {
		t.Fatal("the document has no console block")
	}
	c, err := openConsole(folder, append(os.Environ(), "HOME="+folder))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			showLogs(t, folder)
		}
	}()
	for i := range all {
		if all[i].skipped() {
			t.Logf("line %d: left out: $ %s", all[i].line, all[i].command)
			continue
		}
		if err := c.run(&all[i]); errors.Is(err, errShell) {
			t.Fatal(err)
		} else if err != nil {
			t.Error(err)
		}
	}
}

// showLogs prints what the background processes printed.
func showLogs(t *testing.T, folder string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(folder, "background-*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s:\n%s", filepath.Base(name), text)
	}
}

func TestSteps(t *testing.T) {
	document := "text\n$ not a command\n```console\n$ echo a\na\n$ echo b \\\n> c\nb c\n\n```\n" +
		"```sh\n$ echo no\n```\n```console\n$ true\n```\n"
	got := steps(document)
	want := []step{{4, "echo a", "a\n"}, {6, "echo b \\\nc", "b c\n\n"}, {15, "true", ""}}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("step %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		want, got string
		match     bool
	}{
		{"", "", true},
		{"", "x\n", false},
		{"a\n", "a", true},
		{"a\n", "b\n", false},
		{"a\nb\n", "a\n", false},
		{"a.c\n", "abc\n", false},
		{"a  \n\n", "a\n", true},
		{`{"t":…,"x":1}`, `{"t":123,"x":1}` + "\n", true},
		{`{"t":…,"x":1}`, `{"t":123,"x":2}` + "\n", false},
		{"a…b\n", "a\nb\n", false},
		{"a\n…\nb\n", "a\n1\n2\nb\n", true},
		{"a\n…\nb\n", "a\nb\n", true},
		{"a\n…\n", "a\n1\n2\n", true},
		{"a\n…\nb\n", "a\n1\nc\n", false},
	} {
		if matches(c.want, c.got) != c.match {
			t.Errorf("want %q, got %q: match %v", c.want, c.got, !c.match)
		}
	}
}

// TestDocuments runs small documents: those that tell the truth and those that do not.
func TestDocuments(t *testing.T) {
	for _, c := range []struct{ name, document, failure string }{
		{"output", "$ echo hello\nhello", ""},
		{"other output", "$ echo hello\ngoodbye", "printed:\nhello"},
		{"output not shown", "$ echo hello", "printed:\nhello"},
		{"no newline at the end", "$ printf x\nx", ""},
		{"standard error counts", "$ echo x >&2\nx", ""},
		{"failure", "$ false", "exit status 1"},
		{"failure in a pipe's end", "$ true | false", "exit status 1"},
		{"failure as shown", "$ echo error: no; false\nerror: no", ""},
		{"variables last", "$ a=1\n$ echo $a\n1", ""},
		{"more lines", "$ echo a \\\n  b\na b", ""},
		{"folder", "$ pwd | grep -o README-run\nREADME-run", ""},
		{"background", "$ sleep 60 &\n$ echo a\na", ""},
		{"background is silent", "$ echo noise &\n$ echo a\na", ""},
		{"and is not background", "$ true && echo a\na", ""},
		{"make is left out", "$ make everything\ndone\n$ echo a\na", ""},
		{"not now", "$ [ -e x ] || { touch x; printf '\\n503\\n'; false; } && echo a\na", ""},
		{"the shell ends", "$ exit 3", "the shell ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "README-run")
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			err := runAll(t, folder, "```console\n"+c.document+"\n```\n")
			switch {
			case c.failure == "" && err != nil:
				t.Error(err)
			case c.failure != "" && (err == nil || !strings.Contains(err.Error(), c.failure)):
				t.Errorf("got %v, want a failure with %q", err, c.failure)
			}
		})
	}
}

// runAll is runDocument for documents that may be wrong.
func runAll(t *testing.T, folder, document string) error {
	t.Helper()
	c, err := openConsole(folder, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	all := steps(document)
	for i := range all {
		if all[i].skipped() {
			continue
		}
		if err = c.run(&all[i]); err != nil {
			break
		}
	}
	pids := c.pids
	// A shell that the document ended has a status of its own.
	if closed := c.close(); closed != nil && err == nil {
		t.Error(closed)
	}
	for _, pid := range pids {
		if syscall.Kill(pid, 0) == nil && !waitGone(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
	return err
}

// waitGone gives init a moment to collect a process that was orphaned.
func waitGone(pid int) bool {
	for deadline := time.Now().Add(endTime); time.Now().Before(deadline); {
		if syscall.Kill(pid, 0) != nil {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}
