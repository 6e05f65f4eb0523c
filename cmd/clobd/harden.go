package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"clobd/cmd/cli"
	"clobd/engine/pages"
	"clobd/ingress/auth"
)

// keepToItself makes the process one that leaves no core dump and that no other process of its user
// may look into, unless --allow-core is given. What the system refuses is in the log.
func (s *settings) keepToItself() {
	if s.AllowCore {
		return
	}
	pages.Prepare()
	if err := seal(); err != nil {
		s.log.Warn("core dumps or debuggers may see secrets", "error", err)
	}
}

// seal forbids core dumps and debuggers of this process.
func seal() error {
	err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	return errors.Join(err, notDumpable())
}

// checkFolder refuses a data folder of which others may change anything: whoever can swap its files
// can give the node another journal, and another secret. Links are not followed.
func checkFolder(path string) error {
	root, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the node makes its own
	} else if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if err := checkMode(path, root, true); err != nil {
		return err
	}
	entered := map[string]bool{".": entersOthers(root)} // folders that others can look into
	return fs.WalkDir(os.DirFS(path), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return nil // gone meanwhile, or not readable: opening it says what is wrong
		}
		if name == "lost+found" { // a disk has that
			return fs.SkipDir
		}
		state, err := e.Info()
		if err != nil || !e.IsDir() && !state.Mode().IsRegular() {
			return nil
		}
		reached := entered[filepath.Dir(name)]
		if e.IsDir() {
			entered[name] = reached && entersOthers(state)
		}
		return checkMode(filepath.Join(path, name), state, reached || e.IsDir())
	})
}

// entersOthers reports whether others than the owner may get at what is in a folder.
func entersOthers(folder fs.FileInfo) bool { return folder.Mode().Perm()&0o011 != 0 }

// checkMode refuses a file or folder that others than this user, and root, may change. Nobody can
// change a file that is not within reach, whatever its mode.
func checkMode(path string, state fs.FileInfo, reached bool) error {
	if mode := state.Mode().Perm(); reached && mode&0o022 != 0 {
		return cli.Hint(fmt.Errorf("data folder: %s has mode %04o, so others may change it", path, mode),
			"if nobody has, chmod go-w %s", path)
	}
	system, ok := state.Sys().(*syscall.Stat_t)
	if !ok || int(system.Uid) == os.Geteuid() || system.Uid == 0 && !state.IsDir() {
		return nil
	}
	return cli.Hint(fmt.Errorf("data folder: %s belongs to user %d, and the node runs as %d", path,
		system.Uid, os.Geteuid()), "run the node as its owner, or chown -R the data folder")
}

const bearer = "Bearer "

// secrets are what the node must not let out, in locked memory. The key of a TLS certificate is not
// among them: crypto/tls keeps it on the heap.
type secrets struct {
	vault   *auth.Vault
	live    []auth.Master // the newest last
	keyring *auth.Keyring // of them
	bearer  []byte        // what the operator says: Bearer and his token in hex
	token   string        // the token as it stands in bearer
}

// lockSecrets moves the secrets of a start into a Vault.
func (s *settings) lockSecrets(masters []master, token *[32]byte) (kept secrets) {
	var err error
	if kept.vault, err = auth.NewVault(); err != nil {
		s.log.Warn("secrets are not kept apart in memory", "error", err)
	}
	kept.useMasters(masters)
	kept.bearer = kept.vault.KeepText(hex.AppendEncode([]byte(bearer), token[:]))
	clear(token[:])
	kept.token = unsafe.String(&kept.bearer[len(bearer)], len(kept.bearer)-len(bearer))
	return kept
}
