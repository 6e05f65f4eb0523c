package limits

import (
	"slices"
	"time"
)

// Window is one row of the table of limits: at most Limit requests in any Period.
type Window struct {
	Limit  uint32
	Period time.Duration
}

// slots is how many parts a period has. A request counts until the part that it came in lies a
// whole period back, so no period ever holds more than the limit. A caller who sends all the time
// gets slots/(slots+1) of the limit: 1.5 % fewer.
const slots = 64

// counter is an exact sliding window. It keeps the slots in which its caller sent something, the
// oldest first: a caller who sends little takes little memory, nobody more than slots+1 entries.
type counter struct {
	row    uint8 // of the table
	sum    uint32
	period time.Duration // of the window that it was counted in
	sent   []sent
}

// sent is how many requests came in one slot.
type sent struct {
	slot uint32 // number of the slot since the epoch, modulo 1<<32
	n    uint32
}

// slot returns the number of the slot that holds t, in nanoseconds since the epoch.
func (w Window) slot(t int64) uint32 { return uint32(t / (int64(w.Period) / slots)) }

// forget drops the slots that no period that ends at t can reach.
func (c *counter) forget(w Window, t int64) {
	now, old := w.slot(t), 0
	for old < len(c.sent) && now-c.sent[old].slot > slots {
		c.sum -= c.sent[old].n
		old++
	}
	if old > 0 {
		c.sent = slices.Delete(c.sent, 0, old)
	}
}

// wait returns how long until n more requests fit: 0 if they fit now. n is at most the limit.
func (c *counter) wait(w Window, t int64, n uint32) time.Duration {
	c.forget(w, t)
	if c.sum+n <= w.Limit {
		return 0
	}
	width := int64(w.Period) / slots
	excess := c.sum + n - w.Limit
	for _, s := range c.sent {
		if s.n >= excess {
			age := int64(w.slot(t) - s.slot) // in slots, at most slots
			return time.Duration((slots+1-age)*width - t%width)
		}
		excess -= s.n
	}
	return w.Period
}

// count counts n requests that wait let in at t.
func (c *counter) count(w Window, t int64, n uint32) {
	now := w.slot(t)
	if last := len(c.sent) - 1; last >= 0 && c.sent[last].slot == now {
		c.sent[last].n += n
	} else {
		c.sent = append(c.sent, sent{now, n})
	}
	c.sum += n
}

// refund takes back n requests that count counted at t.
func (c *counter) refund(w Window, t int64, n uint32) {
	slot := w.slot(t)
	for i := len(c.sent) - 1; i >= 0; i-- {
		if c.sent[i].slot == slot {
			c.sent[i].n -= n
			c.sum -= n
			return
		}
	}
}

// more returns how long until the first of the counted requests counts no longer, 0 if none does.
func (c *counter) more(w Window, t int64) time.Duration {
	if len(c.sent) == 0 {
		return 0
	}
	width := int64(w.Period) / slots
	return time.Duration((slots+1-int64(w.slot(t)-c.sent[0].slot))*width - t%width)
}
