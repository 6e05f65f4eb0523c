package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/cmd/cli"
	"clobd/journal/disk"
	"clobd/scripts/setting"
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
	t.Parallel()
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

// TestStageAfterKill: whatever a kill leaves of a try is no hindrance for the next one: while its
// folder is made, filled, and removed again.
func TestStageAfterKill(t *testing.T) {
	note := stageNote
	for name, left := range map[string]map[string]string{
		"nothing in it yet":    {},
		"half a note":          {note + ".tmp-1": stageText[:5]},
		"a note of its own":    {note: stageText},
		"a part of all":        {note: stageText, "whole/journal/x": "x"},
		"two notes":            {note: stageText, note + ".tmp-2": ""},
		"foreign file":         {"mine": "x"},
		"foreign beside":       {note + ".tmp-1": "", "mine": "x"},
		"foreign note":         {note: "mine"},
		"a folder, not a note": {note + ".tmp-1/mine": "x"},
	} {
		to := filepath.Join(t.TempDir(), "backup")
		if err := os.Mkdir(to+partSuffix, 0o700); err != nil {
			t.Fatal(err)
		}
		for path, text := range left {
			path = filepath.Join(to+partSuffix, path)
			err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
				os.WriteFile(path, []byte(text), 0o600))
			if err != nil {
				t.Fatal(err)
			}
		}
		foreign := strings.HasPrefix(name, "foreign") || strings.HasPrefix(name, "a folder")
		s, err := newStage(to)
		if foreign != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
		if foreign {
			for path := range left {
				if !exists(to+partSuffix, path) {
					t.Errorf("%s: %s is gone", name, path)
				}
			}
		} else if exists(s.part) || s.discard() != nil || exists(s.hull) {
			t.Errorf("%s: a part of the try before is there", name)
		}
	}
}

// TestRestoreAfterKills: a restore that was killed at any moment, again and again, is no hindrance
// for the next one.
func TestRestoreAfterKills(t *testing.T) {
	t.Parallel()
	setting.Full(t, "TestRestoreTo stays")
	p, backup := backedUp(t)
	to := filepath.Join(t.TempDir(), "data")
	restore := []string{"restore", "--from", backup, "--data", to}
	killed := 0
	for i := range 40 {
		c := exec.Command(p.binary, restore...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 2 * time.Millisecond)
		if exists(to) {
			_ = c.Wait()
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
			continue
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		killed++
		if err := os.RemoveAll(to); err != nil { // the last moment put it there
			t.Fatal(err)
		}
	}
	if killed < 5 {
		t.Errorf("%d of 40 were killed", killed)
	}
	p.expect(t, cli.Done, restore, "restored to")
	if exists(to + partSuffix) {
		t.Error("the folder of a try is left")
	}
}

// TestBackupOfDamage: a backup whose catalog or secrets are damaged is not called good.
func TestBackupOfDamage(t *testing.T) {
	setting.Full(t, "TestBackup stays")
	t.Parallel()
	w := newWorldOf(t, 4, 3)
	n, folder := w.node, t.TempDir()
	backUp := func(to string, code int, words ...string) {
		t.Helper()
		n.expect(t, code, []string{"backup", "--keys", "--data", n.data, "--admin", n.admin, "--to",
			filepath.Join(folder, to)}, words...)
	}
	backUp("good", cli.Done, "it holds master.key")
	spoil := func(name string, at int) (mend func()) {
		t.Helper()
		path := filepath.Join(n.data, name)
		good, err := os.ReadFile(path)
		bad := bytes.Clone(good)
		if bad[at] = '0'; good[at] == '0' {
			bad[at] = '1'
		}
		if err = errors.Join(err, os.WriteFile(path, bad, 0o600)); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := os.WriteFile(path, good, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	log, err := filepath.Glob(filepath.Join(n.data, "catalog", "records-*"))
	if err != nil || len(log) != 1 {
		t.Fatal(log, err)
	}
	records := filepath.Join("catalog", filepath.Base(log[0]))
	mend := spoil(records, 300)
	backUp("catalog", cli.Failed, "error: ", "the catalog is damaged", "has all the rest",
		"hint: start the node again")
	if !exists(folder, "catalog/journal") {
		t.Error("the rest is not there")
	}
	mend()
	for name, at := range map[string]int{masterName: 5, secretCheckName: 7} {
		mend := spoil(name, at)
		backUp("keys", cli.Failed, "error: ", "the master secret is not the one")
		mend()
		if exists(folder, "keys") || exists(folder, "keys"+partSuffix) {
			t.Errorf("with a damaged %s something is there", name)
		}
	}
	backUp("again", cli.Done, "it holds master.key")
	n.stop(t)
}
