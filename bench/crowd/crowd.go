package crowd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"clobd/bench/process"
)

// Crowd is the input of the crowd's process: how many subscribe to which stream, and what they
// keep.
type Crowd struct {
	Addr, Path  string
	Wish        []byte // each sends this text and waits for the answer; empty: each does neither
	Subscribers int    // at least 1
	// Burst is how many messages come together, and Bursts is how many bursts each subscriber gets
	// before the crowd stops listening. If Bursts is 0, the crowd listens until its standard input
	// ends, and Burst has no meaning.
	Burst, Bursts int

	Watched int  // subscribers that keep Sights, spread evenly
	Texts   bool // the first subscriber keeps its messages
	Low     bool // the process has a low priority: in production its work is done on other machines
	Pinned  bool // the process's thread stays on the last CPU
}

// Heard is the report of the crowd.
type Heard struct {
	Messages, Bytes, Gaps, Cuts int64
	// Last is the time at which the last subscriber had read a burst, by burst, in ns after 1970.
	// It is 0 for a burst that some subscribers have not read.
	Last []int64
	Seen []Sights // of the subscribers that were watched
	// Whole holds when the last of all subscribers had read each message, if the crowd listens until
	// its standard input ends. Messages that some subscribers have not read are missing.
	Whole Sights
	Texts [][]byte // of the first subscriber, if it keeps them
	Nice  int      // the nice value of the process
}

// Sights holds when a subscriber has read the messages of each market. The keys are the first 8
// bytes of the markets' conditions.
type Sights map[uint64][]Sight

// Sight is a message of a market: the Sequence that the message shows, and when it was read, in ns
// after 1970.
type Sight struct {
	Sequence uint64
	At       int64
}

// Of returns when a message that shows a Sequence of a market, or a later one, was read. some is
// false if none was.
func (s Sights) Of(market, seq uint64) (at time.Time, some bool) {
	of := s[market]
	i, _ := slices.BinarySearchFunc(of, seq, func(s Sight, seq uint64) int {
		if s.Sequence < seq {
			return -1
		}
		return 1
	})
	if i == len(of) {
		return time.Time{}, false
	}
	return time.Unix(0, of[i].At), true
}

// Hall is a handle on the crowd's process, for the process that started the crowd.
type Hall struct{ partner *process.Partner }

// Gather starts the crowd's process, which runs the program self. It returns when all subscribers
// have their first answer.
func (c *Crowd) Gather(ctx context.Context, self string) (*Hall, error) {
	p, err := process.Start(ctx, self, "crowd")
	if err != nil {
		return nil, err
	}
	if c.Low {
		err = p.Lower()
	}
	var begun string
	if err == nil {
		err = p.Ask(c, &begun)
	}
	if err != nil {
		return nil, fmt.Errorf("gather the subscribers: %w\n%s", err, p.End())
	}
	return &Hall{p}, nil
}

// Hear returns the crowd's report when all subscribers have all bursts, or when patience is over.
// If all bursts came, the subscribers stay connected until End.
func (h *Hall) Hear(patience time.Duration) (*Heard, error) {
	enough := time.AfterFunc(patience, func() { _ = h.partner.In.Close() })
	defer enough.Stop()
	var heard Heard
	if err := h.partner.Hear(&heard); err != nil {
		return nil, fmt.Errorf("hear of the subscribers: %w\n%s", err, h.partner.End())
	}
	return &heard, nil
}

// End ends the crowd's process, and returns what the process has written to standard error.
func (h *Hall) End() string { return h.partner.End() }
