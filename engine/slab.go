package engine

const (
	slabBits = 10
	slabPage = 1 << slabBits
)

// slab holds records of one type in pages, so that a record never moves and growing never copies.
// Records are named by a number from 1; 0 is nobody.
type slab[T any] struct {
	pages []*[slabPage]T
	used  uint32 // records handed out so far; the highest number
}

// at is record i, which must have been handed out. The comparison is one of registers: without it
// the compiler has the page's first record read to see whether there is a page, which is another
// cache line, and another address to translate, for every record.
func (s *slab[T]) at(i uint32) *T {
	p := s.pages[i>>slabBits]
	if p == nil {
		return nil
	}
	return &p[i&(slabPage-1)]
}

// next hands out a fresh record, zeroed.
func (s *slab[T]) next() uint32 {
	s.used++
	if int(s.used>>slabBits) >= len(s.pages) {
		s.pages = append(s.pages, new([slabPage]T))
	}
	return s.used
}
