package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clobd/cmd/cli"
	"clobd/scripts/setting"
)

// TestDamagedIndexIsMadeAnew: a node that meets damage in its index while it runs makes it anew and
// goes on, in the same process.
func TestDamagedIndexIsMadeAnew(t *testing.T) {
	setting.Full(t, "it compiles another package's tests")
	t.Parallel()
	w := newWorld(t, 4)
	n := w.node
	w.load(t, func() {})
	n.stop(t)
	// The database is journal's to know: a test of its own makes rows unreadable that nobody looks at
	// when the index is opened.
	spoil := exec.Command("go", "test", "-vet=off", "clobd/journal/history", "-run", "^TestSpoilRows$", "-count",
		"1", "-v")
	spoil.Env = append(os.Environ(), "CLOBD_TEST_SPOIL="+filepath.Join(n.data, "index"))
	if said, err := spoil.CombinedOutput(); err != nil ||
		!strings.Contains(string(said), "--- PASS: TestSpoilRows") {
		t.Fatalf("%v: %s", err, said)
	}
	n.start(t)
	verify(t, w.all(), map[string]float64{})
	w.load(t, func() {})
	verify(t, w.all(), map[string]float64{})
	if log := n.log.String(); strings.Count(log, "the node starts again and makes it anew") != 1 {
		t.Errorf("the log says nothing of it: %s", log)
	}
	n.stop(t)
	n.expect(t, cli.Done, []string{"verify", "--data", n.data}, "all is well")
}

// TestStartWithoutOldFrames: a start reads no frame before the place of the index, nor before the
// end of the newest checkpoint. Without all those frames a node that crashed gives the answers that
// it gave before, and so it does once more after a stop.
func TestStartWithoutOldFrames(t *testing.T) {
	setting.Full(t, "it compiles another package's tests")
	t.Parallel()
	w := newWorld(t, 4)
	n := w.node
	w.load(t, func() { n.leave(t) })
	n.start(t)
	w.load(t, func() {})
	before := w.lists(t)
	n.kill(t)
	forget := exec.Command("go", "test", "-vet=off", "clobd/journal/history", "-run",
		"^TestForgetFrames$", "-count", "1", "-v")
	forget.Env = append(os.Environ(), "CLOBD_TEST_FORGET="+n.data)
	if said, err := forget.CombinedOutput(); err != nil ||
		!strings.Contains(string(said), "--- PASS: TestForgetFrames") {
		t.Fatalf("%v: %s", err, said)
	}
	for range 2 {
		n.start(t)
		verify(t, w.all(), map[string]float64{}) // first, for it goes on over a new connection
		for path, text := range w.lists(t) {
			if text != before[path] {
				t.Errorf("%s differs:\n%.300s\n%.300s", path, text, before[path])
			}
		}
		if log := n.log.String(); strings.Contains(log, "made anew") {
			t.Errorf("the index was of no use: %s", log)
		}
		n.leave(t)
	}
	n.expect(t, cli.Failed, []string{"verify", "--data", n.data}, "broken at frame 1 ")
}

// lists are the live orders and the trades of all traders.
func (w *world) lists(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for n, x := range w.traders {
		for _, path := range []string{"/data/orders", "/data/trades"} {
			status, text, err := x.exchange(http.MethodGet, path, nil)
			if status != http.StatusOK || len(text) < 40 || err != nil {
				t.Fatalf("%s: %d %s %v", path, status, text, err)
			}
			all[fmt.Sprint(path, " of trader ", n)] = string(text)
		}
	}
	return all
}

// TestDamagedCatalog: a start on damaged descriptions goes on with what is before the damage, says
// so, keeps the rest, and has it told by the metrics, by a check and by a backup; with its source
// it has all of them again.
func TestDamagedCatalog(t *testing.T) {
	setting.Full(t, "several starts")
	t.Parallel()
	p := newProcess(t, buildNode(t), t.TempDir())
	source := filepath.Join(t.TempDir(), "catalog.jsonl")
	writeCatalog(t, source, 20)
	p.flags = []string{"--catalog", source}
	p.start(t)
	p.stop(t)
	p.flags = nil
	log := newest(t, p.data, "catalog/records-*.log")
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	flip := func() {
		t.Helper()
		b, err := os.ReadFile(log)
		if err == nil {
			b[len(b)/2] ^= 4
			err = os.WriteFile(log, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	flip()
	p.expect(t, cli.Failed, []string{"verify", "--data", p.data}, "finding: ", "keeps the rest beside")
	p.start(t)
	kept := newest(t, p.data, "catalog/records-*.damaged")
	for _, word := range []string{"the catalog's records are damaged", filepath.Base(kept)} {
		if !strings.Contains(p.log.String(), word) {
			t.Errorf("nothing of %q in the log: %s", word, p.log.String())
		}
	}
	b, err := os.ReadFile(kept)
	_, metrics := get(t, p.admin, "/metrics")
	if err != nil || len(b) < len(whole)/3 ||
		!strings.Contains(metrics, fmt.Sprintf("clobd_catalog_cut_bytes %d\n", len(b))) {
		t.Errorf("%d of %d bytes are kept, %v: %s", len(b), len(whole), err, metrics)
	}
	flip() // under a node that runs
	to := filepath.Join(t.TempDir(), "backup")
	p.expect(t, cli.Failed, []string{"backup", "--data", p.data, "--admin", p.admin, "--to", to},
		"the catalog is damaged", "has all the rest")
	p.stop(t)
	p.expect(t, cli.Failed, []string{"verify", "--data", p.data}, "finding: "+kept, "delete the file")

	p.flags = []string{"--catalog", source}
	p.start(t)
	status, text := get(t, p.listen, "/markets?limit=100")
	if status != http.StatusOK || strings.Count(text, `"conditionId"`) != 20 {
		t.Errorf("with the source again: %d: %s", status, text)
	}
	p.stop(t)
	names, err := filepath.Glob(filepath.Join(p.data, "catalog", "*.damaged"))
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil || len(names) != 2 {
		t.Errorf("kept %v, %v", names, err)
	}
	p.expect(t, cli.Done, []string{"verify", "--data", p.data}, "all is well")
}
