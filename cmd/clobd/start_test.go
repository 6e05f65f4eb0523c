package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/client"
	"clobd/engine"
	"clobd/journal"
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
	t.Parallel()
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
	t.Parallel()
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
		"bad proxies": {append(free(), "--data", folder+"/e", "--trusted-proxy", "10.0.0.1",
			"--trusted-proxy", "lan", "--exchange", "x"), []string{
			"error: --trusted-proxy \"10.0.0.1\" is no network\nhint: write an address",
			"error: --trusted-proxy \"lan\" is no network\nhint: ", "NAME,VERSION,ADDRESS",
			"\nhint: clobd serve --help"}},
	} {
		var stderr strings.Builder
		cmd := exec.Command(binary, append([]string{"serve", "--log-level", "error"}, c.args...)...)
		cmd.Stderr = &stderr
		_ = cmd.Run() // the code is looked at below
		want := 1
		if name == "bad exchange" || name == "bad proxies" {
			want = cli.Usage
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
	// A catalog that is none, or is not there, ends a start before it makes anything.
	for _, name := range []string{"b", "c"} {
		if _, err := os.Stat(filepath.Join(folder, name)); !os.IsNotExist(err) {
			t.Errorf("a refused catalog left a data folder %s: %v", name, err)
		}
	}
	holder.stop(t)
}

// refusedStart starts a node that must end by itself and returns its code and standard error.
func refusedStart(t *testing.T, binary string, args ...string) (code int, stderr string) {
	t.Helper()
	var text strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args = append([]string{"serve", "--log-level", "error", "--listen", freeAddress(t),
		"--admin", freeAddress(t)}, args...)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stderr = &text
	_ = cmd.Run() // the caller looks at the code
	return cmd.ProcessState.ExitCode(), text.String()
}

// TestBadCatalogIsFoundFirst: a start that fails for its catalog journals nothing.
func TestBadCatalogIsFoundFirst(t *testing.T) {
	folder := t.TempDir()
	p := newProcess(t, buildNode(t), folder)
	p.start(t)
	first := p.sequence(t)
	p.stop(t)
	file := filepath.Join(folder, "bad")
	if err := os.WriteFile(file, []byte("[1, 2]"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, text := refusedStart(t, p.binary, "--data", p.data, "--catalog", file)
	if code != cli.Failed || !strings.HasPrefix(text, "error: catalog "+file) ||
		!strings.Contains(text, "\nhint: --catalog takes") {
		t.Errorf("code %d:\n%s", code, text)
	}
	p.start(t)
	if again := p.sequence(t); again != first+1 {
		t.Errorf("Sequence %d after a refused start, %d before", again, first)
	}
	p.stop(t)
}

// TestDamagedJournal: a journal that makes no sense ends a start with code 70, one that cannot be
// opened with 1, and both say what to do on a line of its own.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	p := newProcess(t, buildNode(t), t.TempDir())
	p.start(t)
	p.stop(t)
	forge(t, p.data)
	code, text := refusedStart(t, p.binary, "--data", p.data)
	what, hint, _ := strings.Cut(text, "\nhint: ")
	if code != cli.Broken || !strings.Contains(what, "error: journal ") ||
		!strings.Contains(what, "is broken at frame") ||
		!strings.HasPrefix(hint, "this program does not compute what the one that wrote it did") ||
		strings.Contains(what, "report it") {
		t.Errorf("code %d:\n%s", code, text)
	}
	names, err := filepath.Glob(filepath.Join(p.data, "journal", "MANIFEST*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no manifest: %v", err)
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	code, text = refusedStart(t, p.binary, "--data", p.data)
	if code != cli.Broken || !strings.Contains(text, "error: open journal ") ||
		!strings.Contains(text, "\nhint: if another version of clobd wrote it") {
		t.Errorf("code %d:\n%s", code, text)
	}
}

// forge appends a frame whose Digest no engine computes.
func forge(t *testing.T, data string) {
	t.Helper()
	j, err := journal.Open(journal.Options{Dir: data, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	head, err := j.Recover(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := engine.Frame{Engine: engine.Version, Epoch: head.Epoch, No: head.Frame + 1,
		First: head.Sequence + 1, Time: head.Time + 1, Digest: 1,
		Commands: []engine.Command{{Kind: engine.Deposit, Address: engine.Address{1}, Cash: 1}},
		Ends:     []uint32{0}}
	f.Encode(head.Hash)
	for _, err := range []error{j.Append(&f), j.Wait(f.No), j.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFirstFailureIsTold: what a step of the start met may only follow from what ended beside it.
func TestFirstFailureIsTold(t *testing.T) {
	n := &node{failed: make(chan error, 1)}
	n.fail("sequencer", &cli.BrokenError{Err: errors.New("disk full")})
	err := errors.Join(n.first(), errors.New("journal the start: outcome unknown"))
	var broken *cli.BrokenError
	if !errors.As(err, &broken) || n.first() != nil {
		t.Errorf("%v", err)
	}
}

// TestOperatorAddress: the admin listener may be written as a URL; what is no address is wrong
// usage.
func TestOperatorAddress(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("{}\n"))
	}))
	defer server.Close()
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "admin.token"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(server.URL, "http://")
	for _, form := range []string{address, "http://" + address, "http://" + address + "/"} {
		o := client.Operator{Admin: form, Data: data}
		got, err := o.Post("/admin/link", map[string]string{"wallet": "w"}, time.Minute)
		if err != nil || got != "{}" {
			t.Errorf("%s: %q %v", form, got, err)
		}
	}
	if len(asked) != 3 || asked[2] != "/admin/link Bearer secret" {
		t.Errorf("asked %q", asked)
	}
	for _, form := range []string{"ftp://" + address, "localhost", "", address + "/admin"} {
		o := client.Operator{Admin: form, Data: data}
		var usage *cli.UsageError
		if _, err := o.Post("/admin/link", nil, time.Minute); !errors.As(err, &usage) {
			t.Errorf("%q: %v", form, err)
		}
	}
}

// TestStopWhileStarting: a node that waits for its catalog ends when it is told to, and not when it
// is told to look at it again.
func TestStopWhileStarting(t *testing.T) {
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(buildNode(t), "serve", "--data", folder+"/data", "--catalog", pipe,
		"--listen", freeAddress(t), "--admin", freeAddress(t), "--log-level", "error")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	opened := make(chan *os.File, 1)
	go func() { // is done when the node reads
		writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
		}
		opened <- writer
	}()
	select {
	case writer := <-opened:
		defer writer.Close() // nothing is ever written
	case err := <-ended:
		t.Fatalf("the node ended before it read its catalog: %v", err)
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatal("the node does not read its catalog")
	}
	err := errors.Join(cmd.Process.Signal(syscall.SIGHUP), cmd.Process.Signal(syscall.SIGTERM))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatalf("the node was still there %v after SIGTERM", patience)
	}
}
