package bench

import (
	"bytes"
	"context"
	_ "embed" // the script of wrk
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"clobd/bench/lean"
	"clobd/bench/process"
)

// Agreement says how clobench is held against wrk: both send the same requests to one node, in
// turn, over as many connections each, in a closed loop.
type Agreement struct {
	Setting
	Wrk         string // the program
	Rounds      int    // turns of each tool
	Duration    time.Duration
	Connections int // of reads; orders have one
}

// validate returns all problems at once, or nil.
func (a *Agreement) validate() error {
	all := Problems{Of: "agree"}
	all.Rounds(a.Rounds, a.Duration)
	all.Add(a.Duration%time.Second != 0, "a turn is no whole seconds, as wrk wants them")
	all.lanes("connections", a.Connections)
	return all.Err()
}

// near is how far the medians of two tools may be apart.
const near = 0.10

// Agreed is the result.
type Agreed struct {
	Conditions Conditions    `json:"conditions"`
	Seed       uint64        `json:"seed"`
	Seconds    float64       `json:"seconds_per_turn"`
	Parts      []AgreedPart  `json:"parts"`
	length     time.Duration // of a turn
}

// AgreedPart is one kind of request, and by turn what each tool says.
type AgreedPart struct {
	What        string `json:"what"`
	Connections int    `json:"connections"`
	Clobench    []Said `json:"clobench"`
	Wrk         []Said `json:"wrk"`
	// Ratios are medians of clobench by those of wrk.
	Ratios Said `json:"ratios"`
	Agree  bool `json:"agree"`
	// Blamed are the turns of clobench that was at its limit itself.
	Blamed []string `json:"invalid_turns,omitempty"`
}

// Said is what a tool says of a turn: requests per second, and µs from send to answer.
type Said struct {
	Rate float64 `json:"rate"`
	P50  float64 `json:"p50_micros"`
	P90  float64 `json:"p90_micros"`
}

// MeasureAgreement runs both tools in turn: GET /book, then signed durable POST /order.
func MeasureAgreement(ctx context.Context, a Agreement) (*Agreed, error) {
	if err := a.validate(); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath(a.Wrk); err != nil {
		return nil, fmt.Errorf("%w: wrk is in Debian's package of that name", err)
	}
	out := &Agreed{Seed: a.Seed, Seconds: a.Duration.Seconds(), length: a.Duration}
	var err error
	out.Conditions, err = a.measure(ctx, func(t *site) error { return a.both(ctx, t, out) })
	if err != nil {
		return nil, err
	}
	return out, nil
}

// both runs the turns of both kinds of requests.
func (a *Agreement) both(ctx context.Context, t *site, out *Agreed) error {
	path := readPaths["book"] + t.markets[0][0].String()
	book := func(int) (*volley, error) { return reads(t.node.addr, path, a.Connections, nil), nil }
	orders := func(turn int) (*volley, error) {
		const most = 6000 // a second over one connection, more than a sync allows
		_, requests, err := t.orders(ctx, a.Seed+uint64(turn), int(a.Duration.Seconds()*most))
		if err != nil {
			return nil, err
		}
		v := newVolley(t.node.addr, 1)
		for i := range requests {
			v.post(0, requests[i:i+1])
		}
		return v, nil
	}
	a.Ticker.Plan(4 * (a.Rounds + 1))
	for _, p := range []match{
		{AgreedPart{What: "GET /book", Connections: a.Connections}, book},
		{AgreedPart{What: "POST /order", Connections: 1}, orders},
	} {
		for round := -1; round < a.Rounds; round++ { // the first one warms up
			if err := a.round(ctx, t, &p, round); err != nil {
				return fmt.Errorf("%s: %w", p.What, err)
			}
		}
		p.judge()
		out.Parts = append(out.Parts, p.AgreedPart)
	}
	return nil
}

// match is a part in the making, and where the requests of its turns come from.
type match struct {
	AgreedPart
	prepare func(turn int) (*volley, error)
}

// round is a turn of each tool; whose turn is first alternates.
func (a *Agreement) round(ctx context.Context, t *site, p *match, round int) error {
	var said [2]Said
	for i := range said {
		tool := (i + round + 2) % 2
		a.Ticker.Step("%s by %s, round %d", p.What, [2]string{"clobench", "wrk"}[tool], round+1)
		v, err := p.prepare(2*round + i + 3)
		if err != nil {
			return err
		}
		v.Duration, v.Progress = a.Duration, a.Ticker.Progress()
		var m *lean.Measured // by clobench
		h, err := t.watch.during(func() (err error) {
			if tool == 0 {
				said[0], m, err = a.own(ctx, v)
			} else {
				said[1], err = a.wrk(ctx, v, t.dir)
				a.Ticker.Did(int64(said[1].Rate*a.Duration.Seconds()), a.Duration)
			}
			return err
		})
		if err != nil {
			return err
		}
		t.conditions.Hiccup.add(h)
		if m != nil && round >= 0 {
			p.blame(round, judged(0, m, h))
		}
	}
	if round >= 0 {
		p.Clobench, p.Wrk = append(p.Clobench, said[0]), append(p.Wrk, said[1])
	}
	return nil
}

// blame notes a turn of clobench whose figures are its own limits.
func (p *AgreedPart) blame(round int, r *Report) {
	if r.Invalid != "" {
		p.Blamed = append(p.Blamed, fmt.Sprintf("round %d: %s", round+1, r.Invalid))
	}
}

// own is a turn of clobench, in a process of its own as wrk is one.
func (a *Agreement) own(ctx context.Context, v *volley) (s Said, m *lean.Measured, err error) {
	apart, err := v.Dispatch(ctx, a.Self, 1, false)
	if err != nil {
		return s, nil, err
	}
	m, err = apart.Wait()
	switch {
	case err != nil:
		return s, nil, err
	case m.Failed > 0:
		return s, nil, errors.New(m.Failure)
	case !m.Full:
		return s, nil, errDry
	}
	l := Recorder{m.Service}.Latency()
	return Said{float64(m.Good) / m.Took.Seconds(), l.P50, l.P90}, m, nil
}

var errDry = errors.New("more requests were sent than were prepared for the turn")

//go:embed agree.wrk.lua
var wrkScript []byte

// wrk is a turn of wrk. Requests that are sent once are put into a file.
func (a *Agreement) wrk(ctx context.Context, v *volley, dir string) (s Said, err error) {
	script, file := filepath.Join(dir, "wrk.lua"), filepath.Join(dir, "requests")
	if err := os.WriteFile(script, wrkScript, 0o644); err != nil {
		return s, err
	}
	cmd := process.Command(ctx, a.Wrk, "-t", "1", "-c", strconv.Itoa(v.Lanes), "-d",
		a.Duration.String(), "-s", script, "http://"+v.Addr+v.Routes[0].Path)
	if !v.Repeat {
		if err := writeRequests(file, v); err != nil {
			return s, err
		}
		cmd.Env = append(os.Environ(), "REQUESTS="+file)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return s, fmt.Errorf("%s: %w\n%s", a.Wrk, err, out)
	}
	return readWrk(out)
}

// writeRequests writes the requests of a volley as they are sent now: the node takes a timestamp
// for a minute.
func writeRequests(file string, v *volley) error {
	var all bytes.Buffer
	now := time.Now()
	for i := range v.Requests {
		b, err := v.Render(i, now)
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "%d\n%s", len(b), b)
	}
	return os.WriteFile(file, all.Bytes(), 0o600)
}

// readWrk reads the line that the script prints.
func readWrk(out []byte) (s Said, err error) {
	_, line, found := bytes.Cut(out, []byte("\nfigures "))
	if !found {
		return s, fmt.Errorf("wrk printed no figures:\n%s", out)
	}
	var answers, micros, refused, failed float64
	if _, err := fmt.Sscan(string(line), &answers, &micros, &refused, &failed, &s.P50,
		&s.P90); err != nil {
		return s, fmt.Errorf("read the figures of wrk: %w:\n%s", err, out)
	}
	if refused+failed > 0 {
		return s, fmt.Errorf("%w, or the node refused: wrk had %.0f answers that are no 200 and %.0f errors",
			errDry, refused, failed)
	}
	s.Rate = answers / micros * 1e6
	return s, nil
}

// judge compares the medians.
func (p *AgreedPart) judge() {
	ratio := func(of func(Said) float64) float64 {
		var own, other []float64
		for i := range p.Clobench {
			own, other = append(own, of(p.Clobench[i])), append(other, of(p.Wrk[i]))
		}
		return Median(own) / Median(other)
	}
	p.Ratios = Said{ratio(func(s Said) float64 { return s.Rate }),
		ratio(func(s Said) float64 { return s.P50 }), ratio(func(s Said) float64 { return s.P90 })}
	p.Agree = true
	for _, r := range []float64{p.Ratios.Rate, p.Ratios.P50, p.Ratios.P90} {
		p.Agree = p.Agree && r >= 1-near && r <= 1+near
	}
}

// Verdict is nil if the tools agree, and if clobench was at its own limit in less than half of its
// turns: medians of that limit agree with nothing.
func (a *Agreed) Verdict() error {
	var problems []error
	for i := range a.Parts {
		p := &a.Parts[i]
		problems = append(problems, mostly(p.What, p.Blamed, len(p.Clobench)))
		if !p.Agree {
			problems = append(problems, fmt.Errorf("%s: clobench and wrk are more than %.0f %% apart",
				p.What, near*100))
		}
	}
	return errors.Join(problems...)
}

// WriteText prints every turn, and the ratios.
func (a *Agreed) WriteText(w io.Writer) {
	fmt.Fprintf(w, "clobench beside wrk, closed loop, turns of %v in alternation, seed %d; µs are from "+
		"send to answer\n", a.length, a.Seed)
	for i := range a.Parts {
		p := &a.Parts[i]
		fmt.Fprintf(w, "%s, %d connections:  clobench rate, p50, p90 | wrk rate, p50, p90\n", p.What,
			p.Connections)
		for k, c := range p.Clobench {
			o := p.Wrk[k]
			fmt.Fprintf(w, "  %9.0f %8.1f %8.1f | %9.0f %8.1f %8.1f\n", c.Rate, c.P50, c.P90, o.Rate, o.P50,
				o.P90)
		}
		verdict := "AGREE"
		if !p.Agree {
			verdict = "DIFFER"
		}
		fmt.Fprintf(w, "  %s: medians of clobench are %.3f, %.3f and %.3f of those of wrk\n", verdict,
			p.Ratios.Rate, p.Ratios.P50, p.Ratios.P90)
		if err := mostly(p.What, p.Blamed, len(p.Clobench)); err != nil {
			fmt.Fprintf(w, "  %v\n", err)
		}
	}
	a.Conditions.WriteText(w)
}
