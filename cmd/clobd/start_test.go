package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sequence is the last Sequence that a ready node tells.
func (p *process) sequence(t *testing.T) uint64 {
	t.Helper()
	answer, err := http.Get("http://" + p.admin + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var told struct{ Sequence uint64 }
	if err := json.NewDecoder(answer.Body).Decode(&told); err != nil {
		t.Fatal(err)
	}
	return told.Sequence
}

// TestRestartWritesOneCommand: a start journals that it happened, and nothing that is known.
func TestRestartWritesOneCommand(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "catalog.jsonl")
	writeCatalog(t, file, 3)
	p := newProcess(t, buildNode(t), folder, "--catalog", file)
	p.start(t)
	first := p.sequence(t)
	p.stop(t)
	if first != 4 { // Started and three markets
		t.Errorf("the first start ended at Sequence %d", first)
	}
	p.start(t)
	if again := p.sequence(t); again != first+1 {
		t.Errorf("the second start went from Sequence %d to %d", first, again)
	}
	p.stop(t)
}

// TestRefusedStarts: what cannot work is said with what to do, on standard error, with code 1.
func TestRefusedStarts(t *testing.T) {
	folder := t.TempDir()
	binary := buildNode(t)
	holder := newProcess(t, binary, folder)
	holder.start(t)
	loose := filepath.Join(folder, "loose")
	if err := os.MkdirAll(loose, 0o700); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(loose, "master.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("ab", 32)), 0o644); err != nil {
		t.Fatal(err)
	}
	free := func() []string {
		return []string{"--listen", freeAddress(t), "--admin", freeAddress(t)}
	}
	for name, c := range map[string]struct{ args, says []string }{
		"folder in use": {append(free(), "--data", holder.data),
			[]string{"error: ", "in use by process", "hint: --data"}},
		"port in use": {[]string{"--data", folder + "/a", "--listen", holder.listen},
			[]string{"error: open public listener", "hint: --listen"}},
		"loose secret": {append(free(), "--data", loose), []string{"mode 0644", "chmod 600"}},
		"no catalog": {append(free(), "--data", folder+"/b", "--catalog", "nowhere"),
			[]string{"error: open catalog", "hint: --catalog"}},
		"no such catalog": {append(free(), "--data", folder+"/c", "--catalog", key),
			[]string{"not a catalog", "hint: --catalog"}},
		"bad exchange": {append(free(), "--data", folder+"/d", "--exchange", "x"),
			[]string{"NAME,VERSION,ADDRESS"}},
	} {
		var stderr strings.Builder
		cmd := exec.Command(binary, append([]string{"serve", "--log-level", "error"}, c.args...)...)
		cmd.Stderr = &stderr
		_ = cmd.Run() // the code is looked at below
		want := 1
		if name == "bad exchange" {
			want = 2 // wrong usage
		}
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("%s: code %d, not %d\n%s", name, code, want, &stderr)
		}
		for _, want := range c.says {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%s: standard error lacks %q:\n%s", name, want, &stderr)
			}
		}
	}
	holder.stop(t)
}

// TestStopWhileStarting: a node that waits for its catalog ends when it is told to.
func TestStopWhileStarting(t *testing.T) {
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // and never writes
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	cmd := exec.Command(buildNode(t), "serve", "--data", folder+"/data", "--catalog", pipe,
		"--listen", freeAddress(t), "--admin", freeAddress(t), "--log-level", "error")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	time.Sleep(300 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		_ = cmd.Process.Kill()
		t.Fatal("the node was still there 5 s after SIGTERM")
	}
}
