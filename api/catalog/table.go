package catalog

import (
	"hash/maphash"
	"slices"
)

// seed salts the tables of this process, so that nobody can choose colliding names.
var seed = maphash.MakeSeed()

func hashText(s string) uint32 { return uint32(maphash.String(seed, s)) }

func hashBytes(b []byte) uint32 { return uint32(maphash.Bytes(seed, b)) }

// hashTable finds rows by the hash of a key. The caller compares the key of each row that it finds:
// hashes collide, and a row that has changed is still found under its old key. Successive catalogs
// share the large part, base, and each copies the small part, over.
type hashTable struct {
	base, over slots
	own        bool // over is no older catalog's
}

// find calls each with the numbers that are entered under a hash until it says false.
func (t *hashTable) find(hash uint32, each func(no int32) bool) {
	if t.over.find(hash, each) {
		t.base.find(hash, each)
	}
}

// enter adds a row under a hash.
func (t *hashTable) enter(hash uint32, no int32) {
	if !t.own {
		t.over.entries, t.own = slices.Clone(t.over.entries), true
	}
	t.over.insert(hash, no)
}

// settle ends the changes. The small part goes into the large one when it is no longer small.
func (t *hashTable) settle() {
	const small = 1 << 10
	t.own = false
	if t.over.count <= small+t.base.count/8 {
		return
	}
	if t.base.count == 0 {
		t.base, t.over = t.over, slots{}
		return
	}
	var all slots
	all.grow(2 * (t.base.count + t.over.count))
	all.add(t.base.entries)
	all.add(t.over.entries)
	t.base, t.over = all, slots{}
}

// slots is an open hash table of entries hash<<32 | number+1, at most half full.
type slots struct {
	entries []uint64
	count   int
}

func (s *slots) find(hash uint32, each func(no int32) bool) (goOn bool) {
	if s.count == 0 {
		return true
	}
	mask := uint32(len(s.entries) - 1)
	for i := hash & mask; s.entries[i] != 0; i = (i + 1) & mask {
		if entry := s.entries[i]; uint32(entry>>32) == hash && !each(int32(uint32(entry))-1) {
			return false
		}
	}
	return true
}

func (s *slots) insert(hash uint32, no int32) {
	if 2*(s.count+1) > len(s.entries) {
		s.grow(4 * (s.count + 1))
	}
	entry := uint64(hash)<<32 | uint64(uint32(no+1))
	mask := uint32(len(s.entries) - 1)
	i := hash & mask
	for ; s.entries[i] != 0; i = (i + 1) & mask {
		if s.entries[i] == entry {
			return
		}
	}
	s.entries[i] = entry
	s.count++
}

// grow makes room for at least so many slots.
func (s *slots) grow(least int) {
	size := 16
	for size < least {
		size *= 2
	}
	old := s.entries
	s.entries, s.count = make([]uint64, size), 0
	s.add(old)
}

func (s *slots) add(entries []uint64) {
	for _, entry := range entries {
		if entry != 0 {
			s.insert(uint32(entry>>32), int32(uint32(entry))-1)
		}
	}
}
