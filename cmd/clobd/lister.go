package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"clobd/api/catalog"
	"clobd/cmd/clobd/role"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/journal/disk"
)

// lister enters the markets that the catalog opens and closes.
type lister struct {
	role   *role.Role
	poison *poisonFolder
	space  *disk.Space
	log    *slog.Logger
}

// list enters Listings in their order, many at a time so that they share syncs, and waits until all
// are durable. It leaves out a Listing that would change nothing. The error names each Listing that
// the engine refused or that once stopped it, and is errFull on a full disk.
func (l *lister) list(listings []engine.Listing) error {
	type entered struct {
		condition engine.Condition
		call      *sequencer.Call
	}
	refused := map[engine.Condition]string{}
	var room error
	const atOnce = 1024                       // well below the ring's slots, so that it never fills
	for l.role.Leads() && len(listings) > 0 { // a leader that begins lists everything
		part := listings[:min(atOnce, len(listings))]
		listings = listings[len(part):]
		var calls []entered
		for i := range part {
			c := engine.Command{Kind: engine.List, Listing: &part[i]}
			if l.listed(&part[i]) {
				continue
			}
			if l.poison.holds(&c) {
				refused[part[i].Condition] = "the listing once stopped the node: see " + l.poison.dir
				continue
			}
			if l.full() {
				room = errFull // after those that are entered
				break
			}
			call, err := l.role.Enter(&c)
			if err != nil {
				return fmt.Errorf("list %s: %w", part[i].Condition.Hex(), err)
			}
			calls = append(calls, entered{part[i].Condition, call})
		}
		for _, e := range calls {
			receipt, err := e.call.Wait()
			if err != nil {
				return fmt.Errorf("list %s: %w", e.condition.Hex(), err)
			}
			if receipt.Reject != engine.Accepted {
				refused[e.condition] = receipt.Text()
			}
		}
		if room != nil {
			return room
		}
	}
	if len(refused) > 0 {
		return &catalog.RefusedError{Why: refused}
	}
	return nil
}

func (l *lister) listed(asked *engine.Listing) bool {
	m := l.role.Board.Directory.Condition(asked.Condition)
	if m == nil {
		return false
	}
	same := m.Listing
	same.Open = asked.Open
	return same == *asked && (m.State == engine.Open || !asked.Open)
}

// closeMarkets closes markets that the source has closed: at each start, whatever the operator did.
func (l *lister) closeMarkets(conditions []engine.Condition) error {
	for _, condition := range conditions {
		m := l.role.Board.Directory.Condition(condition)
		if !l.role.Leads() || m == nil || m.State == engine.Closed || m.State == engine.Settled {
			continue
		}
		receipt, err := l.role.Submit(&engine.Command{Kind: engine.SetState, Market: m.No,
			State: engine.Closed})
		if err != nil {
			return fmt.Errorf("close %s: %w", condition.Hex(), err)
		}
		l.log.Info("the catalog's source has closed a market", "market", condition.Hex(),
			"answer", receipt.Text())
	}
	return nil
}

var errFull = errors.New("the disk has too little room")

func (l *lister) full() bool { return l.space.Status().State == disk.Full }

func (l *lister) awaitRoom(ctx context.Context) {
	if !l.full() {
		return
	}
	l.log.Warn("the catalog waits: the disk has too little room", "hint", "make room: it goes on then")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for l.full() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	l.log.Info("the catalog goes on: the disk has room")
}
