package catalog

import (
	"iter"
	"slices"
)

// rowChunk is how many rows are copied when one of them changes.
const rowChunk = 256

// Rows are the rows of one kind by number, from 0. They never change; newer Rows share the chunks
// without changes.
type Rows[T any] struct {
	chunks []*[rowChunk]*T
	count  int
}

// Len returns the number of rows.
func (r *Rows[T]) Len() int { return r.count }

// At returns the row of a number, nil if there is none.
func (r *Rows[T]) At(no int32) *T {
	if no < 0 || int(no) >= r.count {
		return nil
	}
	return r.chunks[no/rowChunk][no%rowChunk]
}

// All walks through the rows in the order of their numbers.
func (r *Rows[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for no := range int32(r.count) {
			if !yield(r.At(no)) {
				return
			}
		}
	}
}

// rowEditor changes the Rows of a catalog that nobody sees yet.
type rowEditor[T any] struct {
	*Rows[T]
	copied  []bool  // by chunk: whether it is already a copy
	changed []int32 // rows that are new or changed, in the order of their first change
	marked  bitset
}

func editRows[T any](rows *Rows[T]) rowEditor[T] {
	rows.chunks = slices.Clone(rows.chunks)
	return rowEditor[T]{Rows: rows, copied: make([]bool, len(rows.chunks))}
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

// own returns a row to be changed in place: a copy, unless this editor has made the row.
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

// join adds the rows of another set.
func (b *bitset) join(other bitset) {
	if len(*b) < len(other) {
		*b = append(*b, make(bitset, len(other)-len(*b))...)
	}
	for i, word := range other {
		(*b)[i] |= word
	}
}

func (b bitset) unset(no int32) {
	if int(no/64) < len(b) {
		b[no/64] &^= 1 << (no % 64)
	}
}
