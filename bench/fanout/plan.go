package fanout

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"clobd/bench"
)

// Plan says how the node's market stream is compared with centrifuge and a bare loop. Bursts of
// messages are due at a constant rate, and all subscribers get all messages.
type Plan struct {
	bench.Setting
	Rounds   int
	Duration time.Duration // of one turn
	Cases    []Case
	Idle     int // subscribers whose memory is measured; 0: none
}

// Case is a load: the number of subscribers, the messages in a burst, and the bursts a second.
type Case struct {
	Subscribers int     `json:"subscribers"`
	Burst       int     `json:"burst"`
	Rate        float64 `json:"bursts_per_second"`
}

// The bounds of what is measured.
const (
	mostSubscribers = 20_000
	mostBurst       = 200 // messages; the orders of a burst must fit into one frame of the journal
	leastBursts     = 8   // bursts of a turn, even if they take longer than Plan.Duration
)

// GoalCases returns the cases that have goals. All sides reach their rates on two cores.
func GoalCases() []Case {
	return []Case{{100, 1, 400}, {100, 8, 100}, {100, 32, 40}, {1000, 1, 40}, {1000, 8, 10},
		{1000, 32, 4}, {5000, 8, 1}}
}

// ParseCase reads a case: SUBSCRIBERSxBURST@RATE, as 1000x8@10.
func ParseCase(text string) (c Case, err error) {
	subscribers, rest, _ := strings.Cut(text, "x")
	burst, rate, _ := strings.Cut(rest, "@")
	var errs [3]error
	c.Subscribers, errs[0] = strconv.Atoi(subscribers)
	c.Burst, errs[1] = strconv.Atoi(burst)
	c.Rate, errs[2] = strconv.ParseFloat(rate, 64)
	if errors.Join(errs[:]...) != nil {
		return c, fmt.Errorf("case %q: want SUBSCRIBERSxBURST@RATE, as 1000x8@10", text)
	}
	return c, nil
}

// String returns the case as ParseCase reads it.
func (c Case) String() string {
	return fmt.Sprintf("%dx%d@%g", c.Subscribers, c.Burst, c.Rate)
}

// validate returns all problems at once, or nil.
func (p *Plan) validate() error {
	all := bench.Problems{Of: "fan-out"}
	bad := all.Add
	all.Rounds(p.Rounds, p.Duration)
	bad(p.Idle < 0 || p.Idle > mostSubscribers, "%d idle subscribers are not in [0, %d]", p.Idle,
		mostSubscribers)
	bad(len(p.Cases) == 0 && p.Idle == 0, "there is no case")
	for _, c := range p.Cases {
		bad(c.Subscribers < 1 || c.Subscribers > mostSubscribers,
			"%s: the subscribers are not in [1, %d]", c, mostSubscribers)
		bad(c.Burst < 1 || c.Burst > mostBurst, "%s: the burst is not in [1, %d]", c, mostBurst)
		bad(!(c.Rate >= 0.1 && c.Rate <= 1e5), "%s: the rate is not in [0.1, 100000]", c)
	}
	return all.Err()
}

// bursts returns how many bursts of a case are measured in a turn.
func (p *Plan) bursts(c Case) int {
	return max(int(c.Rate*p.Duration.Seconds()+0.5), leastBursts)
}

// peer is the Go module of centrifuge, the library with which the node is compared.
const peer = "github.com/centrifugal/centrifuge"

// goals returns the goals of a case: the largest ratios of the node's CPU time per message to that
// of the bare loop and to that of centrifuge.
func (c Case) goals() (ofBare, ofPeer float64) {
	switch {
	case c.Burst >= 32, c.Subscribers >= 5000:
		return 1.1, 0.3
	case c.Burst >= 8:
		return 1.1, 0.5
	}
	return 1.1, 0.65
}

// Measure measures the cases one after the other. In each round of a case the sides take turns, and
// each round begins with another side. Each turn has processes of its own.
func Measure(ctx context.Context, p Plan) (*Measured, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	w, err := bench.StartWatch(ctx, p.Self)
	if err != nil {
		return nil, err
	}
	defer w.End()
	out := &Measured{Conditions: bench.NewConditions(p.Version), Peer: peer + " " + linked(peer),
		Rounds: p.Rounds, Seconds: p.Duration.Seconds()}
	turns := len(p.Cases)
	if p.Idle > 0 {
		turns++
	}
	p.Ticker.Plan(turns*p.Rounds*len(sides()) + len(p.Cases))
	for _, c := range p.Cases {
		r, err := p.measure(ctx, c, out)
		if err != nil {
			return nil, p.failed(ctx, fmt.Errorf("%s: %w", c, err))
		}
		out.Cases = append(out.Cases, *r)
	}
	if p.Idle > 0 {
		if out.Idle, err = p.rest(ctx); err != nil {
			return nil, p.failed(ctx, err)
		}
	}
	out.Conditions.Hiccup, err = w.Lap()
	return out, err
}

// failed returns err, or the error of an interrupted run if ctx is done.
func (p *Plan) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return bench.Stopped(ctx)
	}
	return err
}

// linked returns the version of a module that this program contains.
func linked(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return m.Version
			}
		}
	}
	return "unknown"
}

// inTurns calls turn for each side in each round.
func (p *Plan) inTurns(turn func(side int) error) error {
	for round := range p.Rounds {
		for i := range sides() {
			if err := turn((i + round) % len(sides())); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure measures one case. It notes the niceness of the subscribers in all.
func (p *Plan) measure(ctx context.Context, c Case, all *Measured) (*CaseResult, error) {
	p.Ticker.Step("%s, what the messages are", c)
	texts, err := p.texts(ctx, c)
	if err != nil {
		return nil, err
	}
	r := &CaseResult{Case: c}
	for _, t := range texts {
		r.MessageBytes = max(r.MessageBytes, len(t))
	}
	for _, side := range sides() {
		r.Sides = append(r.Sides, SideResult{Name: side})
	}
	err = p.inTurns(func(side int) error {
		p.Ticker.Step("%s of %s: %.0f messages a second", c, sides()[side],
			float64(c.Subscribers*c.Burst)*c.Rate)
		for try := 1; ; try++ {
			t := turn{Case: c, spec: p.spec(c, sides()[side], texts)}
			if err := t.run(ctx, p.Self); err != nil {
				return fmt.Errorf("%s: %w", sides()[side], err)
			}
			p.Ticker.Did(t.progress())
			all.Nice = t.heard.Nice
			why := t.wrong()
			if strings.HasPrefix(why, notKept) && try < tries {
				r.Repeated++
				continue
			}
			t.add(&r.Sides[side])
			if said := sides()[side] + ": "; why != "" && !strings.Contains(r.Invalid, said) {
				r.Invalid = strings.TrimPrefix(r.Invalid+"; "+said+why, "; ")
			}
			return nil
		}
	})
	goalBare, goalPeer := c.goals()
	r.OfBare = ratioOf(&r.Sides[0], &r.Sides[1], goalBare)
	r.OfPeer = ratioOf(&r.Sides[0], &r.Sides[2], goalPeer)
	return r, err
}

// spec returns the input of the process that serves a side. A fifth more bursts than are measured,
// at least two, come before the clock starts.
func (p *Plan) spec(c Case, side string, texts [][]byte) spec {
	n := p.bursts(c)
	return spec{Side: side, Burst: c.Burst, Warm: max(n/5, 2), Bursts: n,
		Interval: time.Duration(float64(time.Second) / c.Rate), Texts: texts}
}

// texts runs a turn of the node's side, and returns its messages of two bursts. The other sides
// send copies of these messages.
func (p *Plan) texts(ctx context.Context, c Case) ([][]byte, error) {
	t := turn{Case: Case{Subscribers: 1, Burst: c.Burst}, keeps: true, spec: spec{Side: nodeSide,
		Burst: c.Burst, Warm: 2, Bursts: 2, Interval: 20 * time.Millisecond}}
	err := t.run(ctx, p.Self)
	if err == nil && len(t.heard.Texts) != 4*c.Burst {
		err = fmt.Errorf("%d of %d arrived", len(t.heard.Texts), 4*c.Burst)
	}
	if err != nil {
		return nil, fmt.Errorf("read the messages: %w", err)
	}
	return t.heard.Texts[2*c.Burst:], nil
}

// rest measures the memory of subscribers that get no messages. The sides take turns.
func (p *Plan) rest(ctx context.Context) (*IdleResult, error) {
	out := &IdleResult{Subscribers: p.Idle, Goal: goalIdle}
	for _, side := range sides() {
		out.Sides = append(out.Sides, IdleSide{Name: side})
	}
	err := p.inTurns(func(side int) error {
		p.Ticker.Step("%d idle subscribers of %s", p.Idle, sides()[side])
		t := turn{Case: Case{Subscribers: p.Idle, Burst: 1},
			spec: spec{Side: sides()[side], Burst: 1}}
		if err := t.idle(ctx, p.Self); err != nil {
			return fmt.Errorf("%d idle subscribers of %s: %w", p.Idle, sides()[side], err)
		}
		s := &out.Sides[side]
		s.RSS = append(s.RSS, float64(t.held.RSS)/float64(p.Idle))
		s.Heap = append(s.Heap, float64(t.held.Heap)/float64(p.Idle))
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.Met = bench.Median(out.Sides[0].RSS) <= out.Goal
	return out, nil
}
