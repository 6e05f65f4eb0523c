package engine

import (
	"testing"

	"pgregory.net/rapid"
)

// entries are what a table must hold, in a list besides, to draw from.
type entries struct {
	table table
	all   []uint64
	next  uint32
}

// add inserts an entry of this tag.
func (s *entries) add(tag uint32) {
	s.next++
	e := entryOf(tag, s.next)
	s.table.insert(e)
	s.all = append(s.all, e)
}

// drop removes the i-th entry.
func (s *entries) drop(i int) {
	s.table.remove(s.all[i])
	last := len(s.all) - 1
	s.all[i], s.all = s.all[last], s.all[:last]
}

// check looks all entries up, and counts what is in the cells.
func (s *entries) check(t interface{ Fatalf(string, ...any) }) {
	for _, e := range s.all {
		if !s.table.holds(e) {
			t.Fatalf("%x is lost: %d entries, %d of %d moved", e, len(s.all), s.table.moved,
				len(s.table.old.all))
		}
	}
	n := 0
	for _, cells := range [][]uint64{s.table.all, s.table.old.all} {
		for _, e := range cells {
			if e != 0 {
				n++
			}
		}
	}
	if n != len(s.all) || int(s.table.used) != n {
		t.Fatalf("%d entries, want %d, counted %d", n, len(s.all), s.table.used)
	}
}

// TestTable: whatever comes and goes while a table grows is found until it goes. Tags are drawn
// from few homes, so that entries lie far from theirs, and around the end of the cells.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &entries{table: newTable()}
		d := dice(rapid.Uint64().Draw(t, "seed"))
		spread := rapid.SampledFrom([]uint32{1, 3, 31, 1 << 20}).Draw(t, "spread")
		start := rapid.SampledFrom([]uint32{0, tableLeast - 4, 1<<32 - 40}).Draw(t, "start")
		grow := rapid.IntRange(2, 6).Draw(t, "grow")
		for len(s.all) < 2*tableLeast {
			if len(s.all) > 0 && d.below(grow) == 0 {
				s.drop(d.below(len(s.all)))
				continue
			}
			tag := start + uint32(d.below(tableLeast))*spread
			s.add(tag)
			if e := s.all[d.below(len(s.all))]; s.table.reference(uint32(e>>32)) == 0 {
				t.Fatalf("nothing has the tag of %x", e)
			}
			if d.below(50) == 0 {
				i := d.below(len(s.all))
				s.next++
				s.table.replace(s.all[i], s.next)
				s.all[i] = entryOf(uint32(s.all[i]>>32), s.next)
			}
			if s.table.old.all != nil && d.below(64) == 0 {
				s.check(t)
			}
		}
		for len(s.all) > 0 {
			s.drop(d.below(len(s.all)))
		}
		s.check(t)
	})
}

// TestTableSteps: no insert moves more than a few cells, and old cells are gone long before the new
// ones are full.
func TestTableSteps(t *testing.T) {
	s, d, most, doubled := &entries{table: newTable()}, dice(1), uint32(0), 0
	for range 400_000 {
		before, cells := s.table.moved, len(s.table.all)
		moving := s.table.old.all != nil
		s.add(uint32(d.next()))
		switch {
		case len(s.table.all) != cells:
			doubled++
		case moving && s.table.old.all != nil:
			most = max(most, s.table.moved-before)
		case moving && s.table.used > uint32(len(s.table.all))/2:
			t.Fatalf("%d of %d cells were full when the old ones were gone", s.table.used, cells)
		}
	}
	s.check(t)
	if doubled != 12 || most == 0 || most > 400 {
		t.Errorf("doubled %d times, moved up to %d cells at once", doubled, most)
	}
}
