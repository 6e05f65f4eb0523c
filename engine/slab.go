package engine

const (
	slabBits = 10
	slabPage = 1 << slabBits
)

// slab holds records, numbered from 1, in pages: a record never moves and growing never copies.
type slab[T any] struct {
	pages slabPages[T]
	used  uint32 // the highest number handed out
}

// slabPages are the pages of a slab. In a variable, the compiler need not reload them after writes.
type slabPages[T any] []*[slabPage]T

// at returns record i, which must have been handed out. Without the comparison, the compiler reads
// the page's first record to check the pointer: another cache line for every record.
func (s slabPages[T]) at(i uint32) *T {
	p := s[i>>slabBits]
	if p == nil {
		panic("BUG: a page of a slab is missing")
	}
	return &p[i&(slabPage-1)]
}

func (s *slab[T]) at(i uint32) *T { return s.pages.at(i) }

// next hands out a fresh record, zeroed.
func (s *slab[T]) next() uint32 {
	s.used++
	if int(s.used>>slabBits) >= len(s.pages) {
		s.pages = append(s.pages, new([slabPage]T))
	}
	return s.used
}

// upTo returns record i, handed out if i is the number after the last one.
func (s *slab[T]) upTo(i uint32) *T {
	if i > s.used {
		s.next()
	}
	return s.pages.at(i)
}

// nearRecords is how many records a Tray holds in one piece, record 0 included.
const nearRecords = 1 << 18

// Tray is a slab of small records. In an exchange of usual size they lie in one piece, so that a
// look-up reads no list of pages. A pointer is valid until the next record is handed out.
type Tray[T any] struct {
	All  trayRecords[T]
	Used uint32 // as of a slab
}

// trayRecords are the records of a Tray, to be kept in a variable until the next record.
type trayRecords[T any] struct {
	Near  *[nearRecords]T // all records, nil if they are fewer than a page or more than nearRecords
	pages slabPages[T]    // all records, if near is nil
}

// At returns record i, which must have been handed out. All records lie alike: no branch on i.
func (t trayRecords[T]) At(i uint32) *T {
	if near := t.Near; near != nil {
		return &near[i]
	}
	return t.pages.at(i)
}

// At returns record i, which must have been handed out.
func (t *Tray[T]) At(i uint32) *T { return t.All.At(i) }

// Next hands out a fresh record, zeroed. The records of the first page move into the one piece when
// a second page is due. When the piece is full, it becomes the first pages without a move.
func (t *Tray[T]) Next() uint32 {
	t.Used++
	all := &t.All
	switch {
	case t.Used == slabPage:
		all.Near = new([nearRecords]T)
		copy(all.Near[:], all.pages[0][:])
		all.pages = nil
	case t.Used == nearRecords:
		for i := 0; i < nearRecords; i += slabPage {
			all.pages = append(all.pages, (*[slabPage]T)(all.Near[i:]))
		}
		all.Near = nil
	}
	if all.Near == nil && int(t.Used>>slabBits) >= len(all.pages) {
		all.pages = append(all.pages, new([slabPage]T))
	}
	return t.Used
}
