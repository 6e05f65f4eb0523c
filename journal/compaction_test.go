package journal

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"clobd/engine"
	"clobd/scripts/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestCrashWhileCompacting takes the disk away in the middle of flushes and compactions: at
// anything that is done to a table or a manifest while frames are written. What Wait promised is
// there.
func TestCrashWhileCompacting(t *testing.T) {
	usual := uint64(12)
	if testing.Short() {
		usual = 4
	}
	clones, seed := int(setting.Number(t, "CLOBD_SIZE", usual)), setting.Seed(t, 5)
	r := rand.New(rand.NewPCG(seed, 5))
	taken, kinds := 0, map[string]int{}
	for round := uint64(0); taken < clones || kinds["table"] == 0 && round < 20; round++ {
		mem := vfs.NewCrashableMem()
		var watched atomic.Bool
		cuts := make(chan crashed, 1000)
		var promised, seen atomic.Uint64
		every := uint64(1 + r.IntN(20))
		on := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			kind := part(op.Path)
			if !watched.Load() || kind == "" || op.Kind.ReadOrWrite() != errorfs.OpIsWrite ||
				seen.Add(1)%every != 0 {
				return nil
			}
			c := crashed{least: promised.Load(), kind: kind}
			dice := rand.New(rand.NewPCG(seed, seen.Load()))
			c.fs = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * dice.IntN(3), RNG: dice})
			select {
			case cuts <- c:
			default:
			}
			return nil
		}))
		j := open(t, Options{Dir: "data", FS: on, MemTable: 1 << 20})
		m := newMaker(seed + round)
		watched.Store(true)
		var sent []*engine.Frame
		for range 100 {
			f := m.frame(100)
			sent = append(sent, f)
			if err := j.Append(f); err != nil {
				t.Fatal(err)
			}
			if err := j.Wait(f.No); err != nil {
				t.Fatal(err)
			}
			promised.Store(f.No)
		}
		watched.Store(false)
		shut(t, j)
		close(cuts)
		for c := range cuts {
			if taken >= clones && (c.kind != "table" || kinds["table"] > 0) {
				continue
			}
			taken++
			kinds[c.kind]++
			checkCrash(t, c.fs, sent, c.least)
		}
	}
	t.Logf("figures: clones=%d tables=%d manifests=%d lost=0", taken, kinds["table"],
		kinds["manifest"])
	if kinds["table"] == 0 {
		t.Errorf("no crash in a flush or compaction: %v", kinds)
	}
}

// crashed is what a crash left, and how many frames had been promised before it.
type crashed struct {
	fs    *vfs.MemFS
	least uint64
	kind  string
}

// part is what kind of the journal's files a path is: "" is none that flushes and compactions
// touch.
func part(path string) string {
	switch {
	case !strings.Contains(path, "journal/"):
	case strings.HasSuffix(path, ".sst"):
		return "table"
	case strings.Contains(path, "MANIFEST"), strings.Contains(path, "marker"):
		return "manifest"
	}
	return ""
}
