package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"clobd/cmd/clobd/doctor"
	"clobd/scripts/setting"
)

// examine runs clobd doctor, and returns what it prints, what it complains about, and its code.
func examine(t *testing.T, args ...string) (text, complaint string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, buildNode(t), append([]string{"doctor"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// TestDoctor: code 0 where nothing fails, 1 where a promise cannot be kept, with the promise's
// name, 2 for a wrong flag. A folder that was not there is not there afterwards.
func TestDoctor(t *testing.T) {
	setting.Full(t, "TestDoctorBesideANode stays")
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	text, complaint, code := examine(t, "--data", data, "--sockets", "1", "--disk-reserve", "1KiB",
		"--disk-ballast", "0")
	fails := strings.HasPrefix(text, "FAIL") || strings.Contains(text, "\nFAIL")
	if fails != (code == 1) || fails == (complaint == "") || code > 1 ||
		!strings.Contains(text, data+" does not exist yet") ||
		!strings.Contains(text, " orders/s in POST /order, ") {
		t.Errorf("code %d: %s\n%s", code, complaint, text)
	}
	if built := "built by " + runtime.Version() + ".\n"; !strings.Contains(text, built) {
		t.Errorf("no %q: %s", built, text)
	}
	if exists(data) {
		t.Errorf("%s was made", data)
	}
	text, complaint, code = examine(t, "--data", data, "--disk-reserve", "1024TiB", "--lanes", "off",
		"--json")
	var d doctor.Diagnosis
	if err := json.Unmarshal([]byte(text), &d); err != nil || code != 1 ||
		!slices.Contains(d.Broken(), "disk") || len(d.Changes) == 0 || d.Estimate == nil ||
		!strings.HasPrefix(d.Estimate.Body, "Go (") || d.Estimate.Go != runtime.Version() ||
		!strings.Contains(complaint, "error: a promise cannot be kept here: ") ||
		!strings.Contains(complaint, "disk") || !strings.Contains(complaint, "\nhint: ") {
		t.Errorf("code %d, %v: %s\n%s", code, err, complaint, text)
	}
	for _, args := range [][]string{{"--sockets", "0"}, {"--nonsense"}, {"--disk-reserve", "much"},
		{"--lanes", "some"}, {"more"}} {
		if text, complaint, code := examine(t, args...); code != 2 || text != "" ||
			!strings.HasPrefix(complaint, "error: ") {
			t.Errorf("%v: code %d, %s%s", args, code, complaint, text)
		}
	}
}

// TestDoctorOfMemory: a folder in memory keeps nothing, so the doctor fails it; and one that others
// may change, which a node refuses.
func TestDoctorOfMemory(t *testing.T) {
	setting.Full(t, "TestDoctorBesideANode stays")
	t.Parallel()
	open := filepath.Join(t.TempDir(), "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	if text, _, code := examine(t, "--data", open); code != 1 ||
		!strings.HasPrefix(text, "FAIL  folder ") || !strings.Contains(text, "others may change it") {
		t.Errorf("code %d: %s", code, text)
	}
	var s syscall.Statfs_t
	const inMemory = 0x01021994 // TMPFS_MAGIC
	if err := syscall.Statfs("/dev/shm", &s); err != nil || s.Type != inMemory {
		t.Skipf("SKIPPED: /dev/shm is not in memory: %v", err)
	}
	text, _, code := examine(t, "--data", "/dev/shm/clobd-doctor-test/data")
	if code != 1 || !strings.Contains(text, "\nFAIL  filesystem  tmpfs ") {
		t.Errorf("code %d: %s", code, text)
	}
}

// TestDoctorBesideANode: the node goes on, its folder is as it was, and the limits are its own.
func TestDoctorBesideANode(t *testing.T) {
	t.Parallel()
	p := newProcess(t, buildNode(t), t.TempDir())
	p.start(t)
	pid := p.cmd.Process.Pid
	limit := syscall.Rlimit{Cur: 777, Max: 777}
	if _, _, no := syscall.Syscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_NOFILE,
		uintptr(unsafe.Pointer(&limit)), 0, 0, 0); no != 0 {
		t.Fatal(no)
	}
	before, err := os.ReadDir(p.data)
	if err != nil {
		t.Fatal(err)
	}
	text, _, code := examine(t, "--data", p.data)
	if code != 1 || !strings.Contains(text, fmt.Sprintf("in use by process %d", pid)) ||
		!strings.Contains(text, "FAIL  files       777 open files") {
		t.Errorf("code %d: %s", code, text)
	}
	after, err := os.ReadDir(p.data)
	if fmt.Sprint(before) != fmt.Sprint(after) || err != nil {
		t.Errorf("the folder had %v, has %v, %v", before, after, err)
	}
	p.await(t)
	p.stop(t)
}
