package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"clobd/bench/crowd"
	"clobd/bench/lean"
	"clobd/bench/workload"
)

// Streams says how the delivery of changes to subscribers is measured: orders are due at a constant
// rate, and each is delivered once a subscriber of its market has read a message that shows it.
type Streams struct {
	Setting
	Rounds      int
	Duration    time.Duration // of one turn
	Rate        float64       // orders per second
	Burst       int           // orders that are due together
	Connections int           // that post them
	Subscribers int
	Markets     int // that the orders are for; each subscriber names a token of each
}

// validate returns all problems at once, or nil.
func (s *Streams) validate() error {
	all := Problems{Of: "streams"}
	bad := all.Add
	all.Rounds(s.Rounds, s.Duration)
	all.rate("the rate of orders", s.Rate)
	bad(s.Burst < 1, "the burst is below 1 order")
	bad(float64(s.Burst) > s.Rate*s.Duration.Seconds(), "the burst is above all orders of a turn")
	all.lanes("connections", s.Connections)
	all.lanes("subscribers", s.Subscribers)
	bad(s.Markets < 1 || s.Markets >= contestMarkets, "the markets are not in [1, 15]")
	return all.Err()
}

// Streamed is the result: by round, orders beside nobody and beside the subscribers.
type Streamed struct {
	Conditions  Conditions `json:"conditions"`
	Seed        uint64     `json:"seed"`
	Subscribers int        `json:"subscribers"`
	Markets     int        `json:"markets"`
	Connections int        `json:"connections"`
	Burst       int        `json:"burst"`
	Seconds     float64    `json:"seconds_per_turn"`
	Alone       []Paced    `json:"orders_alone"`
	Beside      []Paced    `json:"orders_beside_subscribers"`
	// Delivered is from the instant at which an order was due until a subscriber has read a message
	// that shows it, Answered from the answer to the order: below 0 counts as 0. Both are of the
	// subscribers that were watched, at most 64.
	Delivered []Latency `json:"delivered_micros"`
	// Last is from the instant at which an order was due until the last of all subscribers has read.
	// Orders that one of them has not seen do not count: a gap or a cut says so.
	Last     []Latency `json:"delivered_to_last_micros"`
	Answered []Latency `json:"from_answer_micros"`
	Messages []float64 `json:"messages_per_second"`
	Bytes    []float64 `json:"bytes_per_second"`
	// CPUMicros is the node's CPU time of the turn with subscribers, less that of the turn without,
	// per message.
	CPUMicros []float64 `json:"cpu_micros_per_message"`
	Nice      int       `json:"subscribers_nice"`
	Gaps      int64     `json:"gaps"`
	Cuts      int64     `json:"cuts"` // sockets that ended before the turn did
}

// MeasureStreams measures the rounds: alone and beside the subscribers, then the other way round.
func MeasureStreams(ctx context.Context, s Streams) (*Streamed, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	t, err := s.open(ctx)
	defer t.close()
	if err != nil {
		return nil, err
	}
	out := &Streamed{Seed: s.Seed, Subscribers: s.Subscribers, Markets: s.Markets,
		Connections: s.Connections, Burst: s.Burst, Seconds: s.Duration.Seconds()}
	if _, err := t.watch.Lap(); err != nil {
		return nil, err
	}
	s.Ticker.Plan(2 * s.Rounds)
	for round := range s.Rounds {
		r := &streamRound{Streams: s, t: t, out: out, round: uint64(round)}
		if err := r.run(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, Stopped(ctx)
			}
			return nil, err
		}
	}
	h, err := t.watch.Lap()
	t.conditions.Hiccup.add(h)
	out.Conditions = t.conditions
	return out, err
}

// streamRound is both turns of a round.
type streamRound struct {
	Streams
	t     *site
	out   *Streamed
	round uint64
	alone float64 // µs of the node's CPU in the turn without subscribers
	cpu   float64 // in the last turn
}

func (r *streamRound) run(ctx context.Context) error {
	for half := range uint64(2) {
		turn, what := r.quiet, "orders alone"
		if (half+r.round)%2 == 1 {
			turn, what = r.streamed, "orders beside the subscribers"
		}
		r.Ticker.Step("%s, round %d", what, r.round+1)
		if err := turn(ctx); err != nil {
			return err
		}
	}
	last := len(r.out.CPUMicros) - 1
	messages := r.out.Messages[last] * r.Duration.Seconds()
	r.out.CPUMicros[last] = (r.out.CPUMicros[last] - r.alone) / max(messages, 1)
	return nil
}

// quiet posts orders that nobody is told of.
func (r *streamRound) quiet(ctx context.Context) error {
	p, _, err := r.post(ctx, 2*r.round)
	r.alone = r.cpu
	r.out.Alone = append(r.out.Alone, p)
	return err
}

// due is when an order was due, when it was answered, and what shows it.
type due struct {
	at, answered time.Time
	sequence     uint64
	market       int
}

// post posts orders for the markets that are subscribed to, and notes each that was answered.
func (r *streamRound) post(ctx context.Context, turn uint64) (p Paced, orders []due, err error) {
	n := int(r.Rate*r.Duration.Seconds()) + contestMarkets
	ops, requests, err := r.t.orders(ctx, r.Seed+turn+2, n*contestMarkets/r.Markets+2000)
	if err != nil {
		return p, nil, err
	}
	v := newVolley(r.t.node.addr, r.Connections)
	var markets []int
	for i := range requests {
		if book := int(ops[i].Book); book <= r.Markets {
			v.post(len(markets), requests[i:i+1])
			markets = append(markets, book)
		}
	}
	orders = make([]due, len(markets))
	v.Rate, v.Burst, v.Duration = r.Rate, r.Burst, r.Duration
	v.Progress = r.Ticker.Progress()
	v.Seen = func(s lean.Seen) {
		orders[s.Request] = due{at: s.Due, answered: s.At, sequence: sequenceIn(s.Head),
			market: markets[s.Request]}
	}
	before, err := r.t.node.desk.cpu(ctx)
	if err != nil {
		return p, nil, err
	}
	_, lapErr := r.t.watch.Lap()
	m, err := v.Run(ctx)
	if err = errors.Join(err, lapErr); err != nil {
		return p, nil, err
	}
	h, err := r.t.watch.Lap()
	if err != nil {
		return p, nil, err
	}
	r.t.conditions.Hiccup.add(h)
	p = paced(r.Rate, r.Duration, m)
	p.blame(h)
	after, err := r.t.node.desk.cpu(ctx)
	r.cpu = float64((after - before).Microseconds())
	orders = slices.DeleteFunc(orders, func(d due) bool { return d.sequence == 0 })
	return p, orders, err
}

// sequenceIn is the Sequence that the head of an answer names, 0 if it names none.
func sequenceIn(head []byte) uint64 {
	_, rest, _ := bytes.Cut(head, []byte("\r\nX-Sequence: "))
	text, _, _ := bytes.Cut(rest, []byte("\r\n"))
	seq, _ := strconv.ParseUint(string(text), 10, 64)
	return seq
}

// streamed posts orders while the subscribers listen.
func (r *streamRound) streamed(ctx context.Context) error {
	hall, err := r.crowd().Gather(ctx, r.Self)
	if err != nil {
		return err
	}
	defer hall.End()
	p, orders, err := r.post(ctx, 2*r.round+1)
	if err != nil {
		return err
	}
	heard, err := hall.Hear(500 * time.Millisecond) // which the last messages have to arrive
	if err != nil {
		return err
	}
	r.out.Beside, r.out.Nice = append(r.out.Beside, p), heard.Nice
	r.conclude(heard, orders)
	return nil
}

// conclude adds up what the subscribers have heard.
func (r *streamRound) conclude(h *crowd.Heard, orders []due) {
	delivered, last, answered := NewRecorder(), NewRecorder(), NewRecorder()
	for i := range orders {
		d := &orders[i]
		market := r.condition(d.market)
		for _, seen := range h.Seen {
			if read, some := seen.Of(market, d.sequence); some {
				delivered.Record(read.Sub(d.at.Round(0)))
				answered.Record(max(read.Sub(d.answered.Round(0)), 0))
			}
		}
		if read, all := h.Whole.Of(market, d.sequence); all {
			last.Record(read.Sub(d.at.Round(0)))
		}
	}
	seconds, out := r.Duration.Seconds(), r.out
	out.Gaps, out.Cuts = out.Gaps+h.Gaps, out.Cuts+h.Cuts
	out.Delivered = append(out.Delivered, delivered.Latency())
	out.Last = append(out.Last, last.Latency())
	out.Answered = append(out.Answered, answered.Latency())
	out.Messages = append(out.Messages, float64(h.Messages)/seconds)
	out.Bytes = append(out.Bytes, float64(h.Bytes)/seconds)
	out.CPUMicros = append(out.CPUMicros, r.cpu)
}

// condition is how a subscriber knows a market: the first digits of its condition.
func (r *streamRound) condition(market int) uint64 {
	h := workload.Hashed("condition", market)
	return binary.BigEndian.Uint64(h[:])
}

// watched is how many subscribers keep when they read what.
const watched = 64

// crowd is who subscribes, and to what. A few subscribers read at the priority of the load, because
// what is timed there is their reading.
func (r *streamRound) crowd() *crowd.Crowd {
	var text bytes.Buffer
	text.WriteString(`{"type":"market","assets_ids":[`)
	for m := range r.Markets {
		if m > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `"%s"`, r.t.markets[m+1][0])
	}
	text.WriteString("]}")
	return &crowd.Crowd{Addr: r.t.node.addr, Path: "/ws/market", Wish: text.Bytes(),
		Subscribers: r.Subscribers, Watched: watched, Low: r.Subscribers > watched}
}

// WriteText prints the rounds.
func (s *Streamed) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%d subscribers (a process at nice %d) of %d markets, %d connections that post in bursts of %d, open loop, %.1f s a turn, "+
		"seed %d: delivered is from the instant at which an order was due until a subscriber has read a "+
		"message that shows it\n", s.Subscribers, s.Nice, s.Markets, s.Connections, s.Burst, s.Seconds, s.Seed)
	fmt.Fprintln(w, "orders alone, by round:\n"+pacedHead)
	for i := range s.Alone {
		fmt.Fprintln(w, &s.Alone[i])
	}
	fmt.Fprintln(w, "orders beside the subscribers:\n"+pacedHead)
	for i := range s.Beside {
		fmt.Fprintln(w, &s.Beside[i])
	}
	for i := range s.Delivered {
		d, a := &s.Delivered[i], &s.Answered[i]
		l := &s.Last[i]
		fmt.Fprintf(w, "  delivered µs p50 %.0f p90 %.0f p99 %.0f max %.0f; to the last p50 %.0f p90 %.0f p99 "+
			"%.0f; from the answer p50 %.0f p99 %.0f; %.0f messages/s, %.1f MB/s, %.2f µs of the node's CPU "+
			"a message\n", d.P50, d.P90, d.P99, d.Max, l.P50, l.P90, l.P99, a.P50, a.P99, s.Messages[i],
			s.Bytes[i]/1e6, s.CPUMicros[i])
	}
	fmt.Fprintf(w, "  gaps %d, sockets cut %d\n", s.Gaps, s.Cuts)
	s.Conditions.WriteText(w)
}

// Verdict reports what makes the figures worthless: a message that is missing, a socket that ended,
// a generator that was late itself.
func (s *Streamed) Verdict() error {
	if s.Gaps > 0 || s.Cuts > 0 {
		return fmt.Errorf("%d gaps, %d sockets cut", s.Gaps, s.Cuts)
	}
	return blamed(pacedSide{"orders alone", s.Alone},
		pacedSide{"orders beside the subscribers", s.Beside})
}
