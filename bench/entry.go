package bench

import (
	"context"
	"errors"
	"fmt"
	"io"

	"clobd/bench/lean"
	"clobd/bench/trader"
	"clobd/bench/workload"
)

// The shape of the comparison "entry".
const (
	entrySockets = 8  // each of a trader of its own
	entryFlight  = 16 // requests in work on each
)

// entry prepares rounds that place the same kind of signed orders over sockets with many requests
// in flight, and over HTTP by one request a connection. All orders are those of the traders that
// have a socket.
func (k *contest) entry(ctx context.Context, clients []*trader.Client) func(int) (
	loads, error) {
	k.out.Node.Name = fmt.Sprintf("/ws/trade, %d in flight on %d", entryFlight, entrySockets)
	k.out.Baseline.Name = fmt.Sprintf("POST /order on %d", k.Connections)
	return func(round int) (loads, error) {
		var ops [2][]workload.Op
		var requests [2][]signed
		for i := range ops {
			n := max(int(k.Duration.Seconds()*k.perSecond), 2000)
			var err error
			if ops[i], requests[i], err = k.entryOrders(ctx, clients, 2*round+i, n); err != nil {
				return nil, err
			}
		}
		return func(s *Side) *volley {
			if s == &k.out.Baseline {
				return k.entryVolley(false, ops[1], requests[1])
			}
			return k.entryVolley(true, ops[0], requests[0])
		}, nil
	}
}

// entryOrders draws and signs n orders of the first traders.
func (k *contest) entryOrders(ctx context.Context, clients []*trader.Client, draw, n int) (
	[]workload.Op, []signed, error) {
	w, err := workload.Named("place")
	if err != nil {
		return nil, nil, err
	}
	ops, err := k.draw(ctx, w, draw, n)
	if err != nil {
		return nil, nil, err
	}
	for i := range ops {
		ops[i].Trader %= entrySockets
	}
	s := signing{clients: clients, markets: k.markets, salt: uint64(draw+4) << 40}
	requests, err := s.sign(ctx, ops)
	return ops, requests, err
}

// entryVolley is the load of one side.
func (k *contest) entryVolley(sockets bool, ops []workload.Op, requests []signed) *volley {
	if sockets {
		v := newVolley(k.out.Node.server.addr, entrySockets)
		v.dealDesks(ops, requests)
		return v
	}
	v := newVolley(k.out.Node.server.addr, k.Connections)
	v.dealRound(requests)
	return v
}

// dealRound appends requests to the lanes one after the other, whoever's they are.
func (v *volley) dealRound(requests []signed) {
	for i := range requests {
		v.post(i, requests[i:i+1])
	}
}

// dealDesks gives each trader a socket.
func (v *volley) dealDesks(ops []workload.Op, requests []signed) {
	v.Flight = entryFlight
	for i, r := range requests {
		v.add(int(ops[i].Trader), aim{r.client, "order.place", "/ws/trade", lean.WantOrders}, r.body, r.id)
	}
}

// halfLoad measures both sides at half the rate of the slower one, in an open loop.
func (k *contest) halfLoad(ctx context.Context, clients []*trader.Client) error {
	rate := min(Median(k.out.Node.Rates), Median(k.out.Baseline.Rates)) / 2
	k.out.Paced = &EntryPaced{Rate: rate}
	n := int(rate*k.Duration.Seconds()) + contestMarkets // draw rounds down to a multiple of them
	for round := range k.Rounds {
		for turn := range 2 {
			sockets := (round+turn)%2 == 0
			k.Ticker.Step("%.0f orders a second, round %d", rate, round+1)
			ops, requests, err := k.entryOrders(ctx, clients, 1000+2*round+turn, n)
			if err != nil {
				return err
			}
			v := k.entryVolley(sockets, ops, requests)
			v.Rate, v.Duration, v.Progress = rate, k.Duration, k.Ticker.Progress()
			var m *lean.Measured
			h, err := k.watch.during(func() (err error) { m, err = v.Run(ctx); return err })
			if err != nil {
				return err
			}
			k.out.Conditions.Hiccup.add(h)
			k.placed = append(k.placed, v.placed(m)...)
			p := paced(rate, k.Duration, m)
			p.blame(h)
			if sockets {
				k.out.Paced.Sockets = append(k.out.Paced.Sockets, p)
			} else {
				k.out.Paced.HTTP = append(k.out.Paced.HTTP, p)
			}
		}
	}
	return k.out.Paced.conclude()
}

// EntryPaced is what both sides of "entry" took at the same rate.
type EntryPaced struct {
	Rate    float64 `json:"orders_per_second"`
	Sockets []Paced `json:"sockets"`
	HTTP    []Paced `json:"http"`
	// Ratio is the sockets' median p50 divided by that of HTTP, both corrected.
	Ratio float64 `json:"ratio_of_median_p50"`
}

// verdict is an error if the generator has made the figures of every second turn of a side or more,
// or if a side did not keep the rate: then the two were not asked for the same.
func (p *EntryPaced) verdict() error {
	side := func(name string, list []Paced) error {
		name = fmt.Sprintf("%s at %.0f orders a second", name, p.Rate)
		err, unsent := blamed(pacedSide{name, list}), int64(0)
		for i := range list {
			unsent += list[i].Unsent
		}
		if unsent > 0 {
			err = errors.Join(err, fmt.Errorf("fell behind: %s: %d were not sent", name, unsent))
		}
		return err
	}
	return errors.Join(side("sockets", p.Sockets), side("HTTP", p.HTTP))
}

// conclude computes the ratio.
func (p *EntryPaced) conclude() error {
	p50 := func(all []Paced) (list []float64) {
		for i := range all {
			list = append(list, all[i].CorrectedMicros.P50)
		}
		return list
	}
	for _, one := range append(append([]Paced(nil), p.Sockets...), p.HTTP...) {
		if one.Failed > 0 {
			return fmt.Errorf("at %.0f orders a second %d failed: %s", p.Rate, one.Failed,
				one.FirstFailure)
		}
	}
	if http := Median(p50(p.HTTP)); http > 0 { // 0 if nothing was sent in its time
		p.Ratio = Median(p50(p.Sockets)) / http
	}
	return nil
}

// writeText prints the rounds.
func (p *EntryPaced) writeText(w io.Writer) {
	fmt.Fprintf(w, "  at %.0f orders a second on both sides: p50 %.2f times that of HTTP\n%s\n",
		p.Rate, p.Ratio, pacedHead)
	row := func(p *Paced, side string) {
		if p.Invalid != "" {
			side += "  INVALID"
		}
		fmt.Fprintf(w, "%s  %s\n", p, side)
	}
	for i := range p.Sockets {
		row(&p.Sockets[i], "sockets")
		row(&p.HTTP[i], "HTTP")
	}
}
