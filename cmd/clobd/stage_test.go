package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"clobd/cmd/cli"
	"clobd/journal/disk"
)

// backedUp is a backup of a small node that has ended.
func backedUp(t *testing.T) (p *process, backup string) {
	t.Helper()
	p = newProcess(t, buildNode(t), t.TempDir())
	p.start(t)
	backup = filepath.Join(t.TempDir(), "backup")
	p.expect(t, cli.Done, []string{"backup", "--data", p.data, "--admin", p.admin, "--to", backup})
	p.stop(t)
	return p, backup
}

// TestRestoreTo: a backup comes back into an empty folder, through a link, and onto a disk's own
// folder; not into itself, nor where something is.
func TestRestoreTo(t *testing.T) {
	p, backup := backedUp(t)
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	err := errors.Join(os.Mkdir(in("empty"), 0o700), os.Mkdir(in("real"), 0o700),
		os.Symlink("real", in("link")), os.Symlink("nowhere", in("dangling")), os.Mkdir(in("full"), 0o700),
		os.WriteFile(in("full/x"), nil, 0o600), os.Symlink(backup, in("again")))
	if err != nil {
		t.Fatal(err)
	}
	good := []string{"new", "empty", "link", "deep/er"}
	if os.Mkdir(in("disk"), 0o700) == nil &&
		syscall.Mount("none", in("disk"), "tmpfs", 0, "size=64m") == nil {
		defer syscall.Unmount(in("disk"), 0)
		good = append(good, "disk")
		if err := os.Mkdir(in("disk/lost+found"), 0o700); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Log("SKIPPED: a disk's own folder: nothing can be mounted")
	}
	for _, name := range good {
		p.expect(t, cli.Done, []string{"restore", "--from", backup, "--data", in(name)}, "restored to")
		if !exists(in(name), "journal") || !exists(in(name), "mark") || exists(in(name), insideName) ||
			exists(in(name)+partSuffix) || exists(in(name), backupNoteName) {
			t.Errorf("%s is not as it should be", name)
		}
		p.expect(t, cli.Done, []string{"recover", "--data", in(name)}, "nothing is lost")
	}
	if about, err := os.Lstat(in("link")); err != nil || about.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link was replaced: %v", err)
	}
	before := folderSize(backup)
	for name, word := range map[string]string{"full": "is not empty", "dangling": "no such file",
		"again/x": "lies in the backup"} {
		p.expect(t, cli.Failed, []string{"restore", "--from", backup, "--data", in(name)}, word)
	}
	p.expect(t, cli.Failed, []string{"restore", "--from", backup, "--data", backup + "/a/b"}, "lies in")
	if after := folderSize(backup); after != before || exists(in("nowhere")) {
		t.Errorf("%d bytes of the backup became %d", before, after)
	}
}

// TestStageFailsWhole: a folder that cannot be put into its place as a whole is not there in part.
func TestStageFailsWhole(t *testing.T) {
	to := t.TempDir()
	s, err := newStage(to)
	if err != nil || !s.inside {
		t.Fatal(s, err)
	}
	err = errors.Join(os.Mkdir(s.part, 0o700), os.WriteFile(s.part+"/mark", nil, 0o600),
		os.WriteFile(s.part+"/a", nil, 0o600))
	if e := s.finish(); err != nil || e == nil { // there is no journal
		t.Fatal(err, e)
	}
	if names, err := os.ReadDir(to); err != nil || len(names) != 1 || names[0].Name() != insideName {
		t.Errorf("%v, %v", names, err)
	}
	if s, err = newStage(to); err != nil || exists(s.part) {
		t.Errorf("another try: %v", err)
	}
}

// TestForeignPart: a folder that has the name of a try, and is none, stays as it is; what a try has
// left does not.
func TestForeignPart(t *testing.T) {
	to := filepath.Join(t.TempDir(), "backup")
	mine := filepath.Join(to+partSuffix, "mine")
	err := errors.Join(os.Mkdir(to+partSuffix, 0o700), os.WriteFile(mine, []byte("x"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newStage(to); err == nil || !strings.Contains(err.Error(), "is in the way") {
		t.Errorf("a foreign folder: %v", err)
	}
	if b, err := os.ReadFile(mine); string(b) != "x" {
		t.Errorf("it was changed: %q, %v", b, err)
	}
	if err := os.RemoveAll(to + partSuffix); err != nil {
		t.Fatal(err)
	}
	first, err := newStage(to)
	if err == nil {
		err = os.Mkdir(first.part, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	second, err := newStage(to)
	if err != nil || exists(second.part) {
		t.Errorf("what a try has left: %v", err)
	}
}

// TestReadOnlyDisk: what is on a disk that cannot be written is checked and read all the same, and
// nobody is said to have it; what would write says why it cannot.
func TestReadOnlyDisk(t *testing.T) {
	p, backup := backedUp(t)
	at := filepath.Join(t.TempDir(), "ro")
	err := os.Mkdir(at, 0o700)
	if err == nil {
		err = syscall.Mount(backup, at, "", syscall.MS_BIND, "")
	}
	if err != nil {
		t.Skipf("SKIPPED: nothing can be mounted: %v", err)
	}
	defer syscall.Unmount(at, 0)
	if err := syscall.Mount("none", at, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY,
		""); err != nil {
		t.Skipf("SKIPPED: nothing can be mounted for reading only: %v", err)
	}
	p.expect(t, cli.Done, []string{"verify", "--data", at}, "all is well")
	p.expect(t, cli.Done, []string{"inspect", "--data", at, "--until", "1"}, "epoch-started")
	p.expect(t, cli.Done, []string{"recover", "--data", at}, "nothing is lost")
	for _, args := range [][]string{{"checkpoint", "--data", at}, {"serve", "--data", at}} {
		said := p.expect(t, cli.Failed, args, "read-only file system", "hint: ")
		if strings.Contains(said, "in use") {
			t.Errorf("%v: %s", args, said)
		}
	}
}

// TestSecondNodeTouchesNothing: a node that finds another one in its folder leaves all of it alone.
func TestSecondNodeTouchesNothing(t *testing.T) {
	p := newProcess(t, buildNode(t), t.TempDir(), "--disk-ballast", "1MiB")
	p.start(t)
	if err := os.Remove(filepath.Join(p.data, "admin.token")); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(p.data, "ballast")
	before, err := os.Stat(ballast)
	if err != nil {
		t.Fatal(err)
	}
	p.expect(t, cli.Failed, []string{"serve", "--data", p.data, "--disk-ballast", "2MiB", "--listen",
		freeAddress(t), "--admin", freeAddress(t)}, "is in use by process", "hint: --data")
	after, err := os.Stat(ballast)
	if err != nil || !os.SameFile(before, after) || after.Size() != before.Size() {
		t.Errorf("%+v became %+v, %v", before, after, err)
	}
	if exists(p.data, "admin.token") {
		t.Error("it has made a token")
	}
	p.stop(t)
	claim, err := disk.TakeClaim(p.data)
	if err = errors.Join(err, claim.Release()); err != nil {
		t.Errorf("the folder is not free again: %v", err)
	}
}
