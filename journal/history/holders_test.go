package history

import (
	"testing"
	"time"

	"clobd/journal"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestMovesOfHoldersStartAFlush counts flushes: moves that nobody walks over start one late.
func TestMovesOfHoldersStartAFlush(t *testing.T) {
	j := open(t, journal.Options{Dir: "data", FS: vfs.NewMem(), Async: true})
	defer shut(t, j)
	x, err := openIndex(j, Options{Flush: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, x)
	flushes := func(moves int) bool {
		t.Helper()
		x.fold.ledger.moves = moves
		x.flush()
		began := x.durable.done != nil
		if began {
			<-x.durable.done
		}
		return began
	}
	walk := func() {
		t.Helper()
		x.History.leaders = newLeaders() // the list of an earlier walk is in memory
		if _, err := x.History.Holders(1, 0, 10, 1); err != nil {
			t.Fatal(err)
		}
	}
	if flushes(holderMost - 1) {
		t.Error("a flush that no reader needs")
	}
	walk()
	if flushes(holderMoves - 1) {
		t.Error("a flush after few moves")
	}
	if !flushes(holderMoves) {
		t.Error("no flush after a walk")
	}
	if flushes(holderMoves) {
		t.Error("another flush without another walk")
	}
	if !flushes(holderMost) {
		t.Error("no flush after the most moves")
	}
	if walk(); !flushes(holderMoves) {
		t.Error("no flush after a later walk")
	}
}
