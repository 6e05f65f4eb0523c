package view

import (
	"errors"
	"sync"
	"testing"
	"time"

	"clobd/engine"
)

// pushed pushes n frames of one Command each, first the one at Sequence from.
func pushed(f *Feed, from, n int) {
	for i := range n {
		f.push(&engine.Frame{
			First:    engine.Sequence(from + i),
			Time:     engine.Time(from + i),
			Commands: make([]engine.Command, 1),
			Bytes:    []byte{byte(from + i)},
		})
	}
}

func mustNext(t *testing.T, s *Subscription, first engine.Sequence, lost uint64) {
	t.Helper()
	p, err := s.Next()
	if err != nil || p.First != first || p.Last != first || p.Lost != lost ||
		p.Time != engine.Time(first) || p.Bytes[0] != byte(first) {
		t.Fatalf("%+v, %v, want frame %d with %d lost", p, err, first, lost)
	}
}

func TestFeed(t *testing.T) {
	f := newFeed(4)
	pushed(f, 1, 3)
	s := f.Subscribe()
	pushed(f, 4, 4) // exactly what the ring holds
	if len(s.bell) != 1 {
		t.Fatal("a frame before the reader waits does not ring")
	}
	for i := range 4 {
		mustNext(t, s, engine.Sequence(4+i), 0)
	}
	pushed(f, 8, 5) // one too many
	mustNext(t, s, 12, 4)
	pushed(f, 13, 1)
	mustNext(t, s, 13, 0)
	pushed(f, 14, 100)
	mustNext(t, s, 113, 99)
	s.Close()
	s.Close()
	if _, err := s.Next(); !errors.Is(err, ErrClosed) {
		t.Fatalf("Next after Close: %v", err)
	}
	pushed(f, 114, 10)
	if n := len(*f.readers.Load()); n != 0 {
		t.Fatalf("%d readers left", n)
	}
}

// TestFeedWaits wakes a Next that waits, by a frame and by Close.
func TestFeedWaits(t *testing.T) {
	f := newFeed(4)
	s := f.Subscribe()
	got := make(chan engine.Sequence)
	var group sync.WaitGroup
	group.Go(func() {
		defer close(got)
		for {
			p, err := s.Next()
			if err != nil {
				return
			}
			got <- p.Last
		}
	})
	for i := 1; i <= 5; i++ {
		time.Sleep(time.Millisecond)
		pushed(f, i, 1)
		if seq := <-got; seq != engine.Sequence(i) {
			t.Fatalf("got %d, want %d", seq, i)
		}
	}
	time.Sleep(time.Millisecond)
	s.Close()
	if _, open := <-got; open {
		t.Fatal("a frame after Close")
	}
	group.Wait()
}

// TestFeedMany pushes at full speed to readers that come, go and sleep: the writer gets through and
// each of them sees frames in order with every gap counted.
func TestFeedMany(t *testing.T) {
	f := newFeed(8)
	const frames = 5_000
	var group sync.WaitGroup
	for i := range 6 {
		s := f.Subscribe()
		group.Go(func() {
			defer s.Close()
			for at := uint64(0); at < frames; {
				p, err := s.Next()
				if err != nil || uint64(p.First) != at+1+p.Lost {
					t.Errorf("%+v after %d: %v", p, at, err)
					return
				}
				at = uint64(p.First)
				if i%2 == 0 && at%64 == 0 {
					time.Sleep(10 * time.Microsecond)
				}
			}
		})
	}
	for i := range frames {
		if i%100 == 0 {
			f.Subscribe().Close()
		}
		pushed(f, i+1, 1)
	}
	group.Wait()
}
