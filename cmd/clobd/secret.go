package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"clobd/cmd/cli"
	"clobd/ingress/auth"
)

// secretCheckName holds a hash of the master secret, because one flipped bit changes every API key.
const secretCheckName = "master.check"

func secretCheck(secret [32]byte) string {
	sum := sha256.Sum256(append([]byte("clobd master.key\x00"), secret[:]...))
	return hex.EncodeToString(sum[:])
}

const (
	hintSecret = "put the right one back (a backup with --keys has it), or name it with " +
		"--master-key; to go on with another one, which changes every API key, delete master.check, " +
		"and master.key if it is damaged"
	hintLoose = "if nobody else has read it, take the permission away; else " + hintSecret
	hintToken = "delete it: the next start makes another one, and the operator's commands read it"
)

func secretHint(err error, hint string) error {
	var told *cli.HintError
	switch {
	case err == nil, errors.As(err, &told):
		return err
	case strings.Contains(err.Error(), "chmod"):
		return cli.Hint(err, hintLoose)
	}
	return cli.Hint(err, "%s", hint)
}

func (n *node) adminToken() ([32]byte, error) {
	token, err := auth.LoadSecret(filepath.Join(n.Data, "admin.token"))
	return token, secretHint(err, hintToken)
}

// masterSecret returns the secret of all API keys. Another one than at the last start is an error.
func (n *node) masterSecret() ([32]byte, error) {
	secret, err := n.findSecret()
	if err != nil {
		return secret, secretHint(err, hintSecret)
	}
	known, err := checkSecret(n.Data, secret)
	if err == nil && !known {
		err = writeDurably(filepath.Join(n.Data, secretCheckName), secretCheck(secret)+"\n")
	}
	return secret, err
}

// findSecret reads --master-key, the service credentials or the data folder, made at first start.
func (n *node) findSecret() ([32]byte, error) {
	if n.MasterKey != "" {
		return auth.ReadSecret(n.MasterKey)
	}
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" {
		file := filepath.Join(dir, "master.key")
		if _, err := os.Stat(file); err == nil {
			return auth.ReadSecret(file)
		}
	}
	file := filepath.Join(n.Data, "master.key")
	_, missing := os.Stat(file)
	if _, err := os.Stat(filepath.Join(n.Data, secretCheckName)); err == nil &&
		errors.Is(missing, fs.ErrNotExist) {
		return [32]byte{}, cli.Hint(fmt.Errorf("read secret: %w", missing), hintSecret)
	}
	return auth.LoadSecret(file)
}

// checkSecret compares a secret with the folder's check; known is false if there is none.
func checkSecret(data string, secret [32]byte) (known bool, err error) {
	file := filepath.Join(data, secretCheckName)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, cli.Hint(fmt.Errorf("check the master secret: %w", err), hintSecret)
	}
	if strings.TrimSpace(string(text)) != secretCheck(secret) {
		return true, cli.Hint(fmt.Errorf("the master secret is not the one that the API keys of %s "+
			"derive from: it is another one, or it or %s is damaged", data, file), hintSecret)
	}
	return true, nil
}

func writeDurably(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
