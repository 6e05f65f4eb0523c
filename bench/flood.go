package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"clobd/bench/lean"
)

// Flood says how reads are measured beside a flood of signed orders.
type Flood struct {
	Setting
	Rounds      int
	Duration    time.Duration // of one turn
	Rate        float64       // reads per second
	Readers     int           // connections that read
	Connections int           // that post signed orders in a closed loop, at most Traders
	Lists       bool          // the flood is lists of 15 orders
}

// validate returns all problems at once, or nil.
func (f *Flood) validate() error {
	all := Problems{Of: "flood"}
	all.Rounds(f.Rounds, f.Duration)
	all.rate("the rate of reads", f.Rate)
	all.lanes("readers", f.Readers)
	all.posters("connections", f.Connections)
	return all.Err()
}

// Flooded is the result: by round, reads of an idle node and of one that is flooded.
type Flooded struct {
	Conditions  Conditions `json:"conditions"`
	Seed        uint64     `json:"seed"`
	Readers     int        `json:"readers"`
	Connections int        `json:"connections"`
	Lists       bool       `json:"lists"`
	Seconds     float64    `json:"seconds_per_turn"`
	Idle        []Paced    `json:"idle"`
	Busy        []Paced    `json:"flooded"`
	Orders      []float64  `json:"orders_per_second"`
	// CPUMicros is the node's CPU time per order of the flood. It includes the reads.
	CPUMicros []float64 `json:"cpu_micros_per_order"`
	Nice      int       `json:"flood_nice"`
	// Ratios are of the medians of p50: flooded by idle.
	Corrected   float64 `json:"ratio_of_median_corrected_p50"`
	Uncorrected float64 `json:"ratio_of_median_uncorrected_p50"`
}

// MeasureFlood measures the rounds: idle and flooded, then flooded and idle, and so on.
func MeasureFlood(ctx context.Context, f Flood) (*Flooded, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	out := &Flooded{Seed: f.Seed, Readers: f.Readers, Connections: f.Connections, Lists: f.Lists,
		Seconds: f.Duration.Seconds()}
	var err error
	out.Conditions, err = f.measure(ctx, func(t *site) error { return f.rounds(ctx, t, out) })
	if err != nil {
		return nil, err
	}
	p50 := func(list []Paced, of func(*Paced) float64) float64 {
		var all []float64
		for i := range list {
			all = append(all, of(&list[i]))
		}
		return Median(all)
	}
	corrected := func(p *Paced) float64 { return p.CorrectedMicros.P50 }
	service := func(p *Paced) float64 { return p.ServiceMicros.P50 }
	out.Corrected = p50(out.Busy, corrected) / p50(out.Idle, corrected)
	out.Uncorrected = p50(out.Busy, service) / p50(out.Idle, service)
	return out, nil
}

// floodSpare times the orders that the fastest turn so far took are signed for the next turn.
const floodSpare = 1.5

// rounds runs the rounds. The first only warms up.
func (f *Flood) rounds(ctx context.Context, t *site, out *Flooded) error {
	f.Ticker.Plan(2 * (f.Rounds + 1))
	perSecond := 30_000.0
	if f.Lists {
		perSecond *= 2
	}
	for round := -1; round < f.Rounds; round++ {
		n := int(perSecond * f.Duration.Seconds())
		ops, requests, err := t.orders(ctx, f.Seed+uint64(round+2), n)
		if err != nil {
			return err
		}
		posts := newVolley(t.node.addr, f.Connections)
		posts.Duration = f.Duration
		if f.Lists {
			posts.dealLists(ops, requests)
		} else {
			posts.deal(ops, requests)
		}
		for turn := range 2 {
			var flood *volley
			what := "idle"
			if (turn+round)%2 == 0 {
				flood, what = posts, "flooded"
			}
			f.Ticker.Step("%s, round %d", what, round+1)
			before, beforeErr := t.node.cpu()
			paced, posted, err := f.turn(ctx, t, flood)
			after, afterErr := t.node.cpu()
			if err = errors.Join(err, beforeErr, afterErr); err != nil {
				return err
			}
			rate := float64(posted.Acked) / max(posted.Took.Seconds(), 1e-9)
			perSecond = max(perSecond, floodSpare*rate)
			switch {
			case round < 0:
				t.conditions.Hiccup = Hiccup{}
			case flood != nil:
				out.Busy, out.Orders = append(out.Busy, paced), append(out.Orders, rate)
				out.CPUMicros = append(out.CPUMicros,
					float64((after-before).Microseconds())/max(float64(posted.Acked), 1))
				out.Nice = posted.Nice
			default:
				out.Idle = append(out.Idle, paced)
			}
		}
	}
	return nil
}

// turn measures reads for a while. If flood is not nil, it runs meanwhile, and turn returns what
// came of it.
func (f *Flood) turn(ctx context.Context, t *site, flood *volley) (
	Paced, *lean.Measured, error) {
	p := Reads{t.node.addr, readPaths["book"] + t.markets[0][0].String(), f.Rate, f.Duration,
		f.Readers, f.Ticker}
	var beside *lean.Apart
	var err error
	if flood != nil {
		if beside, err = flood.flood(ctx, f.Self); err != nil {
			return Paced{}, nil, err
		}
		time.Sleep(f.Duration / 10) // the reads begin when the flood is there
		p.Duration -= f.Duration / 5
	}
	_, lapErr := t.watch.Lap()
	out, err := p.apart(ctx, f.Self)
	err = errors.Join(lapErr, err)
	posted := &lean.Measured{}
	if beside != nil {
		var floodErr error
		posted, floodErr = flooded(beside)
		err = errors.Join(err, floodErr)
	}
	h, lapErr := t.watch.Lap()
	t.conditions.Hiccup.add(h)
	out.blame(h)
	return out, posted, errors.Join(err, lapErr, ctx.Err())
}

// Verdict is nil if the medians are the node's and not the generator's.
func (f *Flooded) Verdict() error {
	return blamed(pacedSide{"idle", f.Idle}, pacedSide{"flooded", f.Busy})
}

// WriteText prints the rounds and their ratio.
func (f *Flooded) WriteText(w io.Writer) {
	what := "orders"
	if f.Lists {
		what = "orders in lists of 15"
	}
	fmt.Fprintf(w, "GET /book beside %d connections that post signed %s: p50 %.2f times that of "+
		"an idle node corrected, %.2f uncorrected (medians of %d interleaved rounds of 2 x %.1f s, open "+
		"loop over %d connections of a process of their own, seed %d; flood at nice %d, median %.0f "+
		"orders/s, CPU %.1f µs each)\n", f.Connections, what, f.Corrected, f.Uncorrected, len(f.Idle),
		f.Seconds, f.Readers, f.Seed, f.Nice, Median(f.Orders), Median(f.CPUMicros))
	fmt.Fprintln(w, pacedHead)
	for i := range f.Idle {
		fmt.Fprintf(w, "%s  idle\n%s  flooded by %.0f orders/s\n", &f.Idle[i], &f.Busy[i], f.Orders[i])
	}
	if err := f.Verdict(); err != nil {
		fmt.Fprintf(w, "  %v\n", err)
	}
	f.Conditions.WriteText(w)
}
