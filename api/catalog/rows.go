package catalog

import (
	"iter"
	"slices"
)

// rowChunk is how many rows are copied when one of them changes.
const rowChunk = 256

// Rows are the rows of one kind by number, from 0. They never change; an editor shares the chunks
// that it does not touch.
type Rows[T any] struct {
	chunks []*[rowChunk]*T
	count  int
}

// Len is how many rows there are.
func (r *Rows[T]) Len() int { return r.count }

// At is the row of a number, nil if there is none.
func (r *Rows[T]) At(no int32) *T {
	if no < 0 || int(no) >= r.count {
		return nil
	}
	return r.chunks[no/rowChunk][no%rowChunk]
}

// All are the rows in the order of their numbers.
func (r *Rows[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for no := range int32(r.count) {
			if !yield(r.At(no)) {
				return
			}
		}
	}
}

// rowEditor changes a copy of Rows.
type rowEditor[T any] struct {
	Rows[T]
	copied  []bool  // by chunk: whether it is already a copy
	changed []int32 // rows that are new or changed, in the order of their first change
	marked  bitset
}

func editRows[T any](from Rows[T]) rowEditor[T] {
	from.chunks = slices.Clone(from.chunks)
	return rowEditor[T]{Rows: from, copied: make([]bool, len(from.chunks))}
}

// set replaces a row, or adds the next one.
func (e *rowEditor[T]) set(no int32, row *T) {
	chunk := int(no / rowChunk)
	switch {
	case chunk == len(e.chunks):
		e.chunks, e.copied = append(e.chunks, new([rowChunk]*T)), append(e.copied, true)
	case !e.copied[chunk]:
		fresh := *e.chunks[chunk]
		e.chunks[chunk], e.copied[chunk] = &fresh, true
	}
	e.chunks[chunk][no%rowChunk] = row
	e.count = max(e.count, int(no)+1)
	if !e.marked.has(no) {
		e.marked.set(no)
		e.changed = append(e.changed, no)
	}
}

// own is a row that may be changed in place: a copy, unless this editor has made the row.
func (e *rowEditor[T]) own(no int32) *T {
	if !e.marked.has(no) {
		row := *e.At(no)
		e.set(no, &row)
	}
	return e.At(no)
}

// bitset is a set of row numbers.
type bitset []uint64

func (b bitset) has(no int32) bool {
	return int(no/64) < len(b) && b[no/64]>>(no%64)&1 == 1
}

func (b *bitset) set(no int32) {
	for int(no/64) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[no/64] |= 1 << (no % 64)
}

func (b bitset) unset(no int32) {
	if int(no/64) < len(b) {
		b[no/64] &^= 1 << (no % 64)
	}
}
