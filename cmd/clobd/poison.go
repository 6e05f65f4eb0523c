package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"clobd/engine"
	"clobd/journal/disk"
)

// poisonFolder keeps the Commands that made Apply panic: the door refuses them after a start.
type poisonFolder struct {
	dir  string
	some atomic.Bool // there are any

	mu    sync.RWMutex
	known map[string]bool // by fingerprint, in hex
}

func openPoison(data string) (*poisonFolder, error) {
	p := &poisonFolder{dir: filepath.Join(data, "poison"), known: map[string]bool{}}
	entries, err := os.ReadDir(p.dir)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("read quarantine: %w", err)
	}
	for _, e := range entries {
		p.learn(e.Name())
	}
	return p, nil
}

func (p *poisonFolder) learn(name string) {
	p.mu.Lock()
	p.known[name] = true
	p.mu.Unlock()
	p.some.Store(true)
}

// fingerprint names what a Command asks for, whoever sends it and whenever.
func fingerprint(c *engine.Command) (f [32]byte) {
	h := sha256.New()
	fmt.Fprint(h, c.Kind, c.Type, c.Side, c.Outcome, c.Market, c.Size, c.Cash, c.Expiry)
	h.Write(c.ID[:])
	h.Write(c.Address[:])
	h.Write(c.Holder[:])
	fmt.Fprint(h, c.Owner)
	if c.Listing != nil {
		fmt.Fprint(h, *c.Listing)
	}
	h.Sum(f[:0])
	return f
}

func (p *poisonFolder) holds(c *engine.Command) bool {
	if !p.some.Load() {
		return false
	}
	f := fingerprint(c)
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.known[hex.EncodeToString(f[:])]
}

// shun keeps the fingerprint of a Command that made Apply panic on another node.
func (p *poisonFolder) shun(fingerprint [32]byte) error {
	name := hex.EncodeToString(fingerprint[:])
	p.mu.RLock()
	known := len(p.known)
	_, again := p.known[name]
	p.mu.RUnlock()
	switch {
	case again:
		return nil
	case known >= shunned:
		return errors.New("too many commands are in quarantine")
	}
	p.learn(name) // also if the disk is full
	return p.write(name, "another member says that this command made its engine panic: its quarantine "+
		"has the command\n")
}

// shunned bounds the fingerprints that other members can add.
const shunned = 10_000

// keep writes down a Command that made Apply panic. It returns the file, or an error as text. The
// file gets its name before its text: openPoison goes by the name, so a disk that is full in
// between loses the text and not the quarantine.
func (p *poisonFolder) keep(
	c *engine.Command, seq engine.Sequence, cause any, stack []byte) string {
	f := fingerprint(c)
	name := hex.EncodeToString(f[:])
	text := fmt.Sprintf("sequence %d\ncause %v\ncommand %+v\n", seq, cause, *c)
	if c.Listing != nil {
		text += fmt.Sprintf("listing %+v\n", *c.Listing)
	}
	text += "\n" + string(stack)
	if err := p.write(name, text); err != nil {
		return err.Error()
	}
	return filepath.Join(p.dir, name)
}

// write writes a file of the folder durably.
func (p *poisonFolder) write(name, text string) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(p.dir, name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.WriteString(text); err == nil {
		err = f.Sync()
	}
	for _, dir := range []string{p.dir, filepath.Dir(p.dir)} {
		if err == nil {
			err = syncFolder(dir)
		}
	}
	return err
}

func syncFolder(dir string) error { return disk.SyncFolder(disk.Filesystem(nil), dir) }
