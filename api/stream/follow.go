package stream

import (
	"fmt"
	"time"

	"clobd/engine"
	"clobd/engine/view"
)

// effort estimates how much work the Hub does for subscribers. The work is light or heavy. A unit
// is a write to a socket: about 7 µs.
type effort struct {
	heavy bool
	owed  float64   // units that were added, less the units that lightPace has allowed since
	at    time.Time // of the last call of add
}

const (
	changeUnits = 4      // to render a change, with the hashes of two short books
	unitLevels  = 64     // levels that take one unit more
	lightPace   = 20_000 // units a second that are light work: a seventh of a CPU
	lightBurst  = 200    // units at once that are light work: 1.4 ms
)

// add adds work that is about to be done. When more than lightBurst is owed, owed rises to a second
// of lightPace, the most that can be owed, and the work is heavy until nothing is owed.
func (e *effort) add(units int, now time.Time) {
	e.owed = max(e.owed-now.Sub(e.at).Seconds()*lightPace, 0)
	if e.at = now; e.owed == 0 {
		e.heavy = false
	}
	if e.owed += float64(units); e.owed > lightBurst && !e.heavy {
		e.heavy, e.owed = true, lightPace
	}
	e.owed = min(e.owed, lightPace)
}

// follow reads frames and tells what they change. While that is light work, an ordinary goroutine
// does it: subscribers hear of a change about 100 µs earlier, and orders wait for a few writes at
// most. A thread of low priority takes over before heavy work, until the work is light again.
func (h *Hub) follow() (err error) {
	for err == nil {
		if err = h.followWhile(false); err != nil {
			break
		}
		ended := make(chan error)
		go func() {
			giveWay()
			ended <- h.followWhile(true)
		}()
		err = <-ended
	}
	return err
}

// followWhile tells what was read, and then reads and tells frames while the work is heavy, or is
// light, as the argument says. After it has read another frame it returns; the next call tells it.
func (h *Hub) followWhile(heavy bool) error {
	var f engine.Frame
	most := lightBurst
	if heavy {
		most = everybody
	}
	for {
		if h.turn(most) {
			h.rouse()
		}
		b, err := h.o.Next()
		if err != nil {
			return err
		}
		if !h.survives("the frames of streams", func() {
			if err = engine.DecodeUnhashed(b, &f); err == nil {
				h.heap.add(&f)
			}
		}) {
			h.beginAnew()
		}
		if err != nil {
			return fmt.Errorf("read frame for streams: %w", err)
		}
		if h.effort.weigh(h) != heavy {
			return nil
		}
	}
}

// weigh adds the work of telling what a Hub has read, and reports whether the work is heavy.
func (e *effort) weigh(h *Hub) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	units := 0
	for _, s := range h.out.due {
		units += 1 + s.behind/burst
	}
	h.heap.each(func(no engine.MarketNo) {
		if w := h.watches[no]; w != nil {
			units += unitsOf(w.told) + len(w.subscribers)
		}
	})
	e.add(units, h.o.Now())
	return e.heavy
}

// unitsOf returns the work of rendering a change that leads to a Snapshot, in units.
func unitsOf(s *view.Snapshot) int {
	return changeUnits + (s.Depth(0, engine.Buy)+s.Depth(0, engine.Sell))/unitLevels
}
