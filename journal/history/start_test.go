package history

import (
	"context"
	"errors"
	"os"
	"testing"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestStartReadsNoOlderFrame: a start reads no frame before the last one that the index has saved,
// neither for the index, whose rows of live orders are as durable as its place, nor for the state,
// which is in a checkpoint. Without all those frames the start comes to the same answers, after an
// orderly stop and after a crash that left frames for the index to fold.
func TestStartReadsNoOlderFrame(t *testing.T) {
	for name, unfolded := range map[string]int{"after a stop": 0, "after a crash": 20} {
		t.Run(name, func(t *testing.T) {
			on := vfs.NewMem()
			j, m := newJournal(t, on, 14)
			x, stop := run(t, j, Options{})
			m.write(t, j, 40, 30)
			mustEqual(t, x, m)
			stop()
			place := m.head.Frame
			_, err := j.Checkpoint(context.Background(), &journal.State{Exchange: m.x}, m.head)
			if err != nil {
				t.Fatal(err)
			}
			m.write(t, j, unfolded, 30)
			shut(t, j)
			forget(t, on, j.Path, place)
			for range 2 { // the second start stands on what the first one left
				j, stop := start(t, on, m.head)
				if _, err := j.Has(place-1, engine.Hash{}); err == nil {
					t.Fatalf("frame %d is still there", place-1)
				}
				x, stopIndex := run(t, j, Options{})
				if x.fresh {
					t.Fatal("the index was made anew")
				}
				mustEqual(t, x, m)
				mustList(t, x, m, 40)
				m.write(t, j, 5, 30)
				mustEqual(t, x, m)
				stopIndex()
				stop()
			}
		})
	}
}

// TestStartReadsItsPlace: the frame that the index saved last is the oldest that a start reads. The
// start compares the journal with the index there.
func TestStartReadsItsPlace(t *testing.T) {
	on := vfs.NewMem()
	j, m := newJournal(t, on, 14)
	x, stop := run(t, j, Options{})
	m.write(t, j, 10, 30)
	mustEqual(t, x, m)
	stop()
	place := m.head.Frame
	m.write(t, j, 5, 30)
	shut(t, j)
	forget(t, on, j.Path, place+1)
	j = open0(t, journal.Options{Dir: "data", FS: on})
	defer shut(t, j)
	var broken *journal.Break
	if _, err := openIndex(j, Options{}); !errors.As(err, &broken) || broken.Frame != place {
		t.Errorf("without frame %d: %v", place, err)
	}
}

// TestForgetFrames is a part of a test of the node: in the data folder that the environment names
// it deletes all frames that no start needs, those before the place of the index and before the end
// of the newest checkpoint.
func TestForgetFrames(t *testing.T) {
	data := os.Getenv("CLOBD_TEST_FORGET")
	if data == "" {
		t.Skip("a test of the node names a folder")
	}
	seen, known := Witness(nil, data)
	j := open0(t, journal.Options{Dir: data})
	good, _ := j.Checkpoints()
	shut(t, j)
	if !known || len(good) == 0 {
		t.Fatalf("the index saw %+v, the checkpoints are %v", seen, good)
	}
	first := min(seen.Frame, good[0].Head.Frame+1)
	if forget(t, vfs.Default, j.Path, first); first < 5 {
		t.Errorf("frame %d is the first that a start needs", first)
	}
}

// forget deletes all frames before number first from a journal's database.
func forget(t *testing.T, on vfs.FS, path string, first uint64) {
	t.Helper()
	err := inDatabase(on, path, func(db *pebble.DB) error {
		for no := uint64(1); no < first; no++ {
			if _, found, err := disk.Get(db, frameKey(no), nil); !found || err != nil {
				t.Fatalf("frame %d: %v, %v", no, found, err)
			}
		}
		return errors.Join(db.DeleteRange(frameKey(0), frameKey(first), nil), db.Flush(),
			db.Compact(context.Background(), []byte{0}, []byte{255}, false))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// start restores a journal as a node does, and follows it.
func start(t *testing.T, on vfs.FS, head engine.Head) (j *journal.Journal, stop func()) {
	t.Helper()
	j = open0(t, journal.Options{Dir: "data", FS: on})
	if r, err := j.Restore(context.Background(), fresh); err != nil || r.Head != head {
		t.Fatalf("restored %+v, %v", r, err)
	}
	_, end := follow(t, j, journal.FollowerOptions{})
	return j, func() {
		t.Helper()
		end()
		shut(t, j)
	}
}
