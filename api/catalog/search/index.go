package search

import (
	"slices"
	"sync"
)

// Document is something that is searched for, by what can be read of it.
type Document struct {
	// ID names the document in what is found, and is its own.
	ID int32
	// Title is searched first; its words have an order.
	Title string
	// Texts are searched as well; their words have none.
	Texts []string
	// Marks are exact names that a Query may insist on.
	Marks []string
	// Active documents come before the others that match equally well.
	Active bool
	// Volume, in any unit, orders documents further: the larger one first.
	Volume float64
}

// Index finds documents by their words. It never changes; With makes another one that shares nearly
// all of it. Any number of goroutines may ask; a nil Index has no documents.
type Index struct {
	// parts are searched one after the other. The first is the bulk; each further one holds
	// documents that came or changed later, and is less than half as large as the one before.
	parts   []searchPart
	seekers *sync.Pool
}

// searchPart is a segment, and which of its documents still count.
type searchPart struct {
	*segment
	dead  []uint64   // bitmap of those that do not; nil: all do
	alive int        // how many do
	docs  []Document // the documents, so that small parts can be united; nil in the first part
}

// New indexes documents. Of several with one id the last counts.
func New(docs []Document) *Index {
	docs = lastOfEach(docs)
	return &Index{
		parts:   []searchPart{{segment: newSegment(docs), alive: len(docs)}},
		seekers: &sync.Pool{New: func() any { return new(seeker) }},
	}
}

// lastOfEach keeps the last document of each id.
func lastOfEach(docs []Document) []Document {
	places := make(map[int32]int, len(docs))
	for i := range docs {
		places[docs[i].ID] = i
	}
	if len(places) == len(docs) {
		return docs
	}
	kept := make([]Document, 0, len(places))
	for i := range docs {
		if places[docs[i].ID] == i {
			kept = append(kept, docs[i])
		}
	}
	return kept
}

// With is the index with some documents new or changed, and those of the given ids gone. Its cost
// is that of the change; s stays as it is. A document that is both changed and gone is gone.
func (s *Index) With(changed []Document, gone []int32) *Index {
	left := make(map[int32]bool, len(gone))
	for _, id := range gone {
		left[id] = true
	}
	changed = slices.Clone(lastOfEach(changed))
	changed = slices.DeleteFunc(changed, func(d Document) bool { return left[d.ID] })
	if s == nil {
		return New(changed)
	}
	next := &Index{parts: slices.Clone(s.parts), seekers: s.seekers}
	for i := range next.parts {
		p := &next.parts[i]
		p.dead = slices.Clone(p.dead)
		for j := range changed {
			p.bury(changed[j].ID)
		}
		for _, id := range gone {
			p.bury(id)
		}
	}
	last := len(next.parts) - 1
	for ; last > 0 && next.parts[last].alive <= 2*len(changed); last-- {
		p := &next.parts[last]
		for i := range p.docs {
			if no, ok := p.document(p.docs[i].ID); ok && !p.isDead(no) {
				changed = append(changed, p.docs[i])
			}
		}
	}
	next.parts = next.parts[:last+1]
	if len(changed) > 0 {
		next.parts = append(next.parts,
			searchPart{segment: newSegment(changed), alive: len(changed), docs: changed})
	}
	return next
}

// bury makes a document not count.
func (p *searchPart) bury(id int32) {
	no, ok := p.document(id)
	if !ok || p.isDead(no) {
		return
	}
	if p.dead == nil {
		p.dead = make([]uint64, p.width())
	}
	p.dead[no/64] |= 1 << (no % 64)
	p.alive--
}

func (p *searchPart) isDead(no uint32) bool {
	return p.dead != nil && p.dead[no/64]>>(no%64)&1 == 1
}

// Len is how many documents there are.
func (s *Index) Len() int {
	if s == nil {
		return 0
	}
	n := 0
	for i := range s.parts {
		n += s.parts[i].alive
	}
	return n
}

// Scattered says whether so much has changed that New with all documents would make an index that
// is noticeably smaller and faster. There is no hurry, and nothing is wrong until then.
func (s *Index) Scattered() bool {
	const small = 1 << 13
	if s == nil {
		return false
	}
	loose := len(s.parts[0].ids) - s.parts[0].alive
	for _, p := range s.parts[1:] {
		loose += len(p.ids)
	}
	return loose > max(small, len(s.parts[0].ids)/8)
}
