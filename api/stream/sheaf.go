package stream

import (
	"strconv"

	"clobd/api/wire/live"
)

// sheaf is an immutable queue of bulletins; adding bulletins makes a new sheaf. Subscribers who get
// the same bulletins share a sheaf: a queue for each subscriber would cost a cache miss for each.
//
//	market 1's sheaf ──► sheaf ──┬─ market 2's sheaf ──► sheaf   of all who watch both
//	                             └─ market 3's sheaf ──► sheaf
type sheaf struct {
	bulletins []*bulletin
	bytes     int  // total length of the bodies
	mixed     bool // at least one bulletin is bare, books or a collapse

	// next is the sheaf that was last joined to this sheaf, and longer is the result. If another
	// subscriber with this sheaf gets next, join returns longer again.
	next, longer *sheaf
}

// sheafOf returns a new sheaf of the given bulletins.
func sheafOf(some ...*bulletin) *sheaf {
	l := &sheaf{bulletins: some}
	for _, b := range some {
		l.bytes += len(b.body)
		l.mixed = l.mixed || b.kind == bare || b.books != nil || b.collapse != nil
	}
	return l
}

// join returns the sheaf of all bulletins of q, which may be nil, and then those of l.
func (q *sheaf) join(l *sheaf) *sheaf {
	if q == nil {
		return l
	}
	if q.next == l {
		return q.longer
	}
	had := q.bulletins
	if q.next != nil { // another sheaf may use the array behind these bulletins
		had = had[:len(had):len(had)]
	}
	q.next = l
	q.longer = &sheaf{bulletins: append(had, l.bulletins...), bytes: q.bytes + l.bytes,
		mixed: q.mixed || l.mixed}
	return q.longer
}

// cut returns the sheaf without its first n bulletins, or nil if no bulletin is left.
func (q *sheaf) cut(n int) *sheaf {
	if n == len(q.bulletins) {
		return nil
	}
	rest := &sheaf{bulletins: q.bulletins[n:len(q.bulletins):len(q.bulletins)], bytes: q.bytes,
		mixed: q.mixed}
	for _, b := range q.bulletins[:n] {
		rest.bytes -= len(b.body)
	}
	return rest
}

// form is a sheaf rendered as frames, for all subscribers whose ids are equally long and whose
// message numbers have equally many digits. For each subscriber, fill overwrites only the id and
// the numbers, and reuses all other bytes.
type form struct {
	of     *sheaf
	ms     int64
	name   int // length of the subscriber's id
	digits int // of the number of each message
	text   []byte
	tails  []int // offset of the id in text, for each message
}

// forms are the forms that were used last.
type forms [32]form

// mostFormed bounds the total length of the bodies in a form, in bytes.
const mostFormed = burst

// fill returns the frames of a subscriber's whole queue, or nil if the queue does not fit a form.
// The frames are valid until the next call.
func (f *forms) fill(s *subscriber, ms int64) []byte {
	q := s.queue
	var room [20]byte
	number := strconv.AppendUint(room[:0], s.sequence+1, 10)
	if q.mixed || q.bytes > mostFormed || !together(number, len(q.bulletins)) {
		return nil
	}
	p := &f[(len(s.id)+5*len(number))%len(f)]
	if p.of != q || p.ms != ms || p.name != len(s.id) || p.digits != len(number) {
		p.make(s, ms, len(number))
		return p.text
	}
	for _, at := range p.tails {
		at += copy(p.text[at:], s.id) + len(sequenceKey)
		copy(p.text[at:], number)
		count(number)
	}
	s.sequence += uint64(len(p.tails))
	return p.text
}

// together reports whether n successive numbers, given the first, have equally many digits.
func together(number []byte, n int) bool {
	left := 0 // how many larger numbers have as many digits; the loop stops at n
	for _, c := range number {
		if left = left*10 + int('9'-c); left >= n {
			return true
		}
	}
	return left+1 >= n
}

// count adds 1 to a decimal number, of which at least one digit is not 9.
func count(number []byte) {
	for i := len(number) - 1; i >= 0; i-- {
		if number[i] != '9' {
			number[i]++
			return
		}
		number[i] = '0'
	}
}

// make renders the queue of a subscriber as the new content of the form.
func (f *form) make(s *subscriber, ms int64, digits int) {
	f.of, f.text, f.tails = nil, f.text[:0], f.tails[:0]
	var room [128]byte
	for _, m := range s.queue.bulletins {
		end := m.end(ms)
		tail := s.appendTail(room[:0])
		f.text = live.AppendFrame(f.text, m.body, tail, end)
		f.tails = append(f.tails, len(f.text)-len(end)-len(tail)+len(nameKey))
	}
	f.of, f.ms, f.name, f.digits = s.queue, ms, len(s.id), digits
}

// forget drops all sheaves, so that they can be collected, and keeps the buffers.
func (f *forms) forget() {
	for i := range f {
		f[i].of = nil
	}
}
