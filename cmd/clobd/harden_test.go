package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// TestFolderOfOthers: a data folder that others may write to, or that is another's, is refused with
// what to do.
func TestFolderOfOthers(t *testing.T) {
	binary := buildNode(t)
	for _, mode := range []os.FileMode{0o770, 0o702, 0o777} {
		data := filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(data, mode); err != nil {
			t.Fatal(err)
		}
		code, text := refusedStart(t, binary, "--data", data)
		if code != 1 || !strings.Contains(text, "others may change it") ||
			!strings.Contains(text, "hint: if nobody has, chmod go-w "+data) {
			t.Errorf("mode %o: code %d\n%s", mode, code, text)
		}
		if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
			t.Errorf("mode %o: the refused start left %v %v", mode, left, err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can give a folder away")
	}
	data := t.TempDir()
	if err := os.Chown(data, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if code, text := refusedStart(t, binary, "--data", data); code != 1 ||
		!strings.Contains(text, "belongs to user 65534") || !strings.Contains(text, "hint: run") {
		t.Errorf("another owner: code %d\n%s", code, text)
	}
}

// TestFilesOfOthers: the same goes for each file and folder in it, if others get as far. A node
// makes none of that kind, whatever the umask of its shell.
func TestFilesOfOthers(t *testing.T) {
	setting.Full(t, "several starts")
	binary := buildNode(t)
	p := newProcess(t, binary, t.TempDir())
	before := syscall.Umask(0)
	p.start(t)
	syscall.Umask(before)
	p.stop(t)
	if err := os.Mkdir(filepath.Join(p.data, "lost+found"), 0o777); err != nil {
		t.Fatal(err)
	}
	parts := map[string]os.FileInfo{} // the first file of each folder, and the folder
	err := filepath.WalkDir(p.data, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() == "lost+found" {
			return err
		}
		state, err := e.Info()
		if err == nil && state.Mode().Perm()&0o022 != 0 {
			t.Errorf("%s has mode %04o", path, state.Mode().Perm())
		}
		dir := filepath.Dir(path)
		if _, taken := parts[dir+"/"]; e.Type().IsRegular() && !taken {
			parts[dir+"/"], parts[path] = state, state
		} else if e.IsDir() && path != p.data {
			parts[path] = state
		}
		return err
	})
	if err != nil || len(parts) < 8 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	folders := func(mode os.FileMode) {
		_ = filepath.WalkDir(p.data, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				err = os.Chmod(path, mode)
			}
			return err
		})
	}
	for path, state := range parts {
		if strings.HasSuffix(path, "/") {
			continue
		}
		folders(0o755)
		if err := os.Chmod(path, state.Mode().Perm()|0o020); err != nil {
			t.Fatal(err)
		}
		if code, text := refusedStart(t, binary, "--data", p.data); code != 1 ||
			!strings.Contains(text, path+" has mode") || !strings.Contains(text, "hint: if nobody has") {
			t.Errorf("%s: code %d\n%s", path, code, text)
		}
		folders(0o700)
		if !state.IsDir() {
			if err := checkFolder(p.data); err != nil {
				t.Errorf("nobody else gets as far as %s: %v", path, err)
			}
		}
		if err := os.Chmod(path, state.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	p.start(t)
	p.stop(t)
}

// TestNoDumps: another process of the node's user sees nothing of it and no core dump is written,
// but the node itself still measures and profiles itself, and gathers its memory. --allow-core
// opens it.
func TestNoDumps(t *testing.T) {
	setting.Full(t, "TestSecretsLeaveTheHeap stays")
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can be somebody else")
	}
	folder, err := os.MkdirTemp("", "clobd-dumps-") // t.TempDir is for its owner only
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	const nobody = 65534
	binary := filepath.Join(folder, "clobd")
	text, err := os.ReadFile(buildNode(t))
	if err == nil {
		err = os.WriteFile(binary, text, 0o755)
	}
	if err = errors.Join(err, os.Chmod(folder, 0o755), os.Mkdir(folder+"/a", 0o700),
		os.Chown(folder+"/a", nobody, nobody), os.Mkdir(folder+"/b", 0o700),
		os.Chown(folder+"/b", nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	for data, flag := range map[string]string{"/a": "", "/b": "--allow-core"} {
		p := newProcess(t, binary, folder)
		p.data, p.as = folder+data, &syscall.Credential{Uid: nobody, Gid: nobody}
		if flag != "" {
			p.flags = append(p.flags, flag)
		}
		p.start(t)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		spy := exec.CommandContext(ctx, "cat", "/proc/"+strconv.Itoa(p.cmd.Process.Pid)+"/environ")
		spy.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
		seen, err := spy.CombinedOutput()
		cancel()
		if open := err == nil; open != (flag != "") {
			t.Errorf("flag %q: another process reads %q, %v", flag, seen, err)
		}
		limits, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/limits")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(limits)) {
			if rest, is := strings.CutPrefix(line, "Max core file size"); is && flag == "" &&
				strings.Fields(rest)[1] != "0" {
				t.Errorf("core dumps may be written: %s", line)
			}
		}
		if log := p.log.String(); strings.Contains(log, "permission denied") ||
			strings.Contains(log, "not permitted") {
			t.Errorf("flag %q: the node may not do something:\n%s", flag, log)
		}
		if got := p.asOperator(t, "/metrics"); !strings.Contains(got, "\nprocess_open_fds ") ||
			!strings.Contains(got, "\nprocess_resident_memory_bytes ") {
			t.Errorf("flag %q: no metrics of the process:\n%.2000s", flag, got)
		}
		for _, path := range []string{"heap", "goroutine", "profile?seconds=1"} {
			if got := p.asOperator(t, "/debug/pprof/"+path); len(got) < 100 {
				t.Errorf("flag %q: profile %s: %q", flag, path, got)
			}
		}
		p.stop(t)
	}
}

// asOperator reads a path of the admin listener, which must answer 200.
func (p *process) asOperator(t *testing.T, path string) string {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(p.data, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest("GET", "http://"+p.admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	client := http.Client{Timeout: time.Minute}
	a, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != 200 {
		t.Errorf("%s: %d %v", path, a.StatusCode, err)
	}
	return string(body)
}
