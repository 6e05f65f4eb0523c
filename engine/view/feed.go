package view

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"clobd/engine"
)

// feedFrames is how many frames a Subscription may lag. Most frames have at most 64 KiB, so the
// Feed keeps about 16 MiB alive. A frame whose last Command fills thousands of orders may be
// longer.
const feedFrames = 256

// ErrClosed is the error of Next after Close.
var ErrClosed = errors.New("subscription closed")

// Feed broadcasts published frames to Subscriptions. The writer never waits for them: it overwrites
// the oldest frame, and a Subscription that lagged is told how many frames it missed.
type Feed struct {
	ring []atomic.Pointer[Published] // entry n is in ring[n % len(ring)]
	next atomic.Uint64               // number of the next entry; only the writer changes it

	mutex   sync.Mutex // orders Subscribe and Close; the writer and Next never take it
	readers atomic.Pointer[[]*Subscription]
}

// Published is one frame as Next returns it.
type Published struct {
	First engine.Sequence
	Last  engine.Sequence
	Time  engine.Time
	Bytes []byte // the encoded frame, shared by all Subscriptions: do not change it
	// Lost is how many frames the Subscription missed before this one. If it is not 0, start again
	// from the Snapshots: they include this frame and all before it.
	Lost uint64

	entry uint64
}

// Subscription is one reader's position in the Feed. One goroutine calls Next; any may call Close.
type Subscription struct {
	feed *Feed
	at   uint64 // the entry that Next returns next
	bell chan struct{}
	done chan struct{}
}

func newFeed(frames int) *Feed {
	f := &Feed{ring: make([]atomic.Pointer[Published], frames)}
	f.readers.Store(&[]*Subscription{})
	return f
}

// push broadcasts a frame that is already visible in the Snapshots. It costs one allocation, and
// some nanoseconds for each Subscription.
func (f *Feed) push(frame *engine.Frame) {
	n := f.next.Load()
	f.ring[n%uint64(len(f.ring))].Store(&Published{
		First: frame.First, Last: frame.Last(), Time: frame.Time, Bytes: frame.Bytes, entry: n,
	})
	f.next.Store(n + 1)
	for _, s := range *f.readers.Load() {
		select {
		case s.bell <- struct{}{}:
		default: // the bell holds a token already
		}
	}
}

// Subscribe starts with the next frame that is published.
func (f *Feed) Subscribe() *Subscription {
	s := &Subscription{feed: f, bell: make(chan struct{}, 1), done: make(chan struct{})}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	readers := append(slices.Clone(*f.readers.Load()), s)
	f.readers.Store(&readers)
	s.at = f.next.Load()
	return s
}

// Next waits for the next frame. After Close it returns ErrClosed.
func (s *Subscription) Next() (Published, error) {
	lost := uint64(0)
	for {
		select {
		case <-s.done:
			return Published{}, ErrClosed
		default:
		}
		p := s.feed.ring[s.at%uint64(len(s.feed.ring))].Load()
		switch {
		case p != nil && p.entry == s.at:
			s.at++
			out := *p
			out.Lost = lost
			return out, nil
		case p != nil && p.entry > s.at:
			newest := s.feed.next.Load() - 1
			lost, s.at = lost+newest-s.at, newest
		default:
			select {
			case <-s.bell:
			case <-s.done:
			}
		}
	}
}

// Close ends the Subscription: a Next that waits returns. Closing twice does nothing.
func (s *Subscription) Close() {
	f := s.feed
	f.mutex.Lock()
	defer f.mutex.Unlock()
	readers := slices.Clone(*f.readers.Load())
	i := slices.Index(readers, s)
	if i < 0 {
		return
	}
	readers = slices.Delete(readers, i, i+1)
	f.readers.Store(&readers)
	close(s.done)
}
