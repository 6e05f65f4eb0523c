package main

import (
	"errors"
	"time"

	"clobd/api"
	"clobd/api/stream"
	"clobd/engine"
	"clobd/journal"
)

// streams are the node's sockets for market data.
type streams struct {
	hub   *stream.Hub
	tail  *journal.Tail
	ended chan struct{}
}

// beginStreams tells subscribers what is journaled from now on. fail gets the error that ends them.
func (n *node) beginStreams() {
	j := n.role.Journal
	s := &streams{tail: j.Tail(j.Last() + 1), ended: make(chan struct{})}
	s.hub = stream.New(stream.Options{Board: n.role.Board, Next: s.tail.Next, Book: api.Book,
		JournalID: j.ID, Now: time.Now})
	n.metrics.MustRegister(s.hub.Collectors()...)
	n.streams = s
	go func() {
		defer close(s.ended)
		if err := s.hub.Run(); !errors.Is(err, journal.ErrClosed) {
			n.fail("streams", err)
		}
	}()
}

// farewell is how long a stop waits until what is journaled is on its way to subscribers.
const farewell = time.Second

// close tells subscribers the rest, up to a Sequence, and closes their sockets.
func (s *streams) close(last engine.Sequence) {
	s.hub.Reach(last, farewell)
	s.tail.Close()
	<-s.ended
}
