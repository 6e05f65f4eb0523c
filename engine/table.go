package engine

// table is an open-addressing hash table of entries (tag << 32 | reference): the tag is 32 bits of
// the key's hash, whose low bits are the entry's home; the key itself is verified in the record
// that the reference names. References are never 0, so that 0 is an empty cell. Cells are probed
// in a line and closed up on removal: no tombstones, and no cost that grows with age.
//
// A table that is three quarters full goes over to cells of twice the number, a few with each
// insert, so that no Command pays for all of them:
//
//	old:  first ► moved │ still here …     an entry is in the old cells if its home there lies
//	cells: … …                             behind what was moved, in the new ones otherwise
type table struct {
	cells
	old   cells
	first uint32 // the old cell that was moved first; the one before it was empty
	moved uint32 // how many old cells were, from first on
	used  uint32
}

// cells are a power of 2 in number; mask is one less.
type cells struct {
	all  []uint64
	mask uint32
}

const (
	tableLeast = 1 << 8
	// tableStep is how many old cells an insert moves: all are, long before the new ones are full.
	tableStep = 8
)

func newTable() table { return table{cells: newCells(tableLeast)} }

func newCells(n int) cells { return cells{make([]uint64, n), uint32(n - 1)} }

func entryOf(tag, ref uint32) uint64 { return uint64(tag)<<32 | uint64(ref) }

// of is the cells that the entries of a tag are in.
func (t *table) of(tag uint32) *cells {
	if t.old.all != nil && (tag-t.first)&t.old.mask >= t.moved {
		return &t.old
	}
	return &t.cells
}

// peek is what lies in the home of a tag.
func (t *table) peek(tag uint32) uint64 {
	c := t.of(tag)
	return c.all[tag&c.mask]
}

// reference is that of the first entry of a tag, 0 if there is none.
func (t *table) reference(tag uint32) uint32 {
	c := t.of(tag)
	for i := tag & c.mask; ; i = (i + 1) & c.mask {
		if e := c.all[i]; e == 0 || uint32(e>>32) == tag {
			return uint32(e)
		}
	}
}

// insert adds an entry that is not in the table.
func (t *table) insert(entry uint64) {
	if t.used >= t.mask-t.mask>>2 {
		t.double()
	}
	if t.old.all != nil {
		t.move()
	}
	t.used++
	t.of(uint32(entry >> 32)).put(entry)
}

func (c *cells) put(entry uint64) {
	i := uint32(entry>>32) & c.mask
	for c.all[i] != 0 {
		i = (i + 1) & c.mask
	}
	c.all[i] = entry
}

// double makes new cells. A move must come before anything is put into the old ones, which could
// else run over into the first.
func (t *table) double() {
	if t.old.all != nil {
		panic("BUG: a table is full before its old cells were moved")
	}
	t.old, t.moved, t.first = t.cells, 0, 0
	for t.old.all[t.first] != 0 {
		t.first++
	}
	t.first++
	t.cells = newCells(2 * len(t.old.all))
}

// move moves tableStep old cells, and on to the next empty one: what lies behind that has its home
// there.
func (t *table) move() {
	for n := uint32(0); ; n++ {
		at := &t.old.all[(t.first+t.moved)&t.old.mask]
		if *at == 0 && (n >= tableStep || t.moved > t.old.mask) {
			break
		}
		if *at != 0 {
			t.put(*at)
			*at = 0
		}
		t.moved++
	}
	if t.moved > t.old.mask {
		t.old = cells{}
	}
}

// cell is where an entry that must be there lies.
func (c *cells) cell(entry uint64) uint32 {
	i := uint32(entry>>32) & c.mask
	for c.all[i] != entry {
		if c.all[i] == 0 {
			panic("BUG: entry is not in the table")
		}
		i = (i + 1) & c.mask
	}
	return i
}

// holds says whether an entry is in the table.
func (t *table) holds(entry uint64) bool {
	c := t.of(uint32(entry >> 32))
	for i := uint32(entry>>32) & c.mask; c.all[i] != 0; i = (i + 1) & c.mask {
		if c.all[i] == entry {
			return true
		}
	}
	return false
}

// replace gives an entry another reference.
func (t *table) replace(entry uint64, ref uint32) {
	c := t.of(uint32(entry >> 32))
	c.all[c.cell(entry)] = entryOf(uint32(entry>>32), ref)
}

// remove takes an entry out and closes the gap: an entry behind it moves up unless its home lies
// after the gap.
func (t *table) remove(entry uint64) {
	c := t.of(uint32(entry >> 32))
	gap := c.cell(entry)
	for i := gap; ; {
		i = (i + 1) & c.mask
		e := c.all[i]
		if e == 0 {
			break
		}
		home := uint32(e>>32) & c.mask
		if (i-home)&c.mask >= (i-gap)&c.mask {
			c.all[gap] = e
			gap = i
		}
	}
	c.all[gap] = 0
	t.used--
}
