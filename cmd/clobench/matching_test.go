package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clobd/bench/matching"
)

// TestMatching measures the matchers for a moment, with a peer that replays with ours.
func TestMatching(t *testing.T) {
	dir := t.TempDir()
	peer := filepath.Join(dir, "peer")
	script := "#!/bin/sh\nexec " + filepath.Join(programs, "clobench") + " replay textbook \"$1\"\n"
	if err := os.WriteFile(peer, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	var m matching.Compared
	out := measure(t, &m, always, "matching", "--rounds", "2", "--ops", "20000", "--books", "1,20",
		"--ticks", "99", "--peer", "other="+peer)
	if len(m.Cells) != 2 || m.Rounds != 2 || !strings.Contains(out, "times one book") {
		t.Fatalf("%+v\n%s", m, out)
	}
	for _, c := range m.Cells {
		if len(c.Matchers) != 4 || c.Sum.Fills == 0 || c.Sum.Chain == 0 {
			t.Fatalf("%+v", c)
		}
		for _, x := range c.Matchers {
			if len(x.CPU) != 2 || len(x.Wall) != 2 || x.CPU[0] <= 0 {
				t.Errorf("%s: %v, %v", x.Name, x.CPU, x.Wall)
			}
		}
	}
}

// TestMatchingDisagrees: a peer with another result is an error that names it.
func TestMatchingDisagrees(t *testing.T) {
	peer := filepath.Join(t.TempDir(), "peer")
	script := "#!/bin/sh\nwhile read -r _; do echo '{\"fills\":1}'; done\n"
	if err := os.WriteFile(peer, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(programs, "clobench"), "matching", "--rounds", "1",
		"--ops", "1000", "--books", "1", "--ticks", "99", "--peer", "liar="+peer).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "liar comes to") {
		t.Errorf("%v\n%s", err, out)
	}
}
