package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"clobd/cmd/cli"
	"clobd/ingress/auth"
	"clobd/journal/disk"
)

// secretCheckName holds a hash of the master secret, because one flipped bit changes every API key.
const secretCheckName = "master.check"

func secretCheck(secret [32]byte) string {
	const title = "clobd master.key\x00"
	var text [len(title) + len(secret)]byte // not on the heap
	copy(text[copy(text[:], title):], secret[:])
	sum := sha256.Sum256(text[:])
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

func (s *settings) adminToken() (token [32]byte, err error) {
	file := filepath.Join(s.Data, "admin.token")
	err = disk.Twice(s.log, func() []string { return []string{file} }, func() error {
		token, err = auth.LoadSecret(file)
		return err
	})
	return token, secretHint(err, hintToken)
}

// twice are the files of the master secrets that this node keeps twice.
func (s *settings) twice() []string {
	files := []string{filepath.Join(s.Data, secretCheckName)}
	if first, own := s.masterFile(); own {
		for _, m := range masterFiles(first) {
			files = append(files, m.path)
		}
	}
	return files
}

// masterFile is where the node's first master secret is: --master-key, the service credentials, or
// the data folder, where the node makes it. Later ones are beside it.
func (s *settings) masterFile() (path string, own bool) {
	if s.MasterKey != "" {
		return s.MasterKey, false
	}
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" {
		if file := filepath.Join(dir, masterName); isThere(file) {
			return file, false
		}
	}
	return filepath.Join(s.Data, masterName), true
}

// masterSecrets returns the secrets of all API keys, the newest last. Others than at the last start
// are an error, but for newer ones.
func (s *settings) masterSecrets() (found []master, err error) {
	err = disk.Twice(s.log, s.twice, func() error {
		found, err = s.checkMasters()
		return err
	})
	return found, secretHint(err, hintSecret)
}

// checkMasters reads the secrets, and compares them with those of the last start.
func (s *settings) checkMasters() (found []master, err error) {
	all, err := s.findMasters()
	if err != nil {
		return nil, secretHint(err, hintSecret)
	}
	defer func() {
		if err != nil {
			forget(all)
		}
	}()
	check, err := readSecretCheck(s.Data)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(all, func(m master) bool { return check.retired(m.number) })
	changed, err := check.compare(s.Data, found)
	if err == nil && changed {
		for _, m := range found {
			check[m.number] = secretCheck(m.secret)
		}
		err = check.write(s.Data)
	}
	return found, err
}

// findMasters reads the files of all secrets, and makes the first one at the first start.
func (s *settings) findMasters() ([]master, error) {
	first, own := s.masterFile()
	files := masterFiles(first)
	if own && len(files) == 0 {
		if isThere(filepath.Join(s.Data, secretCheckName)) {
			_, missing := os.Stat(first)
			return nil, fmt.Errorf("read secret: %w", missing)
		}
		files = []masterAt{{auth.FirstMaster, first}}
	} else if len(files) == 0 {
		files = []masterAt{{auth.FirstMaster, first}} // reading it says what is wrong
	}
	read := auth.ReadSecret
	if own {
		read = auth.LoadSecret
	}
	return readMasters(files, read)
}

// readMasters reads the files of secrets. The caller must forget them.
func readMasters(files []masterAt, read func(path string) ([32]byte, error)) ([]master, error) {
	found := make([]master, 0, len(files)) // an append that moved them would leave a copy
	for _, file := range files {
		secret, err := read(file.path)
		if err != nil {
			forget(found)
			return nil, err
		}
		found = append(found, master{file.number, secret})
	}
	return found, nil
}
