package ops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClusterUnits: the units of voters are that of a node alone, but for the voter's name, its
// folders and what it is told of the cluster: what one of them may not do no other may.
func TestClusterUnits(t *testing.T) {
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	settings := func(unit string) (all string) {
		for line := range strings.Lines(unit) {
			if name, _, is := strings.Cut(line, "="); is && line[0] != '#' && name != "Description" {
				all += line
			}
		}
		return all
	}
	alone := settings(read("clobd.service"))
	units, err := filepath.Glob("cluster/*.service")
	if err != nil || len(units) != 3 {
		t.Fatalf("%v %v", units, err)
	}
	for i, path := range units {
		voter := string("abc"[i])
		unit := settings(read(path))
		cluster := "Environment=CLOBD_CLUSTER=" + voter + "@"
		at := strings.Index(unit, cluster)
		if at < 0 || strings.Count(unit, "CLOBD_CLUSTER") != 1 {
			t.Fatalf("%s does not say which voter it is", path)
		}
		end := at + strings.IndexByte(unit[at:], '\n') + 1
		unit = unit[:at] + unit[end:]
		for _, name := range []string{"/lib/clobd", "/clobd/clobd", "StateDirectory=clobd",
			"RuntimeDirectory=clobd"} {
			if !strings.Contains(unit, name+"-"+voter) {
				t.Errorf("%s shares %s with another voter", path, name)
			}
			unit = strings.ReplaceAll(unit, name+"-"+voter, name)
		}
		if unit != alone {
			t.Errorf("%s is another unit than that of a node alone:\n%s\n%s", path, unit, alone)
		}
	}
}
