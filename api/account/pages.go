package account

import (
	"errors"

	"clobd/api/wire"
	"clobd/journal/history"
)

const (
	// maxScans bounds the reads of the index for one page. If a part has no match, the next is read.
	maxScans = 4
	// maxPassed bounds the reads that look for an offset, of passedAtOnce rows each.
	maxPassed    = 24
	passedAtOnce = 1000
)

// list is a list of the index of which a request wants a page.
type list[R any] struct {
	query *listQuery
	read  func(history.Page) (rows []R, next uint64, err error)
	items func(*R) int // how many items of the answer a row is; 0: it is not wanted
	// within is how many items of the first row are before the page.
	within int
	begun  wire.Cursor // where the page began
	passed int         // reads that looked for its offset
	next   uint64
}

// errFar is the error of an offset that the reads did not reach.
var errFar = errors.New("the offset is too far into the list")

func count(wanted bool) int {
	if wanted {
		return 1
	}
	return 0
}

// unread is the refusal of a list that could not be read.
func (a *Account) unread(what, id string, err error) *wire.Refusal {
	if errors.Is(err, errFar) {
		return errDeep
	}
	return wire.Internal(a.o.Log, what, id, err)
}

// page reads parts of the list until one has rows that are wanted.
func (l *list[R]) page() (rows []R, err error) {
	w := l.query
	l.begun = w.at
	if err := l.seek(); err != nil {
		return nil, err
	}
	for n := 0; !w.none && n < maxScans && len(rows) == 0; n++ {
		rows, l.next, err = l.read(history.Page{From: w.at.From, Limit: wire.PageLimit})
		if err != nil {
			return nil, err
		}
		kept := rows[:0]
		for i := range rows {
			if l.items(&rows[i]) > 0 {
				kept = append(kept, rows[i])
			}
		}
		rows = kept
		if w.at.From = l.next; l.next == 0 {
			break
		}
	}
	return rows, nil
}

// seek finds the ordinal of an offset: it passes over so many items.
func (l *list[R]) seek() error {
	w := l.query
	if w.at.From != 0 {
		return nil
	}
	for left := w.at.Offset; left > 0 && !w.none; l.passed++ {
		if l.passed == maxPassed {
			return errFar
		}
		most := history.Page{From: w.at.From, Limit: int(min(left, passedAtOnce))}
		rows, next, err := l.read(most)
		if err != nil {
			return err
		}
		for i := range rows {
			n := uint64(l.items(&rows[i]))
			if n <= left {
				left -= n
				continue
			}
			// The page begins within this row.
			l.within = int(left)
			if i == 0 {
				return nil
			}
			_, w.at.From, err = l.read(history.Page{From: w.at.From, Limit: i})
			return err
		}
		w.at.From, w.none = next, next == 0
	}
	return nil
}

// end ends the page of count items. Offsets alone go on for clients that know no other cursors, as
// long as seek reaches them: an empty page in the middle of a list would go on at itself.
func (l *list[R]) end(b []byte, end string, count int, d wire.Dialect) []byte {
	exact := d.Exact() || count == 0 || l.begun.From != 0 || l.passed > maxPassed/2
	next := l.begun.Next(l.next, count, exact)
	return wire.EndPage(b, next, end, wire.PageSize{Limit: wire.PageLimit, Count: count})
}
