package engine

import (
	"encoding/binary"
	"math/bits"
)

// Window is how many placements are remembered. For older ids, the Seen of each Place decides.
const Window = 1 << 18

// inRing marks a reference to the ring; the others refer to orders.
const inRing = 1 << 31

// placement is one of the last placements: its id is bound, whether its order still rests or not.
type placement struct {
	id    OrderID
	first Sequence
	tag   uint32
}

// seen is the replay protection, and leads from an order's id to its record. A placement may leave
// the ring while its order rests: that changes neither the table nor the order.
//
//	table ──► order, while it rests
//	   └────► ring: the last window placements, oldest overwritten
type seen struct {
	table  table
	ring   slab[placement]
	window uint32
	at     uint32 // of the newest placement in the ring
	count  uint64 // placements remembered so far: the number of the newest
	floor  Sequence
	salt   salt
}

// salt makes the tags of ids: they scatter, and no result depends on them.
type salt struct{ left, right uint64 }

func newSalt(seed uint64) salt {
	left := mix(seed, mixSeen)
	return salt{left, mix(left, seed)}
}

// tag returns 32 bits of the salted hash of an id.
func (s *salt) tag(id *OrderID) uint32 {
	le := binary.LittleEndian
	h1, l1 := bits.Mul64(le.Uint64(id[0:])^s.left, le.Uint64(id[8:])^s.right)
	h2, l2 := bits.Mul64(le.Uint64(id[16:])^s.right, le.Uint64(id[24:])^s.left)
	h3, l3 := bits.Mul64(h1^l1^s.left, h2^l2^s.right)
	h := h3 ^ l3
	return uint32(h>>32) ^ uint32(h)
}

// find returns the number of an id's order, 0 if it does not rest, and the Sequence of its Place.
func (s *seen) find(orders *slab[order], id *OrderID, tag uint32) (
	h uint32, first Sequence, known bool) {
	for ref, e := s.table.search(tag); ref != 0; ref, e = e.next() {
		if ref&inRing == 0 {
			if o := orders.at(ref); same(&o.id, id) {
				return ref, o.first, true
			}
		} else if p := s.ring.at(ref &^ inRing); same(&p.id, id) {
			return 0, p.first, true
		}
	}
	return 0, 0, false
}

// resting returns the number of the resting order with this id and the order, or 0. h is a guess.
func (s *seen) resting(orders *slab[order], id *OrderID, h uint32) (uint32, *order) {
	if h != 0 && h <= orders.used {
		if o := orders.at(h); o.remaining != 0 && same(&o.id, id) {
			return h, o
		}
	}
	if h, _, _ = s.find(orders, id, s.salt.tag(id)); h == 0 {
		return 0, nil
	}
	return h, orders.at(h)
}

// same is a == b. For 32 bytes Go would make a call of the comparison.
func same(a, b *OrderID) bool {
	le := binary.LittleEndian
	return (le.Uint64(a[0:])^le.Uint64(b[0:]))|(le.Uint64(a[8:])^le.Uint64(b[8:]))|
		(le.Uint64(a[16:])^le.Uint64(b[16:]))|(le.Uint64(a[24:])^le.Uint64(b[24:])) == 0
}

// remember binds the id of an order, which rests as o with number h unless h is 0, and forgets the
// oldest placement. It returns the change of the Digest.
func (s *seen) remember(t *taker, first Sequence, h uint32, o *order) (grown uint64) {
	if s.ring.used < s.window {
		s.at = s.ring.next()
	} else {
		if s.at++; s.at > s.window {
			s.at = 1
		}
		grown = s.evict(s.ring.at(s.at))
	}
	s.count++
	p := s.ring.at(s.at)
	p.id = t.c.ID
	p.first, p.tag = first, t.tag
	ref := s.at | inRing
	if h != 0 {
		o.ring, ref = s.at, h
	}
	s.table.insert(entryOf(t.tag, ref))
	return grown + seenLeaf(t.id, s.count)
}

// evict forgets a placement, not a live order, and returns the change of the Digest.
func (s *seen) evict(p *placement) uint64 {
	s.table.remove(entryOf(p.tag, s.at|inRing)) // absent while its order rests
	s.floor = p.first
	gone := s.count - uint64(s.window)
	return floorLeaf(gone+1) - floorLeaf(gone) - seenLeaf(foldID(&p.id), gone+1)
}

// leave removes order h, which rests no more: its id leads to the placement, or is forgotten.
func (s *seen) leave(h uint32, o *order) {
	if o.first <= s.floor {
		s.table.remove(entryOf(o.tag, h))
		return
	}
	s.table.replace(entryOf(o.tag, h), o.ring|inRing)
}
