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
	err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	if err = errors.Join(err, notDumpable()); err != nil {
		s.log.Warn("core dumps or debuggers may see secrets", "error", err)
	}
}

// checkFolder refuses a data folder that others may write to: whoever can swap its files can give
// the node another journal, and another secret.
func checkFolder(path string) error {
	state, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the node makes its own
	} else if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if err := checkMode(path, state); err != nil {
		return err
	}
	for _, part := range []string{"journal", "index", "checkpoints", "catalog", "poison"} {
		state, err := os.Stat(filepath.Join(path, part))
		if err != nil {
			continue // opening it says what is wrong
		}
		if err := checkMode(filepath.Join(path, part), state); err != nil {
			return err
		}
	}
	return nil
}

// checkMode refuses a folder that others than this user may change.
func checkMode(path string, state fs.FileInfo) error {
	if mode := state.Mode().Perm(); mode&0o022 != 0 {
		return cli.Hint(fmt.Errorf("data folder %s has mode %04o, so others may change it", path, mode),
			"if nobody has, chmod go-w %s", path)
	}
	if system, ok := state.Sys().(*syscall.Stat_t); ok && int(system.Uid) != os.Geteuid() {
		return cli.Hint(fmt.Errorf("data folder %s belongs to user %d, and the node runs as %d", path,
			system.Uid, os.Geteuid()), "run the node as its owner, or chown -R it")
	}
	return nil
}

const bearer = "Bearer "

// secrets are what the node must not let out, in locked memory.
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
