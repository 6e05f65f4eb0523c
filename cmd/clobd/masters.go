package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"clobd/cmd/cli"
	"clobd/ingress/auth"
	"clobd/journal/disk"
)

// Several master secrets may live at once. The first is in master.key, the later ones in
// master-2.key and so on; the newest makes new keys. master.check names those that live: when the
// oldest is retired its line goes first, and then its file.
//
//	rotate: master-2.key ─► SIGHUP: the node takes it and adds it to master.check
//	retire: master.check without the oldest ─► master.key goes ─► SIGHUP: its keys end

const masterName = "master.key"

// master is a master secret with its number.
type master struct {
	number byte
	secret [32]byte
}

// masterAt is the file of one.
type masterAt struct {
	number byte
	path   string
}

// masterPath is the file of the secret with a number beside the file of the first one.
func masterPath(first string, number byte) string {
	if number == auth.FirstMaster {
		return first
	}
	kind := filepath.Ext(first)
	return strings.TrimSuffix(first, kind) + "-" + strconv.Itoa(int(number)) + kind
}

// masterFiles are the files that are there, the newest last.
func masterFiles(first string) (files []masterAt) {
	for number := auth.FirstMaster; number <= 255; number++ {
		if path := masterPath(first, byte(number)); isThere(path) {
			files = append(files, masterAt{byte(number), path})
		}
	}
	return files
}

// isThere reports whether a path names anything.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// masterCheck holds the hashes of the secrets that live by their numbers, as master.check does.
type masterCheck map[byte]string

// readSecretCheck returns an empty one for a folder without.
func readSecretCheck(data string) (masterCheck, error) {
	file := filepath.Join(data, secretCheckName)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return masterCheck{}, nil
	} else if err != nil {
		return nil, cli.Hint(fmt.Errorf("check the master secret: %w", err), hintSecret)
	}
	check := masterCheck{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 1 { // as it is written for a node with one secret
			words = []string{strconv.Itoa(auth.FirstMaster), words[0]}
		}
		number, hash := uint64(0), []byte(nil)
		if len(words) == 2 {
			number, _ = strconv.ParseUint(words[0], 10, 8)
			hash, _ = hex.DecodeString(words[1])
		}
		if number == 0 || len(hash) != sha256.Size || check[byte(number)] != "" {
			return nil, badCheck(data)
		}
		check[byte(number)] = words[1]
	}
	if len(check) == 0 {
		return nil, badCheck(data)
	}
	return check, nil
}

// badCheck is the error of secrets that are not those of the folder.
func badCheck(data string) error {
	return cli.Hint(fmt.Errorf("the master secret is not the one that the API keys of %s derive from: "+
		"it is another one, or it or %s is damaged", data, filepath.Join(data, secretCheckName)),
		hintSecret)
}

// retired reports whether a secret lives no more: there are newer ones on record, and not it.
func (c masterCheck) retired(number byte) bool {
	for known := range c {
		if known <= number {
			return false
		}
	}
	return len(c) > 0
}

// compare compares secrets with those on record: changed reports that there are newer ones.
func (c masterCheck) compare(data string, found []master) (changed bool, err error) {
	left := len(c)
	for _, m := range found {
		switch c[m.number] {
		case "":
			changed = true
		case secretCheck(m.secret):
			left--
		default:
			return false, badCheck(data)
		}
	}
	if left > 0 {
		return false, badCheck(data)
	}
	return changed, nil
}

// write writes the check: for the first secret alone as before there could be more.
func (c masterCheck) write(data string) error {
	var text strings.Builder
	for number := auth.FirstMaster; number <= 255; number++ {
		switch hash := c[byte(number)]; {
		case hash == "":
		case number == auth.FirstMaster:
			text.WriteString(hash + "\n")
		default:
			fmt.Fprintf(&text, "%d %s\n", number, hash)
		}
	}
	return disk.Replace(filepath.Join(data, secretCheckName), []byte(text.String()))
}

// useMasters puts the secrets into the vault and makes a Keyring of them.
func (k *secrets) useMasters(found []master) {
	for i := range found {
		m := &found[i]
		known := slices.ContainsFunc(k.live, func(l auth.Master) bool { return l.Number == m.number })
		if !known {
			k.live = append(k.live, auth.Master{Number: m.number, Secret: k.vault.Keep(&m.secret)})
		}
		clear(m.secret[:])
	}
	k.live = slices.DeleteFunc(k.live, func(l auth.Master) bool {
		gone := !slices.ContainsFunc(found, func(m master) bool { return m.number == l.Number })
		if gone { // requests that are being checked with it end before
			time.AfterFunc(time.Minute, func() { clear(l.Secret[:]) })
		}
		return gone
	})
	if k.keyring == nil {
		k.keyring = auth.KeyringOf(k.live[0].Secret)
	}
	k.keyring.Use(k.live)
}

// readAgain takes the secrets that are there now, at each SIGHUP.
func (k *secrets) readAgain(s *settings) {
	found, err := s.masterSecrets()
	if err != nil {
		s.log.Error("the master secrets are refused, those in use stay", "error", err)
		return
	}
	defer forget(found)
	oldest, newest := found[0].number, found[len(found)-1].number
	if len(found) != len(k.live) || newest != k.live[len(k.live)-1].Number {
		k.useMasters(found)
		s.log.Info("master secrets read again", "oldest", oldest, "newest", newest)
	}
}

// forget wipes secrets that were read and are not in the vault.
func forget(found []master) {
	for i := range found {
		clear(found[i].secret[:])
	}
}

type secretCommand struct {
	Rotate rotateCommand `cmd:"" help:"Make a new master secret beside the one in use. From the node's next SIGHUP or start on, new API keys derive from it; those of the old one go on."`
	Retire retireCommand `cmd:"" help:"End the oldest master secret, and all API keys that derive from it, from the node's next SIGHUP or start on."`
}

// secretFolder is where a node has its secrets.
type secretFolder struct {
	Data      string `default:"clobd-data" help:"The node's data folder."`
	MasterKey string `help:"File of the first master secret, as the node has it."`
}

func (f *secretFolder) settings() *settings {
	return &settings{serveCommand: &serveCommand{Data: f.Data, MasterKey: f.MasterKey}}
}

type rotateCommand struct{ secretFolder }

// Run makes the file of the next secret. The node itself adds it to master.check.
func (c *rotateCommand) Run() error {
	s := c.settings()
	if _, own := s.masterFile(); own && !isThere(filepath.Join(s.Data, secretCheckName)) {
		return cli.Hint(fmt.Errorf("%s has no %s: no node began there", s.Data, secretCheckName),
			"--data names a node's folder")
	}
	found, err := s.findMasters()
	if err != nil {
		return secretHint(err, hintSecret)
	}
	forget(found)
	check, err := readSecretCheck(s.Data)
	if err != nil {
		return err
	}
	newest := found[len(found)-1].number
	if check[newest] == "" {
		return cli.Hint(fmt.Errorf("secret %d is not in use yet", newest),
			"send the node a SIGHUP, or start it")
	} else if newest == 255 {
		return errors.New("there have been 255 secrets: no number is left")
	}
	first, _ := s.masterFile()
	path := masterPath(first, newest+1)
	if _, err := auth.LoadSecret(path); err != nil {
		return err
	}
	if err := likeOwner(path, masterPath(first, newest)); err != nil {
		return fmt.Errorf("give %s to the node's user: %w", path, err)
	}
	fmt.Printf("made %s: send the node a SIGHUP, then new API keys derive from it\n", path)
	return nil
}

// likeOwner gives a new file to the owner of an old one: root may act for the node's user.
func likeOwner(path, old string) error {
	state, err := os.Stat(old)
	if err != nil {
		return err
	}
	if system, ok := state.Sys().(*syscall.Stat_t); ok && int(system.Uid) != os.Geteuid() {
		return os.Chown(path, int(system.Uid), int(system.Gid))
	}
	return nil
}

type retireCommand struct{ secretFolder }

// Run takes the oldest secret off the record, and then its file away.
func (c *retireCommand) Run() error {
	s := c.settings()
	check, err := readSecretCheck(s.Data)
	if err != nil {
		return err
	}
	oldest := 0
	for number := range check {
		if oldest == 0 || int(number) < oldest {
			oldest = int(number)
		}
	}
	if len(check) < 2 {
		return cli.Hint(errors.New("only one master secret is in use"),
			"clobd secret rotate makes the next one, and a SIGHUP makes the node use it")
	}
	delete(check, byte(oldest))
	if err := check.write(s.Data); err != nil {
		return err
	}
	first, _ := s.masterFile()
	path := masterPath(first, byte(oldest))
	if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, disk.DropCopy(path)); err != nil {
		return fmt.Errorf("secret %d is retired, but its file stays: %w", oldest, err)
	}
	fmt.Printf("retired secret %d: send the node a SIGHUP, then its API keys end\n", oldest)
	return nil
}
