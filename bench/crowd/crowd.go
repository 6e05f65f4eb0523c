package crowd

import (
	"context"
	"fmt"
	"time"

	"clobd/bench/process"
)

// Crowd says who subscribes to what, and what they keep: the input of the crowd's process.
type Crowd struct {
	Addr, Path  string
	Wish        []byte // that each sends, and whose answer each waits for; empty: nothing
	Subscribers int    // at least 1
	// Burst is how many messages come together, Bursts how many bursts come to each subscriber; then
	// all is there. No bursts: nobody knows how many messages will come, and Burst means nothing.
	Burst, Bursts int

	Watched int  // subscribers that keep Sights, spread evenly
	Texts   bool // the first subscriber keeps its messages
	Low     bool // the process has a low priority: in production its work is done on other machines
	Pinned  bool // the process's thread stays on the last CPU
}

// Heard is what the crowd has heard.
type Heard struct {
	Messages, Bytes, Gaps, Cuts int64
	// Last is by burst when the last subscriber had it, in ns after 1970; 0: never.
	Last  []int64
	Seen  []Sights // of those that were watched
	Texts [][]byte // of the first subscriber, if it keeps them
	Nice  int      // the priority that the process had
}

// Sights are the messages of each market that a subscriber has read. A market is known by the
// first 8 bytes of its condition.
type Sights map[uint64][]Sight

// Sight is a message of a market: the Sequence that the message shows, and when it was read, in ns
// after 1970.
type Sight struct {
	Sequence uint64
	At       int64
}

// Hall is the crowd's process, in the process that started it.
type Hall struct{ partner *process.Partner }

// Gather starts a process of the program self that subscribes, and returns when all subscribers
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

// Hear returns what the crowd has heard once all bursts are there, or when patience is over. The
// subscribers stay until End if all bursts came.
func (h *Hall) Hear(patience time.Duration) (*Heard, error) {
	enough := time.AfterFunc(patience, func() { _ = h.partner.In.Close() })
	defer enough.Stop()
	var heard Heard
	if err := h.partner.Hear(&heard); err != nil {
		return nil, fmt.Errorf("hear of the subscribers: %w\n%s", err, h.partner.End())
	}
	return &heard, nil
}

// End makes sure that the crowd is gone, and returns what its process has complained of.
func (h *Hall) End() string { return h.partner.End() }
