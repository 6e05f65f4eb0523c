package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clobd/cmd/cli"
	"clobd/scripts/setting"
)

// TestWitnesses: a journal that has lost its end, and the mark with it, is refused if a checkpoint,
// the index or the catalog knows a later frame, each alone. The loss can be accepted.
func TestWitnesses(t *testing.T) {
	setting.Full(t, "several nodes")
	t.Parallel()
	w := newWorld(t, 4)
	n := w.node
	w.load(t, func() { n.leave(t) })
	whole := n.data
	all := map[string]string{"the checkpoint": "checkpoints", "the index": "index",
		"the catalog": "catalog/mark"}
	for by := range all {
		t.Run(by, func(t *testing.T) {
			n.data = copyFolder(t, whole, filepath.Join(t.TempDir(), "data"))
			gone := []string{"mark"}
			for other, path := range all {
				if other != by {
					gone = append(gone, path)
				}
			}
			for _, path := range gone {
				if err := os.RemoveAll(filepath.Join(n.data, path)); err != nil {
					t.Fatal(err)
				}
			}
			log := newest(t, n.data, "journal/*.log")
			b, err := os.ReadFile(log)
			if err == nil { // what is written of it ends with room for more
				err = os.Truncate(log, int64(len(bytes.TrimRight(b, "\x00"))/2))
			}
			if err != nil {
				t.Fatal(err)
			}
			code, text := refusedStart(t, n.binary, "--data", n.data)
			if code != cli.Broken || !strings.Contains(text, ", as "+by) ||
				!strings.Contains(text, "acknowledged commands are lost") {
				t.Errorf("code %d: %s", code, text)
			}
			// The refused start has left what it knew.
			n.expect(t, cli.Failed, []string{"verify", "--data", n.data}, ", as "+by)
			n.expect(t, cli.Failed, []string{"recover", "--data", n.data}, "refused: ", "lost: ",
				"--accept-loss")
			n.expect(t, cli.Done, []string{"recover", "--data", n.data, "--accept-loss"}, "accepted: ")
			n.start(t)
			n.stop(t)
			n.expect(t, cli.Done, []string{"verify", "--data", n.data}, "all is well")
		})
	}
}
