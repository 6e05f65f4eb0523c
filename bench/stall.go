package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/bench/workload"
	"clobd/engine"
)

// Stall says how reads are measured while the writer of a node stands still.
type Stall struct {
	Setting
	Rounds  int
	Length  time.Duration // of a stall, and of the time before it that it is compared with
	Rate    float64       // reads per second
	Readers int           // connections that read
	Writers int           // connections that post signed orders all the while, at most Traders
}

// validate returns all problems at once, or nil.
func (s *Stall) validate() error {
	all := Problems{Of: "stall"}
	all.Rounds(s.Rounds, s.Length)
	all.Add(s.Length < 100*time.Millisecond, "the length is below 100 ms")
	all.rate("the rate of reads", s.Rate)
	all.lanes("readers", s.Readers)
	all.posters("writers", s.Writers)
	return all.Err()
}

// Stalled is the result.
type Stalled struct {
	Conditions Conditions  `json:"conditions"`
	Seed       uint64      `json:"seed"`
	Readers    int         `json:"readers"`
	Writers    int         `json:"writers"`
	Seconds    float64     `json:"seconds_per_stall"`
	Parts      []StallPart `json:"parts"`
}

// StallPart is the part of the node that stood still, and by round the reads before and during it.
type StallPart struct {
	What   string  `json:"what"` // matcher or disk
	Before []Paced `json:"before"`
	During []Paced `json:"during"`
	// Ratios are of the medians of p90: during by before.
	Corrected   float64 `json:"ratio_of_median_corrected_p90"`
	Uncorrected float64 `json:"ratio_of_median_uncorrected_p90"`
}

// MeasureStall measures the matcher and the disk in turn.
func MeasureStall(ctx context.Context, s Stall) (*Stalled, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	out := &Stalled{Conditions: NewConditions(s.Version), Seed: s.Seed, Readers: s.Readers,
		Writers: s.Writers, Seconds: s.Length.Seconds(),
		Parts: []StallPart{{What: "matcher"}, {What: "disk"}}}
	watch, err := StartWatch(ctx, s.Self)
	if err != nil {
		return nil, err
	}
	defer watch.End()
	s.Ticker.Plan(s.Rounds * len(out.Parts) * 3)
	for round := range s.Rounds {
		for i := range out.Parts {
			f := stallRound{s, watch, out, uint64(round)}
			if err := f.run(ctx, &out.Parts[i]); err != nil {
				if ctx.Err() != nil {
					return nil, Stopped(ctx)
				}
				return nil, fmt.Errorf("%s: %w", out.Parts[i].What, err)
			}
		}
	}
	for i := range out.Parts {
		out.Parts[i].conclude()
	}
	return out, nil
}

// conclude computes the ratios.
func (p *StallPart) conclude() {
	ratio := func(of func(*Paced) float64) float64 {
		var before, during []float64
		for i := range p.Before {
			before, during = append(before, of(&p.Before[i])), append(during, of(&p.During[i]))
		}
		return Median(during) / Median(before)
	}
	p.Corrected = ratio(func(p *Paced) float64 { return p.CorrectedMicros.P90 })
	p.Uncorrected = ratio(func(p *Paced) float64 { return p.ServiceMicros.P90 })
}

// stallRound is one round of one part.
type stallRound struct {
	Stall
	watch *Watch
	out   *Stalled
	round uint64
}

// run measures a node of its own: reads while orders flow, then while nothing moves.
func (f *stallRound) run(ctx context.Context, p *StallPart) (err error) {
	n, err := newInside()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	token, work, err := f.furnish(ctx, n)
	if err != nil {
		return err
	}
	writing, stop := context.WithCancel(ctx)
	var writers sync.WaitGroup
	writers.Go(func() { work.drive(writing, 0) })
	defer writers.Wait()
	defer stop()
	gate := map[string]*sync.RWMutex{"matcher": &n.matcher, "disk": &n.disk}[p.What]
	r := Reads{n.addr, readPaths["book"] + token.String(), f.Rate, f.Length, f.Readers, f.Ticker}
	f.Ticker.Step("%s, warm-up", p.What)
	if _, err := f.read(ctx, &r); err != nil {
		return err
	}
	f.Ticker.Step("%s, before it stands still", p.What)
	before, err := f.read(ctx, &r)
	if err != nil {
		return err
	}
	gate.Lock()
	time.Sleep(50 * time.Millisecond) // what was under way ends
	still := n.board.Sequence()
	f.Ticker.Step("%s, while it stands still", p.What)
	during, err := f.read(ctx, &r)
	moved := n.board.Sequence() != still
	gate.Unlock()
	switch {
	case err != nil:
		return err
	case moved:
		return errors.New("the writer moved although it was stalled")
	}
	p.Before, p.During = append(p.Before, before), append(p.During, during)
	return nil
}

// read reads for the length of a stall.
func (f *stallRound) read(ctx context.Context, r *Reads) (Paced, error) {
	var paced Paced
	h, err := f.watch.during(func() (err error) { paced, err = r.apart(ctx, f.Self); return err })
	f.out.Conditions.Hiccup.add(h)
	paced.blame(h)
	return paced, err
}

// furnish lists two markets, fills the book of the first, and returns traders that post orders in
// the second until the crew ends.
func (f *stallRound) furnish(ctx context.Context, n *inside) (
	token engine.Token, work *crew, err error) {
	clients, err := traders(ctx, "http://"+n.addr, f.Seed)
	if err != nil {
		return token, nil, err
	}
	var markets [2][2]engine.Token
	for i := range markets {
		markets[i] = workload.Tokens(i)
		if err := n.submit(engine.Command{Kind: engine.List, Listing: &engine.Listing{
			Condition: workload.Hashed("condition", i), Tokens: markets[i], Group: 1, Tick: 100,
			MinSize: engine.Unit, Open: true}}); err != nil {
			return token, nil, err
		}
	}
	for _, c := range clients {
		const shares = workload.TraderShares
		deposits := []engine.Command{{Cash: workload.TraderCash}, {Market: 1, Size: shares},
			{Market: 2, Size: shares}, {Market: 2, Outcome: 1, Size: shares}}
		for _, d := range deposits {
			d.Kind, d.Address = engine.Deposit, c.Signer.Address
			if err := n.submit(d); err != nil {
				return token, nil, err
			}
		}
	}
	if err := restLadder(ctx, clients[0], markets[0][0]); err != nil {
		return token, nil, err
	}
	work = &crew{}
	for i, c := range clients[:f.Writers] {
		c := quoter{c, markets[1], f.round<<40 | uint64(i)<<32}
		work.join(c.loop)
	}
	return markets[0][0], work, nil
}

// quoter posts and cancels one order after the other, so that its book stays small.
type quoter struct {
	*trader.Client
	market [2]engine.Token
	salt   uint64
}

// loop posts a few orders a second: only the reads are measured.
func (q *quoter) loop(n *counts, until func() bool) {
	for i := uint64(0); !until(); i++ {
		body, id, err := q.Sign(trader.Limit{Token: q.market[i%2], Price: engine.Price(100 * (10 + i%30)),
			Type: "GTC", Size: 10 * engine.Unit, Salt: q.salt + i})
		if err != nil {
			n.err = err
			return
		}
		q.one("POST", body)
		q.one("DELETE", trader.CancelBody(id))
		time.Sleep(10 * time.Millisecond)
	}
}

// one sends a request and ignores the answer: an order that waits for a stall to end gets 504.
func (q *quoter) one(method string, body []byte) {
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	_ = q.Do(method, "/order", body, resp)
}

// Verdict is nil if the medians are the node's and not the generator's.
func (s *Stalled) Verdict() error {
	var sides []pacedSide
	for i := range s.Parts {
		p := &s.Parts[i]
		sides = append(sides, pacedSide{"before the " + p.What + " stands still", p.Before},
			pacedSide{"while the " + p.What + " stands still", p.During})
	}
	return blamed(sides...)
}

// WriteText prints both parts.
func (s *Stalled) WriteText(w io.Writer) {
	for i := range s.Parts {
		p := &s.Parts[i]
		fmt.Fprintf(w, "GET /book while the %s stands still for %.1f s: p90 %.2f times that before "+
			"corrected, %.2f uncorrected (medians of %d rounds, each with a node of its own, open loop over "+
			"%d connections of another process, %d that post and cancel orders, seed %d)\n", p.What, s.Seconds, p.Corrected,
			p.Uncorrected, len(p.Before), s.Readers, s.Writers, s.Seed)
		fmt.Fprintln(w, pacedHead)
		for k := range p.Before {
			fmt.Fprintf(w, "%s  before\n%s  while it stands still\n", &p.Before[k], &p.During[k])
		}
	}
	if err := s.Verdict(); err != nil {
		fmt.Fprintf(w, "  %v\n", err)
	}
	fmt.Fprintln(w, "  node: in this process, on a disk in memory; it shares the process with who posts")
	s.Conditions.WriteText(w)
}
