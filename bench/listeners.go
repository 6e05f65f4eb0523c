package bench

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"clobd/bench/crowd"
	"clobd/bench/lean"
	"clobd/bench/trader"
	"clobd/engine"
)

// Delivery is what subscribers to the book's stream were told during a run. They are a process of
// their own.
type Delivery struct {
	Subscribers int     `json:"subscribers"`
	Messages    float64 `json:"messages_per_second"` // of all subscribers together
	Bytes       float64 `json:"bytes_per_second"`
	// DueMicros is from the instant at which an order was due until a subscriber had read a message
	// that shows it; null in a closed loop. LastMicros is the same of the last of all subscribers.
	// AnsweredMicros is from the answer to the order; below 0 counts as 0. The first and the third are
	// of the subscribers that were watched, at most 64.
	DueMicros      *Latency `json:"delivered_micros,omitempty"`
	LastMicros     *Latency `json:"delivered_to_last_micros,omitempty"`
	AnsweredMicros Latency  `json:"from_answer_micros"`
	Gaps           int64    `json:"gaps"`
	Cuts           int64    `json:"cuts"` // sockets that ended before the run did
	Nice           int      `json:"nice"`
}

// listeners are the subscribers of a run, and when each of its orders was due and answered.
type listeners struct {
	hall   *crowd.Hall
	size   int
	market uint64 // the first digits of the condition
	orders []due
}

// listening is the workload that has an audience.
const listening = "streams"

// gather lets so many subscribe to a market's books; the volley tells the audience of each answer.
func (t *trial) gather(ctx context.Context, c *trader.Client, market [2]engine.Token, v *volley) (
	*listeners, error) {
	condition, err := conditionOf(c, market)
	if err != nil {
		return nil, err
	}
	first, err := hex.DecodeString(strings.TrimPrefix(condition, "0x"))
	if err != nil || len(first) < 8 {
		return nil, fmt.Errorf("condition %q: want 0x and 64 hex digits", condition)
	}
	a := &listeners{size: t.Subscribers, market: binary.BigEndian.Uint64(first),
		orders: make([]due, 0, len(v.Requests))}
	wish := fmt.Sprintf(`{"type":"market","assets_ids":["%s"]}`, market[0])
	who := crowd.Crowd{Addr: c.Host.Addr, Path: "/ws/market", Wish: []byte(wish), Subscribers: t.Subscribers,
		Watched: watched, Low: t.Subscribers > watched}
	if a.hall, err = who.Gather(ctx, t.Self); err != nil {
		return nil, err
	}
	v.Seen = func(s lean.Seen) {
		if v.Routes[v.Requests[s.Request].Route].Want == lean.WantOrders {
			a.orders = append(a.orders, due{at: s.Due, answered: s.At, sequence: sequenceIn(s.Head)})
		}
	}
	return a, nil
}

// hear lets the last messages arrive and puts into the report what the audience was told.
func (a *listeners) hear(r *Report) error {
	h, err := a.hall.Hear(500 * time.Millisecond)
	if err != nil {
		return err
	}
	delivered, last, answered := NewRecorder(), NewRecorder(), NewRecorder()
	lost := 0
	for i := range a.orders {
		d := &a.orders[i]
		if d.sequence == 0 {
			continue
		}
		for _, seen := range h.Seen {
			if read, some := seen.Of(a.market, d.sequence); some {
				answered.Record(max(read.Sub(d.answered.Round(0)), 0))
				if r.AskedRate > 0 {
					delivered.Record(read.Sub(d.at.Round(0)))
				}
			}
		}
		read, all := h.Whole.Of(a.market, d.sequence)
		switch {
		case !all: // each order of this workload changes the book
			lost++
		case r.AskedRate > 0:
			last.Record(read.Sub(d.at.Round(0)))
		}
	}
	out := &Delivery{Subscribers: a.size, Messages: float64(h.Messages) / r.Seconds,
		Bytes: float64(h.Bytes) / r.Seconds, AnsweredMicros: answered.Latency(), Gaps: h.Gaps,
		Cuts: h.Cuts, Nice: h.Nice}
	if r.AskedRate > 0 {
		out.DueMicros, out.LastMicros = new(delivered.Latency()), new(last.Latency())
	}
	r.Delivery = out
	if h.Gaps > 0 || h.Cuts > 0 || h.Messages == 0 {
		r.Failure = fmt.Sprintf("of %d subscribers' messages (%d) %d are missing, and %d sockets were cut",
			a.size, h.Messages, h.Gaps, h.Cuts)
	} else if lost > 0 && r.Failure == "" {
		r.Failure = fmt.Sprintf("of %d acknowledged orders %d were not shown to all subscribers",
			len(a.orders), lost)
	}
	return nil
}

// String is the delivery in one line.
func (d *Delivery) String() string {
	text := fmt.Sprintf("%d subscribers (nice %d): %.0f messages/s, %.1f MB/s, gaps %d, cuts %d; from the "+
		"answer µs %s", d.Subscribers, d.Nice, d.Messages, d.Bytes/1e6, d.Gaps, d.Cuts, &d.AnsweredMicros)
	if d.DueMicros != nil {
		text += fmt.Sprintf("; from the due instant %s; to the last %s", d.DueMicros, d.LastMicros)
	}
	return text
}
