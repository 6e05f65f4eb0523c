package stream

import (
	"strconv"

	"clobd/api/wire/live"
)

// sheaf is a queue. Subscribers who get the same bulletins share it: a queue of each subscriber's
// own would be one more thing that no cache has when its turn comes. A sheaf is not changed; what
// comes behind it makes another one.
//
//	market 1's sheaf ──► sheaf ──┬─ market 2's sheaf ──► sheaf   of all who watch both
//	                             └─ market 3's sheaf ──► sheaf
type sheaf struct {
	bulletins []*bulletin
	bytes     int  // of their bodies
	mixed     bool // some are no messages with a body and a tail

	// What has come behind it, and the sheaf that both have become: whoever gets the same shares it.
	next, longer *sheaf
}

// sheafOf returns the sheaf of some bulletins.
func sheafOf(some ...*bulletin) *sheaf {
	l := &sheaf{bulletins: some}
	for _, b := range some {
		l.bytes += len(b.body)
		l.mixed = l.mixed || b.kind == bare || b.books != nil || b.collapse != nil
	}
	return l
}

// join returns the sheaf of q, which may be nil, and what comes behind it.
func (q *sheaf) join(l *sheaf) *sheaf {
	if q == nil {
		return l
	}
	if q.next == l {
		return q.longer
	}
	had := q.bulletins
	if q.next != nil { // another sheaf has what is behind them in the array
		had = had[:len(had):len(had)]
	}
	q.next = l
	q.longer = &sheaf{bulletins: append(had, l.bulletins...), bytes: q.bytes + l.bytes,
		mixed: q.mixed || l.mixed}
	return q.longer
}

// cut returns the sheaf without its first n bulletins; nil if there are no others.
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

// form is a sheaf as frames, for subscribers whose names and numbers have as many digits: for each
// of them only these are written into it. Nearly all bytes of a burst stay where they are.
type form struct {
	of     *sheaf
	ms     int64
	name   int // length of the name
	digits int // of the numbers of all messages
	text   []byte
	tails  []int // where the name stands in text, by message
}

// forms are those that were used last.
type forms [32]form

// mostFormed is how many bytes of bodies a form has at most.
const mostFormed = burst

// fill returns the frames of a subscriber's whole queue. They are valid until the next call. It
// returns nil if there is no form for them.
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

// together reports whether n numbers, of which the first one is given, have as many digits.
func together(number []byte, n int) bool {
	left := 0 // numbers behind the first one that have as many digits, or enough of them
	for _, c := range number {
		if left = left*10 + int('9'-c); left >= n {
			return true
		}
	}
	return left+1 >= n
}

// count adds 1 to a number that has a digit other than 9.
func count(number []byte) {
	for i := len(number) - 1; i >= 0; i-- {
		if number[i] != '9' {
			number[i]++
			return
		}
		number[i] = '0'
	}
}

// make renders the queue of a subscriber.
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

// forget lets go of all sheaves. The room of the forms stays.
func (f *forms) forget() {
	for i := range f {
		f[i].of = nil
	}
}
