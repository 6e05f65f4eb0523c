package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"clobd/bench/lean"
	"clobd/bench/trader"
	"clobd/bench/workload"
	"clobd/engine"
)

// Overload says how a node is measured that is asked for more than it can do.
type Overload struct {
	Setting
	Rounds      int
	Duration    time.Duration // of one step
	Factors     []float64     // of the capacity: what each step asks for, in this order
	Connections int           // that post; more than the node lets wait, or nothing is refused
	Lists       bool          // the orders come in lists of 15
}

// validate returns all problems at once, or nil.
func (o *Overload) validate() error {
	all := Problems{Of: "overload"}
	all.Rounds(o.Rounds, o.Duration)
	all.Add(o.Duration < time.Second, "the duration is below 1 s")
	all.lanes("connections", o.Connections)
	all.Add(o.Connections < workload.Traders, "less than %d connections", workload.Traders)
	all.Add(len(o.Factors) == 0, "no factors")
	for _, f := range o.Factors {
		all.Add(!(f > 0 && f <= 10), "the factor %v is not in (0, 10]", f)
	}
	return all.Err()
}

// Overloaded is the result. Rates count orders.
type Overloaded struct {
	Conditions  Conditions `json:"conditions"`
	Seed        uint64     `json:"seed"`
	Connections int        `json:"connections"`
	Lists       bool       `json:"lists"`
	Seconds     float64    `json:"seconds_per_step"`
	// Capacity is what 64 connections of a closed loop get done, by round.
	Capacity []float64 `json:"capacity_per_second"`
	Steps    []Push    `json:"overload_steps"`
	// Healed is, by round, after how many seconds of half the capacity a node is as before: from then
	// on the p99 of each fifth of a second stays below three times that of the least step, and nine
	// tenths of the average that was asked are done, less three of its standard deviations. That
	// load begins on new connections, once the largest step has had its last answer. -1: not within
	// the load.
	Healed []float64 `json:"healed_seconds"`
	// Book and Cancel are GET /book and DELETE /order of an idle node and beside the largest step.
	Book   [2][]Latency `json:"book_micros"`
	Cancel [2][]Latency `json:"cancel_micros"`
	// Invalid are the loads whose figures the generator has made, and why.
	Invalid suspects `json:"invalid,omitempty"`
	Checked string   `json:"checked"`
	Failure string   `json:"failure,omitempty"`
}

// Push is a step: what was asked for, and what came of it.
type Push struct {
	Round  int     `json:"round"`
	Factor float64 `json:"factor"`
	Asked  float64 `json:"asked_per_second"`
	// Offered is what was sent in fact: a connection that waits for an answer sends nothing.
	Offered float64 `json:"offered_per_second"`
	Good    float64 `json:"good_per_second"` // accepted, until the last answer
	Shed    int64   `json:"refused_requests"`
	Failed  int64   `json:"failed_requests"` // neither accepted nor refused
	Unsent  int64   `json:"unsent_requests"` // given up: a whole step behind
	// AcceptedMicros and ShedMicros are from sending to answer; DueMicros is from the instant at which
	// an accepted request was due. Refusals are answers 503 that say busy or overloaded; any other,
	// such as a 429 for the limit of an address, has failed.
	AcceptedMicros Latency    `json:"accepted_micros"`
	DueMicros      Latency    `json:"accepted_from_due_micros"`
	ShedMicros     Latency    `json:"refused_micros"`
	FirstFailure   string     `json:"first_failure,omitempty"`
	Generator      *Generator `json:"generator"`
	Invalid        string     `json:"invalid,omitempty"` // the generator has made the figures, and why
}

// MeasureOverload runs the rounds, stops the node and looks whether its journal holds the accepted
// orders and no others.
func MeasureOverload(ctx context.Context, o Overload) (*Overloaded, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	out := &Overloaded{Seed: o.Seed, Connections: o.Connections, Lists: o.Lists,
		Seconds: o.Duration.Seconds()}
	var err error
	out.Conditions, err = o.measure(ctx, func(t *site) error {
		p := &pusher{Overload: &o, site: t, told: map[engine.OrderID]bool{}, out: out}
		o.Ticker.Plan(1 + o.Rounds*(len(o.Factors)+5))
		for round := range o.Rounds {
			p.at = round
			if err := p.round(ctx); err != nil {
				return err
			}
		}
		return p.check(ctx)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// pusher is such a measurement in work.
type pusher struct {
	*Overload
	*site
	out   *Overloaded
	told  map[engine.OrderID]bool // the node has said that it took them
	drawn uint64                  // loads
	salt  uint64                  // of the orders that are canceled
	at    int                     // the round that runs
}

// round measures the capacity, all steps, how soon the node heals, and other requests beside it.
func (p *pusher) round(ctx context.Context) error {
	if p.at == 0 { // a fresh node has no tables of its signers, and cold files
		if _, _, err := p.most(ctx, "a warm node"); err != nil {
			return err
		}
	}
	capacity, invalid, err := p.most(ctx, fmt.Sprintf("the capacity, round %d", p.at+1))
	if err != nil {
		return err
	}
	p.suspect("the capacity", invalid)
	p.out.Capacity = append(p.out.Capacity, capacity)
	least, most := Push{Factor: 1e9}, 0.0
	for _, factor := range p.Factors {
		p.Ticker.Step("%.1f times the capacity, round %d", factor, p.at+1)
		s, _, err := p.push(ctx, factor, capacity, p.Duration)
		if err != nil {
			return err
		}
		s.Round = p.at + 1
		p.suspect(fmt.Sprintf("%.1f times the capacity", factor), s.Invalid)
		p.out.Steps = append(p.out.Steps, s)
		if most = max(most, factor); factor < least.Factor {
			least = s
		}
	}
	if err := p.heal(ctx, capacity, most, least.DueMicros.P99); err != nil {
		return err
	}
	return p.beside(ctx, capacity, most)
}

// most is how many orders a closed loop of few connections gets done in a second, and why the
// generator has made that figure, if it has.
func (p *pusher) most(ctx context.Context, what string) (rate float64, invalid string, err error) {
	rate = 20_000 // what is drawn for the first closed loop
	if n := len(p.out.Capacity); n > 0 {
		rate = 2 * p.out.Capacity[n-1]
	} else if p.Lists {
		rate = 80_000
	}
	v, err := p.load(ctx, workload.Traders, rate*p.Duration.Seconds())
	if err != nil {
		return 0, "", err
	}
	v.Duration = p.Duration
	p.Ticker.Step("%s", what)
	m, h, err := p.fire(ctx, v)
	if err != nil {
		return 0, "", err
	}
	if m.Failed > 0 {
		return 0, "", fmt.Errorf("%s: %s", what, m.Failure)
	}
	return float64(m.Acked) / m.Took.Seconds(), judged(0, m, h).Invalid, nil
}

// suspect notes a load whose figures the generator has made.
func (p *pusher) suspect(what, invalid string) {
	p.out.Invalid.note(fmt.Sprintf("round %d, %s", p.at+1, what), invalid)
}

// homes are the addresses that the connections come from: a node lets one have 800 or so.
const homes = 16

// load draws and signs so many orders, at least, and deals them to connections in turn.
func (p *pusher) load(ctx context.Context, connections int, orders float64) (*volley, error) {
	p.drawn++
	spare := contestMarkets
	if p.Lists {
		spare = workload.Traders * workload.ListSize // orders that fill no list are left out
	}
	ops, requests, err := p.orders(ctx, p.Seed+p.drawn, int(orders)+spare)
	if err != nil {
		return nil, err
	}
	v := newVolley(p.node.addr, connections)
	v.Sheds, v.Homes = []string{"busy", "overloaded"}, homes
	if !p.Lists {
		v.dealRound(requests)
		return v, nil
	}
	v.dealLists(ops, requests)
	for i := range v.Requests {
		v.Requests[i].Lane = int32(i % connections)
	}
	return v, nil
}

// each is how many orders a request has.
func (p *pusher) each() float64 {
	if p.Lists {
		return workload.ListSize
	}
	return 1
}

// fire sends a load from a process of its own and keeps what was accepted. It says what the machine
// paused meanwhile.
func (p *pusher) fire(ctx context.Context, v *volley) (m *lean.Measured, h Hiccup, err error) {
	v.Progress = p.Ticker.Progress()
	h, err = p.watch.during(func() error {
		apart, err := v.Dispatch(ctx, p.Self, 1, false)
		if err == nil {
			m, err = p.reap(v, apart)
		}
		return err
	})
	return m, h, err
}

// reap waits for the end of a load and keeps what was accepted.
func (p *pusher) reap(v *volley, apart *lean.Apart) (*lean.Measured, error) {
	m, err := apart.Wait()
	if err == nil {
		for _, id := range v.placed(m) {
			p.told[id] = true
		}
	}
	return m, err
}

// calm is how long an open loop asks for half of the capacity before its measured part begins. Real
// clients are connected when overload comes, so the measured part must not begin with handshakes.
const calm = time.Second

// aim prepares an open loop of a multiple of the capacity, on connections that are in use.
func (p *pusher) aim(ctx context.Context, factor, capacity float64, d time.Duration) (
	*volley, error) {
	before := capacity / 2 * calm.Seconds()
	v, err := p.load(ctx, p.Connections, before+factor*capacity*d.Seconds())
	if err != nil {
		return nil, err
	}
	v.Settle, v.Duration = calm, calm+d
	rate := capacity / 2 / p.each()
	v.Due = arrivals(rate, true, p.drawn, int(rate*calm.Seconds()))
	for len(v.Due) > 0 && v.Due[len(v.Due)-1] >= calm {
		v.Due = v.Due[:len(v.Due)-1]
	}
	for _, at := range arrivals(factor*capacity/p.each(), true, p.drawn+1<<32,
		len(v.Requests)-len(v.Due)) {
		v.Due = append(v.Due, calm+at)
	}
	return v, nil
}

// push measures one step.
func (p *pusher) push(ctx context.Context, factor, capacity float64, d time.Duration) (
	Push, *lean.Measured, error) {
	v, err := p.aim(ctx, factor, capacity, d)
	if err != nil {
		return Push{}, nil, err
	}
	m, h, err := p.fire(ctx, v)
	if err != nil {
		return Push{}, nil, err
	}
	p.conditions.Hiccup.add(h)
	return p.pushed(factor, judged(factor*capacity, m, h), m), m, nil
}

// pushed is the step that a load has made.
func (p *pusher) pushed(factor float64, r *Report, m *lean.Measured) Push {
	accepted, due, shed := Recorder{m.Service}, Recorder{m.Corrected}, Recorder{m.Shed}
	took := max(m.Took, p.Duration).Seconds()
	return Push{Factor: factor, Asked: r.AskedRate, Offered: float64(m.Sent) * p.each() / took,
		Good: float64(m.Acked) / took, Shed: m.Busy, Failed: m.Failed, Unsent: m.Unsent,
		FirstFailure: m.Failure, AcceptedMicros: accepted.Latency(), DueMicros: due.Latency(),
		ShedMicros: shed.Latency(), Generator: r.Generator, Invalid: r.Invalid}
}

// healLong is how long the load lasts in which a node has to become as fast as before.
const healLong = 4 * time.Second

// heal pushes once more as hard as it gets, and then with half of the capacity at once.
func (p *pusher) heal(ctx context.Context, capacity, most, normal float64) error {
	after, err := p.load(ctx, p.Connections, capacity/2*healLong.Seconds())
	if err != nil {
		return err
	}
	after.Rate, after.Duration = capacity/2/p.each(), healLong
	after.Poisson, after.Seed = true, p.drawn
	p.Ticker.Step("%.1f times the capacity to heal from, round %d", most, p.at+1)
	step, pushed, err := p.push(ctx, most, capacity, time.Second)
	if err != nil {
		return err
	}
	p.suspect("the largest step, to heal from", step.Invalid)
	p.Ticker.Step("half of the capacity after that, round %d", p.at+1)
	m, h, err := p.fire(ctx, after)
	if err != nil {
		return err
	}
	p.suspect("half of the capacity after the largest step", judged(after.Rate, m, h).Invalid)
	p.failed("the largest step", pushed)
	p.failed("half of the capacity after the largest step", m)
	healed, began := 0.0, time.Duration(0)
	for _, at := range m.Moments {
		if at.End > healLong {
			break // nothing was due any more
		}
		asked := 0.5 * capacity * (at.End - began).Seconds()
		if began = at.End; inMicros(at.P99) > 3*normal || float64(at.Done) < enough(asked, p.each()) {
			healed = at.End.Seconds()
		}
	}
	if healed >= healLong.Seconds() {
		healed = -1
	}
	p.out.Healed = append(p.out.Healed, healed)
	return nil
}

// enough is how many orders must be done where so many were asked for on average, in requests of so
// many each: nine tenths, less three standard deviations, since when they are due is chance.
func enough(asked, each float64) float64 { return 0.9*asked - 3*math.Sqrt(asked*each) }

// ladderOrders are the orders of restLadder.
const ladderOrders = 98

// failed notes requests that were neither accepted nor refused.
func (p *pusher) failed(what string, m *lean.Measured) {
	if m.Failed > 0 && p.out.Failure == "" {
		p.out.Failure = fmt.Sprintf("%s: %d requests were neither accepted nor refused: %s", what, m.Failed,
			m.Failure)
	}
}

// Beside a step the book is read and orders are canceled, so many times a second each.
const besideRate = 200

// beside measures reads and cancels on an idle node, and while the node is pushed.
func (p *pusher) beside(ctx context.Context, capacity, most float64) error {
	for busy, node := range []string{"an idle node", "an overloaded node"} {
		p.Ticker.Step("reads and cancels on %s, round %d", node, p.at+1)
		var flood *volley
		if busy == 1 {
			var err error
			if flood, err = p.aim(ctx, most, capacity, p.Duration+time.Second); err != nil {
				return err
			}
		}
		book, cancel, err := p.readAndCancel(ctx, flood)
		if err != nil {
			return err
		}
		p.suspect("reads on "+node, book.Invalid)
		p.suspect("cancels on "+node, cancel.Invalid)
		if cancel.Failed > 0 {
			return fmt.Errorf("%d cancels failed: %s", cancel.Failed, cancel.FirstFailure)
		}
		p.out.Book[busy] = append(p.out.Book[busy], book.CorrectedMicros)
		p.out.Cancel[busy] = append(p.out.Cancel[busy], cancel.CorrectedMicros)
	}
	return nil
}

// readAndCancel reads the book and cancels orders, beside a flood unless that is nil.
func (p *pusher) readAndCancel(ctx context.Context, flood *volley) (book, cancel Paced, err error) {
	reads := Reads{p.node.addr, readPaths["book"] + p.markets[0][0].String(), besideRate, p.Duration,
		4, p.Ticker}
	cancels, err := p.cancels(int(besideRate * p.Duration.Seconds()))
	if err != nil {
		return book, cancel, err
	}
	var apart *lean.Apart
	if flood != nil {
		if apart, err = flood.Dispatch(ctx, p.Self, 1, false); err != nil {
			return book, cancel, err
		}
		time.Sleep(calm + time.Second/2) // the others begin when the flood is there
	}
	h, err := p.watch.during(func() error {
		cancelling, err := cancels.Dispatch(ctx, p.Self, 1, false)
		if err != nil {
			return err
		}
		book, err = reads.apart(ctx, p.Self)
		m, cancelErr := cancelling.Wait()
		if cancelErr == nil {
			cancel = paced(besideRate, p.Duration, m)
		}
		return errors.Join(err, cancelErr)
	})
	if apart != nil {
		pushed, floodErr := p.reap(flood, apart)
		if err = errors.Join(err, floodErr); floodErr == nil {
			p.failed("the flood beside reads and cancels", pushed)
		}
	}
	book.blame(h)
	cancel.blame(h)
	return book, cancel, err
}

// cancels rests n orders in the first market and prepares their cancels, an open loop.
func (p *pusher) cancels(n int) (*volley, error) {
	v := newVolley(p.node.addr, 4)
	v.Rate, v.Duration = besideRate, p.Duration
	for i := range n {
		c := p.clients[i%4]
		p.salt++
		l := trader.Limit{Token: p.markets[0][0], Price: 100, Type: "GTC", Salt: 1<<60 + p.salt,
			Size: 5 * engine.Unit}
		id, err := restNamed(c, l)
		if err != nil {
			return nil, fmt.Errorf("rest an order to cancel: %w", err)
		}
		p.told[id] = true
		v.add(i, aim{c, http.MethodDelete, "/order", lean.WantCancels},
			fmt.Appendf(nil, `{"orderID":"%s"}`, id.Hex()), id)
	}
	return v, nil
}

// check holds the journal of the stopped node against the answers, in both directions.
func (p *pusher) check(ctx context.Context) error {
	if err := p.node.stop(); err != nil {
		return err
	}
	seen, err := replayFolder(ctx, p.node.dir, engine.NewExchange(p.Seed))
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	missing, silent := 0, 0
	for id := range p.told {
		if !seen.placed[id] {
			missing++
		}
	}
	for id := range seen.placed {
		if !p.told[id] {
			silent++
		}
	}
	silent -= ladderOrders // which nobody counted
	p.out.Checked = fmt.Sprintf("the node's journal replays; it holds each of %d accepted orders and no "+
		"other", len(p.told))
	if missing > 0 || silent != 0 { // which is worse than any failure before
		p.out.Failure = fmt.Sprintf("of %d accepted orders %d are not in the journal, and %d orders are in it "+
			"that were answered with a refusal or not at all", len(p.told), missing, silent)
	}
	return nil
}

// Verdict is nil if the node kept its promises, and the figures are the node's and not the
// generator's. How fast it was is for the reader to judge.
func (o *Overloaded) Verdict() error {
	if o.Failure != "" {
		return errors.New(o.Failure)
	}
	for i := range o.Steps {
		if s := &o.Steps[i]; s.Failed > 0 {
			return fmt.Errorf("round %d, %.1f times the capacity: %d requests were neither accepted nor "+
				"refused: %s", s.Round, s.Factor, s.Failed, s.FirstFailure)
		}
	}
	return o.Invalid.verdict()
}

// WriteText prints the steps.
func (o *Overloaded) WriteText(w io.Writer) {
	what := "orders"
	if o.Lists {
		what = fmt.Sprintf("orders in lists of %d", workload.ListSize)
	}
	fmt.Fprintf(w, "%s: capacity %.0f orders/s (median of closed loops of %d connections); then an open "+
		"loop of a multiple of it, Poisson, %d connections that half of it was asked of for %v before, "+
		"%.1f s a step, seed %d, load in processes of its own\n", what, Median(o.Capacity), workload.Traders,
		o.Connections, calm, o.Seconds, o.Seed)
	fmt.Fprintln(w, "  round  times  asked/s offered/s accepted/s  of capacity  refused  failed  "+
		"unsent  accepted ms: p50    p99    max  from due: p50    p99  refused ms: p50   p99   max  generator: thread")
	for i := range o.Steps {
		s := &o.Steps[i]
		a, d, r, mark := &s.AcceptedMicros, &s.DueMicros, &s.ShedMicros, ""
		if s.Invalid != "" {
			mark = "  INVALID"
		}
		fmt.Fprintf(w, "  %5d  %5.1f  %7.0f %9.0f %10.0f  %11.2f  %7d  %6d  %6d  %16.1f %6.1f %6.0f  "+
			"%13.1f %6.1f  %15.1f %5.1f %5.0f  %17.0f%%%s\n", s.Round, s.Factor, s.Asked, s.Offered, s.Good,
			s.Good/o.Capacity[s.Round-1], s.Shed, s.Failed, s.Unsent, a.P50/1e3, a.P99/1e3, a.Max/1e3,
			d.P50/1e3, d.P99/1e3, r.P50/1e3, r.P99/1e3, r.Max/1e3, s.Generator.Thread*100, mark)
	}
	for i := range o.Healed {
		fmt.Fprintf(w, "  round %d: p99 as before %.1f s after the end of the overload; idle and overloaded, "+
			"corrected ms: GET /book p50 %.2f and %.2f, p99 %.1f and %.1f; DELETE /order p50 %.2f and %.2f, "+
			"p99 %.1f and %.1f\n", i+1, o.Healed[i], o.Book[0][i].P50/1e3, o.Book[1][i].P50/1e3,
			o.Book[0][i].P99/1e3, o.Book[1][i].P99/1e3, o.Cancel[0][i].P50/1e3, o.Cancel[1][i].P50/1e3,
			o.Cancel[0][i].P99/1e3, o.Cancel[1][i].P99/1e3)
	}
	fmt.Fprintf(w, "  checked: %s\n", o.Checked)
	if err := o.Verdict(); err != nil && len(o.Invalid) == 0 {
		fmt.Fprintf(w, "  FAILED: %v\n", err)
	} else if err != nil {
		fmt.Fprintf(w, "  %v\n", err)
	}
	o.Conditions.WriteText(w)
}
