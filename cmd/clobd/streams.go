package main

import (
	"errors"
	"sync"
	"time"

	"clobd/api"
	"clobd/api/stream"
	"clobd/engine"
	"clobd/journal"
)

// streams are the node's sockets for market data.
type streams struct {
	hub   *stream.Hub
	tails [2]*journal.Tail // of markets, and of owners
	stops chan struct{}    // closed when the node stops
	ended chan struct{}    // closed when both have been told
}

// beginStreams tells subscribers what is journaled from now on. fail gets the error that ends them.
func (n *node) beginStreams(answers *api.Handler) {
	j, history := n.role.Journal, n.index.History
	from := j.Last() + 1
	s := &streams{tails: [2]*journal.Tail{j.Tail(from), j.Tail(from)}, stops: make(chan struct{}),
		ended: make(chan struct{})}
	s.tails[0].Hurry() // books are read more eagerly than anything else that waits for a frame
	owners := stream.OwnerOptions{Next: s.tails[1].Next, Frame: from,
		FrameOf: func(seq engine.Sequence) (uint64, error) { return journal.FrameOf(j, seq) },
		Frames:  func(from uint64) func() ([]byte, bool, error) { return j.Tail(from).Poll },
		Touched: history.Touched, Tell: answers.Tell,
		Indexed: func(seq engine.Sequence) bool { return history.Await(seq, indexPause) },
		Failed: func(err error) {
			if !errors.Is(err, journal.ErrClosed) {
				n.log.Error("a stream of a user ends", "error", err)
			}
		}}
	s.hub = stream.New(stream.Options{Board: n.role.Board, Next: s.tails[0].Next, Stopping: s.stops,
		Book: api.Book, Hash: new(api.Hasher).Hash, JournalID: j.ID, Now: time.Now, Owners: &owners,
		Announce: answers.Announce, Panicked: n.door.Panicked, Single: n.IOUring == "off",
		ID: func(c engine.Condition) string {
			if m := n.describe.Current().Market(c); m != nil {
				return m.ID
			}
			return ""
		},
		Label: func(c engine.Condition, o engine.Outcome) string {
			return n.describe.Current().Label(c, o)
		}})
	n.metrics.MustRegister(s.hub.Collectors()...)
	n.streams = s
	var group sync.WaitGroup
	for _, run := range []func() error{s.hub.Run, s.hub.RunOwners} {
		group.Go(func() {
			if err := run(); !errors.Is(err, journal.ErrClosed) {
				n.fail("streams", err)
			}
		})
	}
	go func() { group.Wait(); close(s.ended) }()
}

// indexPause is how long a stream waits for the index before it looks whether the node stops.
const indexPause = 250 * time.Millisecond

// farewell is how long a stop waits until what is journaled is on its way to subscribers.
const farewell = time.Second

// close tells subscribers the rest that is visible, up to a Sequence, and closes their sockets.
func (s *streams) close(last engine.Sequence) {
	close(s.stops)
	s.hub.Reach(last, farewell)
	for _, t := range s.tails {
		t.Close()
	}
	<-s.ended
}
