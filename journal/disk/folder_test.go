package disk

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestMakeFolderSurvivesACrash: no entry of the folders made is lost with what was not synced.
func TestMakeFolderSurvivesACrash(t *testing.T) {
	for _, path := range []string{"a", "a/b", "a/b/c/d"} {
		for _, existing := range []string{"", "a", "a/b"} {
			fs := vfs.NewCrashableMem()
			if existing != "" {
				if err := MakeFolder(fs, existing); err != nil {
					t.Fatal(err)
				}
			}
			if err := MakeFolder(fs, path); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			after := fs.CrashClone(vfs.CrashCloneCfg{RNG: rand.New(rand.NewPCG(1, 1))})
			if _, err := after.Stat(path); err != nil {
				t.Errorf("%s beside %q: %v", path, existing, err)
			}
		}
	}
}

// TestMakeFolder makes folders on the machine's own filesystem, for this user alone.
func TestMakeFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	absolute := filepath.Join(t.TempDir(), "x", "y", "z")
	for _, path := range []string{"a/b/c", "a/b/c", "d/", "./e/f", "e/g/../h", absolute, "."} {
		if err := MakeFolder(nil, path); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		info, err := os.Stat(filepath.Clean(path))
		if err != nil || !info.IsDir() || path != "." && info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MakeFolder(nil, "file/a"); err == nil || !strings.Contains(err.Error(), "file/a") {
		t.Errorf("below a file: %v", err)
	}
}

// TestMakeFolderForgivesOldParents: a parent that we may not read is no trouble if it had the entry
// before, and is if it got a new one.
func TestMakeFolderForgivesOldParents(t *testing.T) {
	disk := vfs.NewMem()
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpenDir && op.Path == "closed" {
			return syscall.EACCES
		}
		return nil
	}))
	if err := MakeFolder(fs, "closed/a"); err == nil || !strings.Contains(err.Error(), "sync") {
		t.Fatalf("a new entry: %v", err)
	}
	if err := MakeFolder(fs, "closed/a/b"); err != nil {
		t.Fatalf("an old entry: %v", err)
	}
}
