package main

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clobd/engine"
)

// TestPoison keeps a Command that stopped the node and knows it again after a restart, whoever
// sends it and with whatever evidence.
func TestPoison(t *testing.T) {
	data := t.TempDir()
	p, err := openPoison(data)
	if err != nil {
		t.Fatal(err)
	}
	bad := engine.Command{Kind: engine.Place, ID: engine.OrderID{1}, Size: 5, Cash: 2}
	if p.holds(&bad) {
		t.Fatal("an empty quarantine holds a command")
	}
	file := p.keep(&bad, 77, errors.New("BUG: level size 7, orders sum to 5"), []byte("stack"))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sequence 77", "level size 7", "stack"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in what was kept:\n%s", want, text)
		}
	}
	again, err := openPoison(data)
	if err != nil {
		t.Fatal(err)
	}
	resent := bad
	resent.Seen, resent.Proof, resent.Key = 99, []byte("other"), 3
	if !again.holds(&resent) {
		t.Error("the same order is let in after a restart")
	}
	other := bad
	other.ID = engine.OrderID{2}
	if again.holds(&other) {
		t.Error("another order is refused")
	}
}

// TestPoisonOnFullDisk: a Command is refused from then on although the disk had no room to say why.
func TestPoisonOnFullDisk(t *testing.T) {
	data := t.TempDir()
	p, err := openPoison(data)
	if err != nil {
		t.Fatal(err)
	}
	c := &engine.Command{Kind: engine.Place, Size: 7}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// /dev/full takes a name and no byte.
	f := fingerprint(c)
	name := hex.EncodeToString(f[:])
	if err := os.Symlink("/dev/full", filepath.Join(p.dir, name)); err != nil {
		t.Fatal(err)
	}
	if got := p.keep(c, 1, "boom", []byte("stack")); !strings.Contains(got, "no space left") {
		t.Errorf("kept as %q", got)
	}
	again, err := openPoison(data)
	if err != nil || !again.holds(c) {
		t.Errorf("the next start takes the Command: %v", err)
	}
}

// TestShun: what made the engine panic on another node is refused at once here, and after a start.
func TestShun(t *testing.T) {
	data := t.TempDir()
	p, err := openPoison(data)
	if err != nil {
		t.Fatal(err)
	}
	c, other := &engine.Command{Kind: engine.Place, Size: 7}, &engine.Command{Kind: engine.Place}
	for range 2 {
		if err := p.shun(fingerprint(c)); err != nil {
			t.Fatal(err)
		}
	}
	again, err := openPoison(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []*poisonFolder{p, again} {
		if !folder.holds(c) || folder.holds(other) || len(folder.known) != 1 {
			t.Errorf("holds it %v, another one %v, %d known", folder.holds(c), folder.holds(other),
				len(folder.known))
		}
	}
	for i := len(p.known); i < shunned; i++ {
		p.learn(strings.Repeat("x", i))
	}
	if err := p.shun(fingerprint(other)); err == nil {
		t.Error("other members can fill the folder")
	}
}
