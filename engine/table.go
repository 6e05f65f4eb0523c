package engine

import "math/bits"

// table is a hash table of entries (tag << 32 | reference): the tag is 32 bits of the key's hash;
// the key itself is verified in the record that the reference names. References are never 0.
//
// A bucket is one cache line of seven entries. The low bits of a tag name its home bucket; an entry
// that finds its home full goes to the next bucket with room. The eighth word has a mark for each
// entry: one byte with 8 bits of its tag, 0 if there is no entry. One comparison checks all marks,
// so no branch depends on the position of an entry in its bucket. The last byte counts the entries
// that had to pass the bucket: a search continues while it is not 0. So nothing moves when an entry
// is removed, and there are no tombstones.
//
//	bucket: entry entry entry entry entry entry entry │ past, and seven marks
//
// A table that is full enough moves to twice the number of buckets, one or a few with each insert
// or step, so that no Command pays for all of them:
//
//	old:     first ► moved │ not moved …      an entry is in the old buckets if its home there was
//	buckets: … …                              not moved yet, else in the new ones
type table struct {
	buckets
	old   buckets
	first uint32 // the old bucket that moved first: no entry had passed the one before it
	moved uint32 // how many old buckets have moved, from first on
	used  uint32
}

// bucket holds the entries and, as its last word, their marks.
type bucket [bucketEntries + 1]uint64

// buckets are a power of 2 in number; mask is that number less 1.
type buckets struct {
	all  []bucket
	mask uint32
}

const (
	bucketEntries = 7
	tableLeast    = 1 << 5 // buckets

	markOnes  = 0x01010101010101
	markHighs = 0x80808080808080
	onePast   = 1 << 56
	mostPast  = 0xff * onePast // a count that has reached the maximum never changes again
)

func newTable() table { return table{buckets: newBuckets(tableLeast)} }

func newBuckets(n int) buckets { return buckets{make([]bucket, n), uint32(n - 1)} }

func entryOf(tag, ref uint32) uint64 { return uint64(tag)<<32 | uint64(ref) }

// markOf returns the mark of a tag: bits that do not select its home, at least 2 for marked's sake.
func markOf(tag uint32) uint64 { return max(uint64(tag>>24), 2) }

// marked returns the entries with a mark as the high bits of their bytes, and rarely one too many.
func (b *bucket) marked(mark uint64) uint64 {
	m := b[bucketEntries] ^ mark*markOnes
	return (m - markOnes) &^ m & markHighs
}

func (b *bucket) entry(marked uint64) *uint64 { return &b[bits.TrailingZeros64(marked)>>3&7] }

// past reports whether an entry had to pass this bucket.
func (b *bucket) past() bool { return b[bucketEntries] >= onePast }

// of returns the buckets that hold the entries of a tag, old or new.
func (t *table) of(tag uint32) *buckets {
	if t.old.all != nil && (tag-t.first)&t.old.mask >= t.moved {
		return &t.old
	}
	return &t.buckets
}

func (t *table) home(tag uint32) *bucket {
	c := t.of(tag)
	return &c.all[tag&c.mask]
}

// second returns the second bucket to search: behind the home if an entry passed it, else the home.
func (t *table) second(tag uint32) *bucket {
	c, i := t.of(tag), tag
	if c.all[tag&c.mask].past() {
		i++
	}
	return &c.all[i&c.mask]
}

// search is the state of a walk over the entries of a tag, in no more fields than registers hold.
type search struct {
	in     *buckets
	tag    uint32
	step   uint32 // buckets from the home
	marked uint64 // the entries of this bucket that are not checked yet
}

// search returns the reference of the first entry of a tag, or 0, and the state for next.
func (t *table) search(tag uint32) (uint32, search) {
	c := t.of(tag)
	b := &c.all[tag&c.mask]
	m := b.marked(markOf(tag))
	if m == 0 && !b.past() {
		return 0, search{}
	}
	if e := *b.entry(m); uint32(e>>32) == tag && m != 0 {
		return uint32(e), search{c, tag, 0, m & (m - 1)}
	}
	return search{c, tag, 0, m}.next()
}

// next returns the reference of the next entry, or 0, after which nobody may call it again.
func (s search) next() (uint32, search) {
	for {
		b := &s.in.all[(s.tag+s.step)&s.in.mask]
		for s.marked != 0 {
			e := *b.entry(s.marked)
			s.marked &= s.marked - 1
			if uint32(e>>32) == s.tag {
				return uint32(e), s
			}
		}
		if !b.past() || s.step == s.in.mask {
			return 0, s
		}
		s.step++
		s.marked = s.in.all[(s.tag+s.step)&s.in.mask].marked(markOf(s.tag))
	}
}

// insert adds an entry that is not in the table.
func (t *table) insert(entry uint64) {
	if uint64(t.used) >= mostEntries(len(t.all)) {
		t.double()
	}
	t.step()
	t.used++
	t.of(uint32(entry >> 32)).put(entry)
}

// step moves an old bucket, if there is one, so that searches end in one kind of bucket again.
func (t *table) step() {
	if t.old.all != nil {
		t.move()
	}
}

// roomy is the number of buckets (4 MB) up to which a table doubles when it is half full: few
// entries pass their home then. A larger table saves memory and doubles when it is three quarters
// full.
const roomy = 1 << 16

// mostEntries returns how many entries this number of buckets holds before it doubles.
func mostEntries(buckets int) uint64 {
	places := uint64(buckets) * bucketEntries
	if buckets <= roomy {
		return places / 2
	}
	return places * 3 / 4
}

func (c *buckets) put(entry uint64) {
	tag := uint32(entry >> 32)
	i := tag & c.mask
	for {
		b := &c.all[i]
		if free := b.marked(0); free != 0 {
			at := bits.TrailingZeros64(free) &^ 7
			b[at>>3&7] = entry
			b[bucketEntries] |= markOf(tag) << at
			return
		}
		if b[bucketEntries] < mostPast {
			b[bucketEntries] += onePast
		}
		i = (i + 1) & c.mask
	}
}

// double makes new buckets. The first move must precede the next put.
func (t *table) double() {
	if t.old.all != nil {
		panic("BUG: a table is full before its old buckets were moved")
	}
	t.old, t.moved, t.first = t.buckets, 0, 0
	for t.first < t.old.mask && t.old.all[t.first].past() {
		t.first++
	}
	t.first++
	t.buckets = newBuckets(2 * len(t.old.all))
}

// move moves an old bucket and all following ones, up to the first that no entry has passed.
func (t *table) move() {
	for on := true; on; {
		b := &t.old.all[(t.first+t.moved)&t.old.mask]
		on = b.past()
		b.moveTo(&t.buckets)
		t.moved++
	}
	if t.moved > t.old.mask {
		t.old = buckets{}
	}
}

func (b *bucket) moveTo(c *buckets) {
	for _, e := range b[:bucketEntries] {
		if e != 0 {
			c.put(e)
		}
	}
	*b = bucket{}
}

// locate returns the bucket of an entry and its bit in marked, nil if the entry is missing.
func (c *buckets) locate(entry uint64) (at *bucket, bit uint64) {
	tag := uint32(entry >> 32)
	i := tag & c.mask
	for range c.all {
		b := &c.all[i]
		for m := b.marked(markOf(tag)); m != 0; m &= m - 1 {
			if *b.entry(m) == entry {
				return b, m
			}
		}
		if !b.past() {
			return nil, 0
		}
		i = (i + 1) & c.mask
	}
	return nil, 0
}

func (t *table) holds(entry uint64) bool {
	b, _ := t.of(uint32(entry >> 32)).locate(entry)
	return b != nil
}

// replace gives an entry another reference.
func (t *table) replace(entry uint64, ref uint32) {
	tag := uint32(entry >> 32)
	b, m := t.of(tag).locate(entry)
	if b == nil {
		panic("BUG: entry is not in the table")
	}
	*b.entry(m) = entryOf(tag, ref)
}

// remove removes an entry and reports whether it was there.
func (t *table) remove(entry uint64) bool {
	tag := uint32(entry >> 32)
	c := t.of(tag)
	b, m := c.locate(entry)
	if b == nil {
		return false
	}
	at := bits.TrailingZeros64(m) &^ 7
	b[at>>3&7] = 0
	b[bucketEntries] &^= 0xff << at
	for i := tag & c.mask; &c.all[i] != b; i = (i + 1) & c.mask {
		if c.all[i][bucketEntries] < mostPast {
			c.all[i][bucketEntries] -= onePast
		}
	}
	t.used--
	return true
}
