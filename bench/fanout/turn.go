package fanout

import (
	"context"
	"fmt"
	"time"

	"clobd/bench"
	"clobd/bench/crowd"
	"clobd/bench/process"
)

// turn is one measurement of one side, with a server and subscribers of its own.
type turn struct {
	Case
	spec  spec
	ran   published
	cpu   time.Duration
	held  held
	heard crowd.Heard
	keeps bool // the first subscriber keeps its messages
}

// patience is how long subscribers may take to read the last messages after all are published.
const patience = 5 * time.Second

// run publishes all bursts to all subscribers, and waits until they have them.
func (t *turn) run(ctx context.Context, self string) error {
	return t.with(ctx, self, func(server *process.Partner, hall *crowd.Hall) error {
		if err := server.Ask(askRun, &t.ran); err != nil {
			return err
		}
		heard, err := hall.Hear(patience)
		if err != nil {
			return err
		}
		t.heard = *heard
		return server.Ask(askCPU, &t.cpu)
	})
}

// idle measures the memory of a server whose subscribers get no messages.
func (t *turn) idle(ctx context.Context, self string) error {
	return t.with(ctx, self, func(server *process.Partner, _ *crowd.Hall) error {
		time.Sleep(settle)
		return server.Ask(askRest, &t.held)
	})
}

// with starts a server and its subscribers, and calls do when all of them have subscribed.
func (t *turn) with(ctx context.Context, self string,
	do func(server *process.Partner, hall *crowd.Hall) error) error {
	all := time.Duration(t.spec.Warm+t.spec.Bursts) * t.spec.Interval
	ctx, cancel := context.WithTimeout(ctx, 2*all+3*answerTime)
	defer cancel()
	server, addr, err := t.spec.start(ctx, self)
	if err != nil {
		return err
	}
	defer server.End()
	c := crowd.Crowd{Addr: addr, Path: paths()[t.spec.Side], Subscribers: t.Subscribers,
		Burst: t.Burst, Bursts: t.spec.Warm + t.spec.Bursts, Texts: t.keeps, Low: true, Pinned: true}
	switch t.spec.Side {
	case nodeSide:
		c.Wish = wish(t.Burst)
	case centrifugeSide:
		c.Wish = []byte(`{"id":1,"connect":{}}`)
	}
	hall, err := c.Gather(ctx, self)
	if err == nil {
		defer hall.End()
		err = do(server, hall)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, server.End())
	}
	return nil
}

// wish returns the message that subscribes to a token of each market of a burst.
func wish(burst int) []byte {
	b := []byte(`{"type":"market","assets_ids":[`)
	for m := range burst {
		if m > 0 {
			b = append(b, ',')
		}
		b = append(token(m).AppendDecimal(append(b, '"')), '"')
	}
	return append(b, "]}"...)
}

// last returns, for the measured bursts, the times from when a burst was due until the last
// subscriber had read it. end is when the last of all was read, in ns after 1970.
func (t *turn) last() (last bench.Recorder, end int64) {
	last, end = bench.NewRecorder(), t.ran.Start
	for k, at := range t.heard.Last[min(t.spec.Warm, len(t.heard.Last)):] {
		if at > 0 {
			due := t.ran.Start + int64(k)*int64(t.spec.Interval)
			last.Record(time.Duration(max(at-due, 0)))
			end = max(end, at)
		}
	}
	return last, end
}

// all returns how many messages arrive if none is missing, including those before the clock starts.
func (t *turn) all() int64 {
	return int64(t.Subscribers) * int64(t.Burst) * int64(t.spec.Warm+t.spec.Bursts)
}

// progress is how many measured messages were read, and in which time.
func (t *turn) progress() (messages int64, took time.Duration) {
	_, end := t.last()
	share := float64(t.spec.Bursts) / float64(t.spec.Warm+t.spec.Bursts)
	return int64(float64(t.heard.Messages) * share), time.Duration(end - t.ran.Start)
}

// add appends the turn to a side's rounds.
func (t *turn) add(s *SideResult) {
	last, _ := t.last()
	messages, took := t.progress()
	share := float64(t.spec.Bursts) / float64(t.spec.Warm+t.spec.Bursts) // measured bursts of all
	s.CPUMicros = append(s.CPUMicros, float64(t.cpu.Nanoseconds())/1e3/(float64(t.all())*share))
	s.Last, s.Late = append(s.Last, last.Latency()), append(s.Late, t.ran.Late.P99)
	s.Made = append(s.Made, t.ran.Made)
	seconds := max(took.Seconds(), 1e-3)
	s.Messages = append(s.Messages, float64(messages)/seconds)
	s.Bytes = append(s.Bytes, float64(t.heard.Bytes)*share/seconds)
	s.Gaps, s.Cuts = s.Gaps+t.heard.Gaps, s.Cuts+t.heard.Cuts
}

// wrong says what makes the turn invalid. It returns "" if the turn is valid.
func (t *turn) wrong() string {
	asked := time.Duration(t.spec.Bursts) * t.spec.Interval
	_, end := t.last()
	read := time.Duration(end - t.ran.Start)
	switch {
	case t.heard.Messages != t.all() || t.heard.Gaps > 0 || t.heard.Cuts > 0:
		return fmt.Sprintf("%d of %d messages arrived, %d gaps, %d sockets cut", t.heard.Messages,
			t.all(), t.heard.Gaps, t.heard.Cuts)
	case t.ran.Took > asked+asked/32+stall, read > asked+asked/8+stall:
		return fmt.Sprintf("%s: what was due within %.2f s was published within %.2f s and read within "+
			"%.2f s", notKept, asked.Seconds(), t.ran.Took.Seconds(), read.Seconds())
	}
	return ""
}

const (
	notKept = "the rate was not reached"
	tries   = 3                      // how often a turn is measured that does not reach its rate
	stall   = 250 * time.Millisecond // a pause of the machine that is forgiven
)

// start starts a server process for one side of the comparison. It returns the server's address.
func (s *spec) start(ctx context.Context, self string) (*process.Partner, string, error) {
	p, err := process.Start(ctx, self, "fan-side")
	if err != nil {
		return nil, "", err
	}
	var addr string
	if err := p.Ask(s, &addr); err != nil {
		return nil, "", fmt.Errorf("start %s: %w\n%s", s.Side, err, p.End())
	}
	return p, addr, nil
}
