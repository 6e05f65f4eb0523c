package engine

// table is an open-addressing hash table of entries (tag << 32 | reference): the tag is 32 bits of
// the key's hash, whose low bits are the entry's home; the key itself is verified in the record
// that the reference names. References are never 0, so that 0 is an empty cell. Cells are probed
// in a line and closed up on removal: no tombstones, and no cost that grows with age.
type table struct {
	cells []uint64
	mask  uint32
	used  uint32
}

const tableLeast = 1 << 8

func newTable() table {
	return table{cells: make([]uint64, tableLeast), mask: tableLeast - 1}
}

func entryOf(tag, ref uint32) uint64 { return uint64(tag)<<32 | uint64(ref) }

// insert adds an entry that is not in the table, doubling it beyond three quarters full.
func (t *table) insert(entry uint64) {
	if t.used >= t.mask-t.mask>>2 {
		t.double()
	}
	t.used++
	t.put(entry)
}

func (t *table) put(entry uint64) {
	i := uint32(entry>>32) & t.mask
	for t.cells[i] != 0 {
		i = (i + 1) & t.mask
	}
	t.cells[i] = entry
}

func (t *table) double() {
	old := t.cells
	t.cells = make([]uint64, 2*len(old))
	t.mask = uint32(len(t.cells) - 1)
	for _, entry := range old {
		if entry != 0 {
			t.put(entry)
		}
	}
}

// cell is where an entry that must be in the table lies.
func (t *table) cell(entry uint64) uint32 {
	i := uint32(entry>>32) & t.mask
	for t.cells[i] != entry {
		if t.cells[i] == 0 {
			panic("BUG: entry is not in the table")
		}
		i = (i + 1) & t.mask
	}
	return i
}

// holds says whether an entry is in the table.
func (t *table) holds(entry uint64) bool {
	for i := uint32(entry>>32) & t.mask; t.cells[i] != 0; i = (i + 1) & t.mask {
		if t.cells[i] == entry {
			return true
		}
	}
	return false
}

// replace gives an entry another reference.
func (t *table) replace(entry uint64, ref uint32) {
	t.cells[t.cell(entry)] = entryOf(uint32(entry>>32), ref)
}

// remove takes an entry out and closes the gap: an entry behind it moves up unless its home lies
// after the gap.
func (t *table) remove(entry uint64) {
	gap := t.cell(entry)
	for i := gap; ; {
		i = (i + 1) & t.mask
		e := t.cells[i]
		if e == 0 {
			break
		}
		home := uint32(e>>32) & t.mask
		if (i-home)&t.mask >= (i-gap)&t.mask {
			t.cells[gap] = e
			gap = i
		}
	}
	t.cells[gap] = 0
	t.used--
}
