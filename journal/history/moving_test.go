package history

import (
	"errors"
	"slices"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// places counts the keys of holders in the database, and of the log of those who wait.
func places(t *testing.T, x *Index) (holders, log int) {
	t.Helper()
	for space, n := range map[byte]*int{spaceHolder: &holders, spaceMoving: &log} {
		if err := rawRows(space)(x.db, func(_, _ []byte) bool { *n++; return true }); err != nil {
			t.Fatal(err)
		}
	}
	return holders, log
}

// TestMovingHoldersWait: a holder who moves with each batch costs no key, until too many wait. Then
// those who wait longest have their keys. All of them are listed all the time, and after a start.
func TestMovingHoldersWait(t *testing.T) {
	j := open(t, journal.Options{Dir: "data", FS: vfs.NewMem(), Async: true})
	defer shut(t, j)
	x, err := openIndex(j, Options{Flush: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, x)
	w, want := &crowd{x: x}, make([]Holder, 0, 8)
	listed := func() {
		t.Helper()
		slices.SortFunc(want, compareHolders)
		x.History.leaders = newLeaders()
		got, err := x.History.Holders(1, 0, 100, 1)
		sum, count, e := x.History.Supply(1)
		var all engine.Size
		for _, h := range want {
			all += h.Size
		}
		if err = errors.Join(err, e); err != nil || !slices.Equal(got, want) || count != len(want) ||
			sum[0] != all {
			t.Fatalf("%v, %d of %d, want %v: %v", got, sum[0], count, want, err)
		}
	}
	for i := range engine.Size(5) {
		w.give(t, 1, 1, 10)
		w.give(t, 2, 1, 7)
		w.commit(t)
		want = append(want[:0], Holder{1, 10 * (i + 1)}, Holder{2, 7 * (i + 1)})
		listed()
	}
	if holders, log := places(t, x); holders != 0 || log != 1 {
		t.Errorf("%d keys of holders, %d of the log", holders, log)
	}
	x.moving.keep = 3
	for i := range engine.WalletNo(4) {
		w.give(t, 3+i, 1, 20+engine.Size(i))
		w.commit(t)
		want = append(want, Holder{3 + i, 20 + engine.Size(i)})
		listed()
	}
	if holders, log := places(t, x); holders != 3 || log != 3 {
		t.Errorf("%d keys of holders, %d of the log, though 3 may wait", holders, log)
	}
	w.give(t, 1, 1, 1)
	w.commit(t)
	again := newMoving()
	if err := again.load(x.db); err != nil {
		t.Fatal(err)
	}
	if m := again.tokens[token{1, 0}][1]; m == nil || m.stands != 50 || m.size != 51 {
		t.Errorf("loaded again: %+v", m)
	}
	if again.count != x.moving.count || len(again.log) != len(x.moving.log) {
		t.Errorf("loaded again: %d, not %d", again.count, x.moving.count)
	}
	key := holderKey(1, 0, Holder{1, 50})
	if err := x.db.Delete(key[:], pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if _, _, err := x.History.Supply(1); !errors.Is(err, errRow) {
		t.Errorf("a holder who waits stands nowhere: %v", err)
	}
}
