package account

import (
	"testing"

	"clobd/engine"
)

// TestNoticeIDs: ids are different for whatever one Command may cause, and clients read them as
// float64.
func TestNoticeIDs(t *testing.T) {
	seen := map[uint64]bool{}
	for _, seq := range []engine.Sequence{1, 2, 1 << 30, 1<<34 - 1} {
		for _, index := range []uint32{0, 1, 1<<16 - 1, 1 << 16} {
			for _, kind := range []uint64{cancelNotice, fillNotice, resolutionNotice} {
				id := noticeID(seq, index, kind)
				if seen[id] || id >= 1<<53 || uint64(float64(id)) != id {
					t.Errorf("%d.%d of kind %d: %d", seq, index, kind, id)
				}
				seen[id] = true
			}
		}
	}
	if id := noticeID(1<<63, 1<<16, resolutionNotice); id >= 1<<53 {
		t.Errorf("%d does not fit", id)
	}
}

// TestDrops: what owners drop takes bounded room, and the newest stay.
func TestDrops(t *testing.T) {
	d := &newHerald(nil).dropped
	for id := range uint64(maxDrops + 3) {
		d.add(1, id)
		d.add(1, id)
	}
	if d.has(1, 2) || !d.has(1, 3) || !d.has(1, maxDrops+2) || d.has(2, 5) ||
		len(d.of[1]) != maxDrops {
		t.Errorf("owner 1 has %d drops", len(d.of[1]))
	}
	for owner := engine.WalletNo(2); owner < maxDroppers+2; owner++ {
		d.add(owner, 7)
	}
	if d.has(1, maxDrops) || !d.has(2, 7) || !d.has(maxDroppers+1, 7) || len(d.of) != maxDroppers ||
		len(d.oldest) != maxDroppers {
		t.Errorf("%d owners, %d in order", len(d.of), len(d.oldest))
	}
}

// TestPick: neither kind of notices hides the other, and no room is left empty.
func TestPick(t *testing.T) {
	for _, c := range [][4]int{{0, 0, 0, 0}, {130, 0, 100, 0}, {0, 130, 0, 100}, {130, 130, 50, 50},
		{130, 3, 97, 3}, {3, 130, 3, 97}, {60, 60, 50, 50}, {60, 40, 60, 40}} {
		var lists [2][]notice
		for i := range lists {
			for k := range c[i] {
				lists[i] = append(lists[i], notice{kind: uint64(i), at: engine.Time(k)})
			}
		}
		got := [2]int{}
		oldest := [2]engine.Time{1 << 40, 1 << 40}
		for _, n := range pick(lists[0], lists[1]) {
			got[n.kind]++
			oldest[n.kind] = min(oldest[n.kind], n.at)
		}
		for i := range got {
			if want := engine.Time(c[i] - c[i+2]); got[i] != c[i+2] || got[i] > 0 && oldest[i] != want {
				t.Errorf("%v: %v, the oldest %v", c, got, oldest)
			}
		}
	}
}
