package engine

import (
	"encoding/binary"
	"math/bits"
)

// Window is how many of the last placements are remembered whether they still rest or not. What
// falls out of it is judged by the watermark that each Place carries.
const Window = 1 << 18

// inRing tells a reference to the ring from one to the orders.
const inRing = 1 << 31

// placement is one of the last placements: its id binds, whether its order still rests or not.
type placement struct {
	id    OrderID
	first Sequence
	tag   uint32
}

// seen is replay protection and the way from an order's id to its record: one table of every live
// id and of the last placements.
//
//	table ──► order, while it rests
//	   └────► ring: the last window placements, oldest overwritten
//
// So a placement that falls out of the ring while its order rests costs nothing: neither the table
// nor the order is told.
type seen struct {
	table  table
	ring   slab[placement]
	window uint32
	at     uint32 // of the newest placement in the ring
	count  uint64 // placements remembered so far: the number of the newest
	floor  Sequence
	left   uint64 // salts of the hash: they scatter, and no result depends on them
	right  uint64
}

func newSeen(seed uint64, window uint32) seen {
	left := mix(seed, mixSeen)
	return seen{table: newTable(), window: window, left: left, right: mix(left, seed)}
}

// tag is 32 bits of the salted hash of an id.
func (s *seen) tag(id *OrderID) uint32 {
	le := binary.LittleEndian
	h1, l1 := bits.Mul64(le.Uint64(id[0:])^s.left, le.Uint64(id[8:])^s.right)
	h2, l2 := bits.Mul64(le.Uint64(id[16:])^s.right, le.Uint64(id[24:])^s.left)
	h3, l3 := bits.Mul64(h1^l1^s.left, h2^l2^s.right)
	h := h3 ^ l3
	return uint32(h>>32) ^ uint32(h)
}

// find is the order record, 0 if it rests no more, and the Sequence of a known id.
func (x *Exchange) find(id *OrderID, tag uint32) (h uint32, first Sequence, known bool) {
	s := &x.seen
	for ref, e := s.table.search(tag); ref != 0; ref, e = e.next() {
		if ref&inRing == 0 {
			if o := x.orders.at(ref); same(&o.id, id) {
				return ref, o.first, true
			}
		} else if p := s.ring.at(ref &^ inRing); same(&p.id, id) {
			return 0, p.first, true
		}
	}
	return 0, 0, false
}

// rests says whether order h rests and has that id. Any h will do.
func (x *Exchange) rests(h uint32, id *OrderID) bool {
	if h == 0 || h > x.orders.used {
		return false
	}
	o := x.orders.at(h)
	return o.remaining != 0 && same(&o.id, id)
}

// same is a == b, without the call that Go makes of that for so many bytes.
func same(a, b *OrderID) bool {
	le := binary.LittleEndian
	return (le.Uint64(a[0:])^le.Uint64(b[0:]))|(le.Uint64(a[8:])^le.Uint64(b[8:]))|
		(le.Uint64(a[16:])^le.Uint64(b[16:]))|(le.Uint64(a[24:])^le.Uint64(b[24:])) == 0
}

// remember binds the id of an arriving order, resting as order h or 0, and lets go of the oldest
// placement.
func (x *Exchange) remember(t *taker, first Sequence, h uint32) {
	s := &x.seen
	if s.ring.used < s.window {
		s.at = s.ring.next()
	} else {
		if s.at++; s.at > s.window {
			s.at = 1
		}
		x.evict(s.ring.at(s.at))
	}
	s.count++
	p := s.ring.at(s.at)
	p.id = t.c.ID
	p.first, p.tag = first, t.tag
	if h != 0 {
		x.orders.at(h).ring = s.at
		s.table.insert(entryOf(t.tag, h))
	} else {
		s.table.insert(entryOf(t.tag, s.at|inRing))
	}
	x.digest += seenLeaf(t.id, s.count)
}

// evict lets a placement fall out of the ring. A live one stays known through its order.
func (x *Exchange) evict(p *placement) {
	s := &x.seen
	s.table.remove(entryOf(p.tag, s.at|inRing)) // not there while its order rests
	s.floor = p.first
	gone := s.count - uint64(s.window)
	x.digest += floorLeaf(gone+1) - floorLeaf(gone) - seenLeaf(foldID(&p.id), gone+1)
}

// forget is told that order h rests no more.
func (x *Exchange) forget(h uint32, o *order) {
	s := &x.seen
	if o.first <= s.floor {
		s.table.remove(entryOf(o.tag, h))
		return
	}
	s.table.replace(entryOf(o.tag, h), o.ring|inRing)
}
