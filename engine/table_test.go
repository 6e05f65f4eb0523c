package engine

import (
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const tableEntries = tableLeast * bucketEntries // of the smallest table

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

// check looks all entries up, and counts what is in the buckets.
func (s *entries) check(t interface{ Fatalf(string, ...any) }) {
	for _, e := range s.all {
		if !s.table.holds(e) {
			t.Fatalf("%x is lost: %d entries, %d of %d moved", e, len(s.all), s.table.moved,
				len(s.table.old.all))
		}
	}
	n := 0
	for _, some := range [][]bucket{s.table.all, s.table.old.all} {
		for i := range some {
			for _, e := range some[i][:bucketEntries] {
				if e != 0 {
					n++
				}
			}
		}
	}
	if n != len(s.all) || int(s.table.used) != n {
		t.Fatalf("%d entries, want %d, counted %d", n, len(s.all), s.table.used)
	}
}

// TestTable inserts and removes entries while a table grows: each is found until it is removed.
// Tags come from few homes, so that entries lie far from their homes and wrap around the end.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &entries{table: newTable()}
		d := dice(rapid.Uint64().Draw(t, "seed"))
		spread := rapid.SampledFrom([]uint32{1, 3, 31, 1 << 20}).Draw(t, "spread")
		start := rapid.SampledFrom([]uint32{0, tableLeast - 4, 1<<32 - 40}).Draw(t, "start")
		grow := rapid.IntRange(2, 6).Draw(t, "grow")
		for len(s.all) < 2*tableEntries {
			if len(s.all) > 0 && d.below(grow) == 0 {
				s.drop(d.below(len(s.all)))
				continue
			}
			tag := start + uint32(d.below(tableEntries))*spread
			s.add(tag)
			e := s.all[d.below(len(s.all))]
			if ref, _ := s.table.search(uint32(e >> 32)); ref == 0 {
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

// TestSearch: a search gives every entry of its tag once and no other one, whatever their marks are
// and whatever has passed the buckets, during a move too.
func TestSearch(t *testing.T) {
	passed, moving, several := passAll().all, 0, 0
	for seed := range 60 {
		s, d, tags := &entries{table: newTable()}, dice(seed), []uint32{0}
		if seed%3 == 0 {
			s = passAll()
			for _, e := range passed {
				tags = append(tags, uint32(e>>32))
			}
		}
		for range []int{2, 40, 400}[seed%3] {
			mark := []uint32{0, 1, 2, 3, 4, 5, 0x80, 0x81, 0xfe, 0xff}[d.below(10)]
			home := uint32(d.below([]int{1, 4, 1 << 20}[seed/3%3]))
			tags = append(tags, mark<<24|home, mark<<24|-home&0xffffff)
		}
		for step := range 1200 {
			if len(s.all) > 0 && d.below(10) < 2+6*(step/600) {
				s.drop(d.below(len(s.all)))
			} else {
				s.add(tags[d.below(len(tags))])
			}
			if s.table.old.all != nil {
				moving++
			}
			if s.searched(t, tags[d.below(len(tags))]) > 1 {
				several++
			}
		}
	}
	if moving < 500 || several < 5000 {
		t.Errorf("%d searches during a move, %d of several entries", moving, several)
	}
}

// searched compares what a search gives with the list, and counts it.
func (s *entries) searched(t *testing.T, tag uint32) int {
	t.Helper()
	var got, want []uint32
	for ref, e := s.table.search(tag); ref != 0; ref, e = e.next() {
		got = append(got, ref)
	}
	for _, e := range s.all {
		if uint32(e>>32) == tag {
			want = append(want, uint32(e))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("tag %x: found %v, want %v", tag, got, want)
	}
	return len(got)
}

// TestTableSteps: no insert moves more than a few dozen buckets, of a table three quarters full,
// and the old ones are gone long before the new ones are full.
func TestTableSteps(t *testing.T) {
	s, d, most, doubled := &entries{table: newTable()}, dice(1), uint32(0), 0
	for range 800_000 {
		before, buckets := s.table.moved, len(s.table.all)
		moving := s.table.old.all != nil
		s.add(uint32(d.next()))
		switch {
		case len(s.table.all) != buckets:
			doubled++
		case moving && s.table.old.all != nil:
			most = max(most, s.table.moved-before)
		case moving && uint64(s.table.used) > mostEntries(len(s.table.all))*2/3:
			t.Fatalf("%d entries in %d buckets when the old ones were gone", s.table.used, buckets)
		}
	}
	s.check(t)
	if doubled != 13 || most < 30 || most > 60 {
		t.Errorf("doubled %d times, moved up to %d buckets at once", doubled, most)
	}
}

// passAll returns a table in which a remaining entry has passed every bucket, while the entries
// that filled the buckets are gone.
func passAll() *entries {
	s := &entries{table: newTable()}
	for start := uint32(0); start < tableLeast; start += 8 {
		from := len(s.all)
		for home := start; home < start+8; home++ {
			for s.table.all[home].marked(0) != 0 {
				s.add(home | 7<<24)
			}
		}
		fill := len(s.all) - from
		for home := start; home < start+8; home++ {
			s.add(home | 9<<24) // the last of them goes on to the first of the next eight
		}
		for range fill {
			s.table.remove(s.all[from])
			s.all = append(s.all[:from], s.all[from+1:]...)
		}
	}
	return s
}

// TestTableAllPassed: entries never move back, so in time an entry has passed every bucket of a
// small table. A search for a missing entry still ends, and growing loses nothing.
func TestTableAllPassed(t *testing.T) {
	s := passAll()
	for i := range s.table.all {
		if !s.table.all[i].past() {
			t.Fatalf("bucket %d was not passed", i)
		}
	}
	if ref, _ := s.table.search(3 | 11<<24); ref != 0 {
		t.Fatalf("what is not there is %d", ref)
	}
	if s.table.holds(entryOf(3|9<<24, 1<<20)) || s.table.remove(entryOf(3|9<<24, 1<<20)) {
		t.Fatal("an entry that is not there was found")
	}
	for i := range uint32(2 * tableEntries) {
		s.add(i * 2654435761)
		s.check(t)
	}
}

// TestRequestsEnd: in a window that holds as many requests as the smallest table takes, 400,000 of
// them come and go, and each is answered.
func TestRequestsEnd(t *testing.T) {
	x := NewExchange(3)
	listing := &Listing{Tick: 100, Open: true, Tokens: [2]Token{{1}, {2}}}
	x.Apply(&Command{Kind: List, Listing: listing}, 1, 1, nil)
	x.Apply(&Command{Kind: Deposit, Address: Address{1}, Cash: Unit}, 2, 1, nil)
	var events []Event
	for n := range 400_000 {
		c := Command{Kind: SplitTokens + Kind(n%2), Market: 1, Wallet: 1, Owner: 1, Size: 1}
		binary.LittleEndian.PutUint64(c.ID[:], uint64(n+1))
		at := Time(1 + n*RequestWindow/int(mostEntries(tableLeast)))
		events = x.Apply(&c, Sequence(n+3), at, events[:0])
		if events[0].Kind == Rejected {
			t.Fatalf("request %d: %+v", n, events[0])
		}
	}
}

// TestTableRoom: small tables are half full at most, large ones three quarters.
func TestTableRoom(t *testing.T) {
	for buckets, want := range map[int]uint64{
		tableLeast: 112, roomy: 229_376, 2 * roomy: 688_128, 1 << 21: 11_010_048,
	} {
		if got := mostEntries(buckets); got != want {
			t.Errorf("%d buckets take %d entries, want %d", buckets, got, want)
		}
	}
}

// TestTableSecond: an entry that had to pass its home is in the second bucket, around the end too,
// and during a move; a home that nothing has passed is its own second.
func TestTableSecond(t *testing.T) {
	s, last := &entries{table: newTable()}, uint32(tableLeast-1)
	for range bucketEntries {
		if s.add(last); s.table.second(last) != &s.table.all[last] {
			t.Fatal("the second bucket of a home that nothing has passed is another one")
		}
	}
	for range 2 {
		s.add(last)
		b := s.table.second(last)
		if m := b.marked(markOf(last)); b != &s.table.all[0] || m == 0 {
			t.Fatalf("the second bucket of the last one is %v", b)
		}
	}
	for tag := uint32(0); s.table.old.all == nil; tag++ {
		s.add(1 + tag%(last-1))
	}
	s.check(t)
	if home := s.table.home(last); home != &s.table.old.all[last] || s.table.second(last) == home {
		t.Error("the last bucket was moved first, or is its own second")
	}
}

// TestTableStep: a table to which nothing is added any more is moved by steps.
func TestTableStep(t *testing.T) {
	s := &entries{table: newTable()}
	for tag := uint32(0); s.table.old.all == nil; tag++ {
		s.add(tag * 2654435761)
	}
	for steps := 0; s.table.old.all != nil; steps++ {
		if s.table.step(); steps > tableLeast {
			t.Fatalf("%d of %d buckets moved in as many steps", s.table.moved, tableLeast)
		}
		s.check(t)
	}
}

// TestPlacesMove: orders of wallets that have their positions move the table of positions on.
func TestPlacesMove(t *testing.T) {
	x, seq := NewExchange(1), Sequence(0)
	apply := func(c Command) {
		seq++
		if events := x.Apply(&c, seq, 1, nil); events[len(events)-1].Kind == Rejected {
			t.Fatalf("%+v", events)
		}
	}
	apply(Command{Kind: List, Listing: &Listing{Tick: 100, Open: true, Tokens: [2]Token{{1}, {2}}}})
	for n := byte(1); x.index.old.all == nil; n++ {
		apply(Command{Kind: Deposit, Address: Address{n}, Market: 1, Size: MaxOrder})
	}
	for n := range byte(tableLeast) {
		apply(Command{Kind: Place, ID: OrderID{n + 1}, Market: 1, Wallet: 1, Owner: 1, Side: Sell,
			Size: Unit, Cash: Unit / 2})
	}
	if x.index.old.all != nil {
		t.Errorf("%d of %d old buckets were moved", x.index.moved, len(x.index.old.all))
	}
}
