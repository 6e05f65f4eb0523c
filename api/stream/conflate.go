package stream

import (
	"cmp"
	"slices"
	"strconv"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/engine"
)

// backlog holds what waits for a subscriber who conflates and lags: one collapse for each market,
// in place of the market's changes of levels and best prices, and all other messages.
//
//	changes of a market ──► collapse: from the Snapshot that he knows to the newest ──┐
//	trades, new ticks, books, ends, errors ──► kept ───────────────────────────────── ┴──► release
//
// All of it leaves in one WebSocket message. Between two messages, the subscriber could have one
// market at a later Sequence than another one, whose older changes are still to come. If he
// disconnected then and resumed from the highest Sequence that he saw, he would miss those changes.
type backlog struct {
	kept    []*bulletin
	changes map[*watch]*bulletin // each bulletin has a collapse
}

// collapse is a run of successive changes of a market that are sent as one change: its stride leads
// from the Snapshot before the first of them to the Snapshot after the last.
type collapse struct {
	stride
	count uint64 // number of these changes
}

// collapsed is a rendered collapse. All subscribers who have waited for the same stride share it.
type collapsed struct {
	stride
	change *bulletin
	bests  [2]*bulletin
}

// maxArray bounds the array of a backlog, in bytes. Many clients refuse more than 1 MiB.
const maxArray = 768 << 10

// lags reports whether the subscriber has a backlog. It begins a backlog if the subscriber
// conflates and more than half of maxBehind waits for him.
func (s *subscriber) lags() bool {
	if s.conflates && s.later == nil && s.behind > maxBehind/2 {
		s.later = &backlog{}
	}
	return s.later != nil
}

// hold adds the bulletins of a stride to the backlog.
func (s *subscriber) hold(c stride, some []*bulletin, outcomes uint8) {
	if reruled(c.from, c.to) {
		s.later.settle(c.watch)
	}
	changed := slices.ContainsFunc(some, func(b *bulletin) bool { return b.kind == levels })
	for _, b := range some {
		switch {
		case s.cut:
			return
		case b.kind == levels:
			s.later.add(c)
			s.hub.effort.add(unitsOf(c.to), s.hub.o.Now())
		case b.kind == bests && changed: // the collapse includes the best prices
		case s.gets(b, outcomes):
			s.enqueue(b)
		}
	}
}

// add adds a change to the collapse of its market.
func (l *backlog) add(c stride) {
	b := l.changes[c.watch]
	if b == nil {
		if l.changes == nil {
			l.changes = make(map[*watch]*bulletin)
		}
		b = &bulletin{collapse: &collapse{stride: c}}
		l.changes[c.watch] = b
	}
	b.seq, b.collapse.to = c.to.Sequence, c.to
	b.collapse.count++
}

// settle completes the collapse of a market, because new rules or a book precede the next change.
func (l *backlog) settle(w *watch) {
	if b := l.changes[w]; b != nil {
		l.kept = append(l.kept, b)
		delete(l.changes, w)
	}
}

// release returns the backlog as one frame: its only message, or an array of its messages in the
// order of their Sequences. If the array would be too long, fresh books replace all changes.
func (s *subscriber) release(ms int64) []byte {
	l, before := s.later, s.sequence
	if len(l.kept)+len(l.changes) == 0 {
		s.later = nil
		return nil
	}
	for _, c := range l.changes {
		l.kept = append(l.kept, c)
	}
	// A stable sort keeps the trades of a Sequence before the change that they cause.
	slices.SortStableFunc(l.kept, func(a, b *bulletin) int { return cmp.Compare(a.seq, b.seq) })
	s.later, s.behind = &backlog{}, 0
	text := append(s.hub.out.array[:0], '[')
	for _, m := range l.kept {
		if text = s.appendMessage(text, m, ms); len(text) > maxArray {
			s.sequence = before
			s.refresh(l.kept)
			return s.next(ms)
		}
	}
	s.hub.out.array = text[:0]
	n := s.sequence - before
	s.hub.sent += int(n)
	b := s.hub.out.scratch[:0]
	if n == 1 {
		b = live.AppendFrame(b, text[1:])
	} else {
		b = live.AppendFrame(b, text, []byte("]"))
	}
	s.hub.out.scratch = b[:0]
	return b
}

// appendCollapse appends the change of a collapse, and the best prices if the change moves them.
func (s *subscriber) appendCollapse(b []byte, c *collapse, ms int64) []byte {
	r := &c.watch.collapsed
	if r.stride != c.stride {
		r.stride = c.stride
		r.change, _ = s.hub.change(c.watch, c.from, c.to)
		for o := range engine.Outcome(2) {
			r.bests[o] = best(c.from, c.to, o)
		}
	}
	b = append(wire.AppendComma(b), r.change.body...)
	if c.count > 1 {
		b = appendConflated(b, c.count)
		s.hub.figures.conflated.Add(float64(c.count - 1))
	}
	b = append(s.appendTail(b), r.change.end(ms)...)
	for _, m := range r.bests {
		if m != nil && s.gets(m, c.watch.subscribers[s]) {
			b = s.appendMessage(b, m, ms)
		}
	}
	return b
}

// appendConflated appends the member that says how many changes a message replaces.
func appendConflated(b []byte, n uint64) []byte {
	return strconv.AppendUint(append(b, `,"conflated":`...), n, 10)
}

// refresh replaces a backlog that is too long. It queues a resync, then the kept messages, then
// fresh books of all tokens in place of the changes. The resync goes first, so that a subscriber
// who is cut off after it does not resume with old books.
func (s *subscriber) refresh(kept []*bulletin) {
	count := uint64(0)
	body := []byte(`{"event_type":"resync"`)
	for _, m := range kept {
		if m.collapse != nil {
			count += m.collapse.count
		}
	}
	if count > 0 {
		body = appendConflated(body, count)
		s.hub.figures.conflated.Add(float64(count))
	}
	s.later = nil // so that enqueue and show use the queue
	s.enqueue(&bulletin{seq: kept[0].seq, body: body})
	for _, m := range kept {
		if m.collapse == nil && m.books == nil {
			s.enqueue(m)
		}
	}
	var books []shown
	for _, w := range s.hub.watches {
		for o := range engine.Outcome(2) {
			if w.subscribers[s]>>o&1 == 1 {
				books = append(books, shown{w.told, o})
			}
		}
	}
	s.show(books)
	s.later = &backlog{}
}
