package engine

import "math/bits"

// table is a hash table of entries (tag << 32 | reference): the tag is 32 bits of the key's hash;
// the key itself is verified in the record that the reference names. References are never 0.
//
// A bucket is one cache line of seven entries. The low bits of a tag say which bucket is its home;
// an entry that finds it full goes to the next one with room. The eighth word has a byte for each
// entry, the mark: 8 bits of its tag, 0 if there is no entry. All marks are compared at once: no
// branch depends on where in the bucket an entry lies. The eighth byte counts the entries that had
// to pass: a search goes on for as long as it is not 0. So nothing moves when an entry goes, and
// there are no tombstones.
//
//	bucket: entry entry entry entry entry entry entry │ past, and seven marks
//
// A table that is full enough goes over to twice the number of buckets, one or a few with each
// insert or step, so that no Command pays for all of them:
//
//	old:     first ► moved │ still here …     an entry is in the old buckets if its home there lies
//	buckets: … …                              behind what was moved, in the new ones otherwise
type table struct {
	buckets
	old   buckets
	first uint32 // the old bucket that was moved first: nothing had passed the one before it
	moved uint32 // how many old buckets were, from first on
	used  uint32
}

// bucket is the entries and, as its last word, their marks.
type bucket [bucketEntries + 1]uint64

// buckets are a power of 2 in number; mask is one less.
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
	mostPast  = 0xff * onePast // so many or more: it stays
)

func newTable() table { return table{buckets: newBuckets(tableLeast)} }

func newBuckets(n int) buckets { return buckets{make([]bucket, n), uint32(n - 1)} }

func entryOf(tag, ref uint32) uint64 { return uint64(tag)<<32 | uint64(ref) }

// markOf is the mark of a tag, of those bits that do not say where its home is: at least 2, so that
// marked takes no empty place for an entry.
func markOf(tag uint32) uint64 { return max(uint64(tag>>24), 2) }

// marked are the entries with a mark: the high bit of the byte of each, and maybe of one above it
// whose mark differs in the lowest bit.
func (b *bucket) marked(mark uint64) uint64 {
	m := b[bucketEntries] ^ mark*markOnes
	return (m - markOnes) &^ m & markHighs
}

// entry is the one of the lowest bit of marked.
func (b *bucket) entry(marked uint64) *uint64 { return &b[bits.TrailingZeros64(marked)>>3&7] }

// past says whether an entry had to pass this bucket.
func (b *bucket) past() bool { return b[bucketEntries] >= onePast }

// of is the buckets that the entries of a tag are in.
func (t *table) of(tag uint32) *buckets {
	if t.old.all != nil && (tag-t.first)&t.old.mask >= t.moved {
		return &t.old
	}
	return &t.buckets
}

// home is the home of a tag.
func (t *table) home(tag uint32) *bucket {
	c := t.of(tag)
	return &c.all[tag&c.mask]
}

// second is where else the entries of a tag may be: the bucket behind its home, or else its home
// again, if that has them all. Nobody can foresee which, so that nothing here branches on it.
func (t *table) second(tag uint32) *bucket {
	c, i := t.of(tag), tag
	if c.all[tag&c.mask].past() {
		i++
	}
	return &c.all[i&c.mask]
}

// search goes through the entries of a tag. It is handed on by value, and has no more fields than
// Go keeps in registers: one that lay on the stack was written in small pieces and read in large
// ones, for which the processor waits.
type search struct {
	in     *buckets
	tag    uint32
	step   uint32 // buckets from its home
	marked uint64 // what is left to be looked at of this one
}

// search is the reference of the first entry of a tag, 0 if there is none, and how to go on. Nearly
// always the bucket that is its home says it all.
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

// next is the reference of the next entry, 0 if there is none, and how to go on, which is not to be
// tried after 0. The last bucket is the one before its home: all may have been passed.
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

// step moves an old bucket, if there are any. A table to which nothing is added for long needs it:
// in which of both an entry lies is a coin's toss for each search.
func (t *table) step() {
	if t.old.all != nil {
		t.move()
	}
}

// roomy is up to how many buckets, 4 MB of them, a table doubles when it is half full. Then hardly
// an entry has to pass its home, and a search that must go on is a wrong guess and another cache
// line. Of a larger table each byte counts: it doubles when it is three quarters full.
const roomy = 1 << 16

// mostEntries is how many entries so many buckets take before they are doubled.
func mostEntries(buckets int) uint64 {
	places := uint64(buckets) * bucketEntries
	if buckets <= roomy {
		return places / 2
	}
	return places * 3 / 4
}

// put adds an entry.
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

// double makes new buckets. A move must come before anything is put into the old ones.
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

// move moves an old bucket, and on to the next one that nothing has passed: what lies behind that
// has its home there.
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

// moveTo empties a bucket into others.
func (b *bucket) moveTo(c *buckets) {
	for _, e := range b[:bucketEntries] {
		if e != 0 {
			c.put(e)
		}
	}
	*b = bucket{}
}

// locate is the bucket of an entry and its bit in marked, nil if it is not there.
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

// holds says whether an entry is in the table.
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

// remove takes an entry out, if it is there.
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
