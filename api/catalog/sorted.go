package catalog

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// sorted is the list of all rows of a kind by one column, ascending. The first who asks makes it;
// the next catalog's list is made of this one and of the changes.
type sorted struct {
	count int // of rows
	// number or text reads the column, ids orders rows that are equal in it by their id.
	number func(no int32) int64
	text   func(no int32) string
	ids    func(a, b int32) int
	id     func(no int32) string

	making sync.Mutex
	made   atomic.Pointer[[]int32]
}

// value returns the column of a row; 0 if it is no number.
func (s *sorted) value(no int32) int64 {
	if s.number == nil {
		return 0
	}
	return s.number(no)
}

func (s *sorted) compare(a, b int32) int {
	c := 0
	switch {
	case s.number != nil:
		c = cmp.Compare(s.number(a), s.number(b))
	case s.text != nil:
		c = compareFold(s.text(a), s.text(b))
	}
	if c != 0 {
		return c
	}
	return s.ids(a, b)
}

// compareFold compares texts without letter case, as strings.Compare does their small letters.
func compareFold(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x|y >= utf8.RuneSelf {
			return strings.Compare(strings.ToLower(a[i:]), strings.ToLower(b[i:]))
		}
		if x, y = smallLetter(x), smallLetter(y); x != y {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

// copyFold copies the beginning of the small letters of a text.
func copyFold(to []byte, text string) {
	for i := range min(len(to), len(text)) {
		if text[i] >= utf8.RuneSelf {
			copy(to, strings.ToLower(text))
			return
		}
		to[i] = smallLetter(text[i])
	}
}

func smallLetter(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// compareAt compares a row with the place that a cursor has kept.
func (s *sorted) compareAt(no int32, at rowCursor) int {
	if s.number == nil {
		return s.compare(no, at.no)
	}
	return cmp.Or(cmp.Compare(s.number(no), at.value), s.ids(no, at.no))
}

// list returns the sorted list, which nobody may change.
func (s *sorted) list() []int32 {
	if made := s.made.Load(); made != nil {
		return *made
	}
	s.making.Lock()
	defer s.making.Unlock()
	if made := s.made.Load(); made != nil {
		return *made
	}
	list := s.sort()
	s.made.Store(&list)
	return list
}

// sort sorts all rows. It compares values that lie side by side: rows lie all over the memory.
func (s *sorted) sort() []int32 {
	type keyed struct {
		value uint64 // of a text the first eight bytes
		no    int32
	}
	entries := make([]keyed, s.count)
	for i := range entries {
		no := int32(i)
		entries[i].no = no
		switch {
		case s.number != nil:
			entries[i].value = uint64(s.number(no)) ^ 1<<63
		case s.text != nil:
			var head [8]byte
			copyFold(head[:], s.text(no))
			for _, c := range head {
				entries[i].value = entries[i].value<<8 | uint64(c)
			}
		}
	}
	slices.SortFunc(entries, func(a, b keyed) int {
		if c := cmp.Compare(a.value, b.value); c != 0 {
			return c
		}
		return s.compare(a.no, b.no)
	})
	list := make([]int32, len(entries))
	for i := range entries {
		list[i] = entries[i].no
	}
	return list
}

// follow makes the list of an older one, if that was made, and of the rows that have changed.
func (s *sorted) follow(old *sorted, changed []int32) {
	made := old.made.Load()
	if made == nil {
		return
	}
	var fresh []int32
	var moved bitset
	for _, no := range changed {
		if int(no) >= old.count || !s.same(old, no) {
			fresh = append(fresh, no)
			moved.set(no)
		}
	}
	switch {
	case len(fresh) == 0:
		s.made.Store(made)
		return
	case len(fresh) > len(*made)/4:
		s.list()
		return
	}
	kept := make([]int32, 0, s.count)
	for _, no := range *made {
		if !moved.has(no) {
			kept = append(kept, no)
		}
	}
	slices.SortFunc(fresh, s.compare)
	list := make([]int32, 0, s.count)
	for _, no := range fresh {
		i, _ := slices.BinarySearchFunc(kept, no, s.compare)
		list = append(append(list, kept[:i]...), no)
		kept = kept[i:]
	}
	list = append(list, kept...)
	s.made.Store(&list)
}

// same reports whether a row is where it was in an older list.
func (s *sorted) same(old *sorted, no int32) bool {
	return (s.number == nil || s.number(no) == old.number(no)) &&
		(s.text == nil || s.text(no) == old.text(no)) && s.id(no) == old.id(no)
}

// orders are the lists of one kind by their columns, but for those of live values (live.go).
type orders [orderCount]*sorted

// follow makes the lists that the older catalog has made.
func (o *orders) follow(old *orders, changed []int32) {
	if old == nil {
		return
	}
	for i := range o {
		if o[i] != nil && old[i] != nil && (i == int(ByID) || o[i] != o[ByID]) {
			o[i].follow(old[i], changed)
		}
	}
}

// columns read the columns of a kind of row; nil: the kind has no such column.
type columns[T any] struct {
	identity   func(*T) *Identity
	slug, name func(*T) string
	numbers    [orderCount]func(*T) int64
}

// ordersOf returns the lists of rows, none of them made.
func ordersOf[T any](rows *Rows[T], by columns[T]) *orders {
	ids := func(a, b int32) int {
		x, y := by.identity(rows.At(a)), by.identity(rows.At(b))
		return cmp.Or(compareIDs(x.number, y.number, x.ID, y.ID), cmp.Compare(a, b))
	}
	id := func(no int32) string { return by.identity(rows.At(no)).ID }
	by.numbers[ByCreated] = func(row *T) int64 { return by.identity(row).Created }
	by.numbers[ByUpdated] = func(row *T) int64 { return by.identity(row).Updated }
	o := new(orders)
	for i := range o {
		o[i] = &sorted{count: rows.Len(), ids: ids, id: id}
		if column := by.numbers[i]; column != nil {
			o[i].number = func(no int32) int64 { return column(rows.At(no)) }
		}
	}
	o[BySlug].text = func(no int32) string { return by.slug(rows.At(no)) }
	o[ByName].text = func(no int32) string { return by.name(rows.At(no)) }
	for i, s := range o {
		if s.number == nil && s.text == nil {
			o[i] = o[ByID] // the kind has no such column
		}
	}
	return o
}

func marketOrders(rows *Rows[Market]) *orders {
	return ordersOf(rows, columns[Market]{
		identity: func(m *Market) *Identity { return &m.Identity },
		slug:     func(m *Market) string { return m.Slug },
		name:     func(m *Market) string { return m.Question },
		numbers: [orderCount]func(*Market) int64{
			ByStart: func(m *Market) int64 { return m.Start },
			ByEnd:   func(m *Market) int64 { return m.End },

			ByClosed:      func(m *Market) int64 { return m.closedAt },
			ByCompetitive: func(m *Market) int64 { return m.competitive },
		},
	})
}

func eventOrders(rows *Rows[Event]) *orders {
	return ordersOf(rows, columns[Event]{
		identity: func(e *Event) *Identity { return &e.Identity },
		slug:     func(e *Event) string { return e.Slug },
		name:     func(e *Event) string { return e.Title },
		numbers: [orderCount]func(*Event) int64{
			ByStart: func(e *Event) int64 { return e.Start },
			ByEnd:   func(e *Event) int64 { return e.End },

			ByClosed:      func(e *Event) int64 { return e.closedAt },
			ByCompetitive: func(e *Event) int64 { return e.competitive },
			ByFeatured:    func(e *Event) int64 { return e.featuredOrder },
		},
	})
}

func seriesOrders(rows *Rows[Series]) *orders {
	return ordersOf(rows, columns[Series]{
		identity: func(s *Series) *Identity { return &s.Identity },
		slug:     func(s *Series) string { return s.Slug },
		name:     func(s *Series) string { return s.Title },
		numbers: [orderCount]func(*Series) int64{
			ByStart:       func(s *Series) int64 { return s.Start },
			ByVolume:      func(s *Series) int64 { return s.Volume },
			ByLiquidity:   func(s *Series) int64 { return s.Liquidity },
			ByVolumeDay:   func(s *Series) int64 { return s.Windows[0] },
			ByVolumeWeek:  func(s *Series) int64 { return s.Windows[1] },
			ByVolumeMonth: func(s *Series) int64 { return s.Windows[2] },
			ByVolumeYear:  func(s *Series) int64 { return s.Windows[3] },
		},
	})
}

func tagOrders(rows *Rows[Tag]) *orders {
	return ordersOf(rows, columns[Tag]{
		identity: func(t *Tag) *Identity { return &t.Identity },
		slug:     func(t *Tag) string { return t.Slug },
		name:     func(t *Tag) string { return t.Label },
		numbers: [orderCount]func(*Tag) int64{
			ByVolume: func(t *Tag) int64 { return int64(len(t.events)) },
		},
	})
}
