package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"clobd/engine"
	"clobd/journal/disk"
)

// poisonFolder keeps the Commands that made Apply panic: the door refuses them after a start.
type poisonFolder struct {
	dir   string
	known map[string]bool
}

func openPoison(data string) (*poisonFolder, error) {
	p := &poisonFolder{dir: filepath.Join(data, "poison"), known: map[string]bool{}}
	entries, err := os.ReadDir(p.dir)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("read quarantine: %w", err)
	}
	for _, e := range entries {
		p.known[e.Name()] = true
	}
	return p, nil
}

// fingerprint names what a Command asks for, whoever sends it and whenever.
func fingerprint(c *engine.Command) string {
	h := sha256.New()
	fmt.Fprint(h, c.Kind, c.Type, c.Side, c.Outcome, c.Market, c.Size, c.Cash, c.Expiry)
	h.Write(c.ID[:])
	h.Write(c.Address[:])
	h.Write(c.Holder[:])
	fmt.Fprint(h, c.Owner)
	if c.Listing != nil {
		fmt.Fprint(h, *c.Listing)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (p *poisonFolder) holds(c *engine.Command) bool {
	return len(p.known) > 0 && p.known[fingerprint(c)]
}

// keep writes down a Command that made Apply panic. It returns the file, or an error as text. The
// file gets its name before its text: openPoison goes by the name, so a disk that is full in
// between loses the text and not the quarantine.
func (p *poisonFolder) keep(
	c *engine.Command, seq engine.Sequence, cause any, stack []byte) string {
	path := filepath.Join(p.dir, fingerprint(c))
	text := fmt.Sprintf("sequence %d\ncause %v\ncommand %+v\n", seq, cause, *c)
	if c.Listing != nil {
		text += fmt.Sprintf("listing %+v\n", *c.Listing)
	}
	text += "\n" + string(stack)
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err.Error()
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err.Error()
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
	if err != nil {
		return err.Error()
	}
	return path
}

func syncFolder(dir string) error { return disk.SyncFolder(disk.Filesystem(nil), dir) }
