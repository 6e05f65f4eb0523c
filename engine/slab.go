package engine

const (
	slabBits = 10
	slabPage = 1 << slabBits
)

// slab holds records of one type in pages, so that a record never moves and growing never copies.
// Records are named by a number from 1; 0 is nobody.
type slab[T any] struct {
	pages slabPages[T]
	used  uint32 // records handed out so far; the highest number
}

// slabPages are the pages of a slab. Whoever looks up several records keeps them in a variable:
// after a write to a record the compiler would read the slab's own again.
type slabPages[T any] []*[slabPage]T

// at is record i, which must have been handed out. The comparison is one of registers: without it
// the compiler has the page's first record read to see whether there is a page, which is another
// cache line, and another address to translate, for every record.
func (s slabPages[T]) at(i uint32) *T {
	p := s[i>>slabBits]
	if p == nil {
		panic("BUG: a page of a slab is missing")
	}
	return &p[i&(slabPage-1)]
}

// at is record i, which must have been handed out.
func (s *slab[T]) at(i uint32) *T { return s.pages.at(i) }

// next hands out a fresh record, zeroed.
func (s *slab[T]) next() uint32 {
	s.used++
	if int(s.used>>slabBits) >= len(s.pages) {
		s.pages = append(s.pages, new([slabPage]T))
	}
	return s.used
}
