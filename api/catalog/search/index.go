package search

import (
	"slices"
	"sync"
)

// Document is something to search for.
type Document struct {
	// ID names the document in Found. No other document has the same.
	ID int32
	// Title is searched first. The order of its words counts.
	Title string
	// Texts are searched as well. The order of their words does not count.
	Texts []string
	// Marks are exact names that a Query may insist on.
	Marks []string
	// Active documents come before the others that match equally well.
	Active bool
	// Volume, in any unit, orders documents further: the larger one first.
	Volume float64
}

// Index finds documents by their words. An Index never changes; With makes another one that shares
// nearly all memory with it. Any number of goroutines may search; a nil Index has no documents.
type Index struct {
	// The first part is the bulk. Each further part holds documents that came or changed later, and
	// is less than half as large as the part before.
	parts   []searchPart
	seekers *sync.Pool
}

// searchPart is a segment, and which of its documents still count.
type searchPart struct {
	*segment
	living []uint64   // bitmap of the documents that count; nil: all
	alive  int        // how many documents count
	docs   []Document // for uniting small parts; nil in the first part
}

// New indexes documents. Of several documents with one ID the last counts.
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

// With returns an index in which some documents are new or changed, and those with the IDs in gone
// are missing, even if they are changed too. The cost is that of the change; s stays as it is.
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
		p.living = slices.Clone(p.living)
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
			if no, ok := p.numbers[p.docs[i].ID]; ok && p.counts(no) {
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

// bury strikes out a document.
func (p *searchPart) bury(id int32) {
	no, ok := p.numbers[id]
	if !ok || !p.counts(no) {
		return
	}
	if p.living == nil {
		p.living = slices.Repeat([]uint64{^uint64(0)}, p.width())
	}
	p.living[no/64] &^= 1 << (no % 64)
	p.alive--
}

func (p *searchPart) counts(no uint32) bool {
	return p.living == nil || p.living[no/64]>>(no%64)&1 == 1
}

// Len returns the number of documents.
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

// Scattered reports whether so much has changed that New with all documents would make a noticeably
// smaller and faster index.
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
