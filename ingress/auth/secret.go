package auth

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"
)

// LoadSecret reads a secret of 32 bytes from path. If there is no file, it makes one (64 hex
// digits, mode 0600, synced). A file that its group or others may read is an error. Losing the
// secret changes every API key.
func LoadSecret(path string) ([32]byte, error) {
	secret, err := readSecret(path, 0o077)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := makeSecret(path); err != nil {
		return [32]byte{}, fmt.Errorf("make secret: %w", err)
	}
	// Read it back: if two nodes start at once, both use the one that won.
	return readSecret(path, 0o077)
}

// ReadSecret reads the secret from a file that a service manager provides, for example. The group
// may read the file, because it may belong to root; others may not, and only the owner may write
// it.
func ReadSecret(path string) ([32]byte, error) { return readSecret(path, 0o027) }

// readSecret returns an error for a file that has any permission bit of loose.
func readSecret(path string, loose fs.FileMode) ([32]byte, error) {
	var secret [32]byte
	f, err := os.Open(path)
	if err != nil {
		return secret, fmt.Errorf("read secret: %w", err)
	}
	defer f.Close()
	state, err := f.Stat()
	if err != nil {
		return secret, fmt.Errorf("read secret: %w", err)
	}
	if !state.Mode().IsRegular() {
		return secret, fmt.Errorf("secret %s is not a regular file", path)
	}
	if mode := state.Mode().Perm(); mode&loose != 0 {
		return secret, fmt.Errorf(
			"secret %s has mode %04o, so others may have it: if they do not, chmod 600 %s",
			path, mode, path)
	}
	b := make([]byte, 1024) // the only copy on the heap
	defer clear(b)
	n, err := io.ReadFull(f, b)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return secret, fmt.Errorf("read secret: %w", err)
	}
	if n == len(secret) {
		copy(secret[:], b)
		return secret, nil
	}
	text := bytes.TrimSpace(b[:n])
	if !ParseHex(secret[:], unsafe.String(unsafe.SliceData(text), len(text))) {
		clear(secret[:])
		return secret, fmt.Errorf("secret %s: want 64 hex digits or 32 bytes", path)
	}
	return secret, nil
}

// makeSecret writes a temporary file and links it to path. So a crash leaves a whole file or none,
// and an existing file is never replaced.
func makeSecret(path string) error {
	var secret [32]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".tmp-*") // mode 0600; see disk.Twice
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	text := append(hex.AppendEncode(make([]byte, 0, 2*len(secret)+1), secret[:]), '\n')
	_, err = f.Write(text)
	clear(text)
	clear(secret[:])
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
