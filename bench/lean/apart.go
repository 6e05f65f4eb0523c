package lean

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"clobd/bench/process"
)

// Apart is a load that other processes send.
type Apart struct {
	load     Load // planned
	short    bool
	partners []*process.Partner
	whose    [][]int // by partner: the indices of its requests
	news     chan tidings
	start    time.Time
}

// line is what a process that sends tells the one that started it.
type line struct {
	Moment *Moment  `json:",omitempty"`
	End    *recount `json:",omitempty"`
}

// recount is Measured as it is told.
type recount struct {
	Measured
	Times [4][]byte // Service, Corrected, Late, Shed in the encoding V2
	Bits  []uint64
}

// tidings is a line of a partner, or why there is none.
type tidings struct {
	partner int
	line
	err error
}

// Dispatch starts processes of the program self with the command "lean" and gives each its share of
// the lanes. They start together. It returns when all connections are open. low: the processes have
// a low priority, as they stand for other machines.
func (l *Load) Dispatch(ctx context.Context, self string, processes int, low bool) (
	*Apart, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	if l.Seen != nil || processes < 1 || processes > l.Lanes {
		return nil, fmt.Errorf("load: %d processes for %d lanes, or answers that are to be seen here",
			processes, l.Lanes)
	}
	a := &Apart{news: make(chan tidings, processes)}
	a.load, a.short = l.planned()
	for k := range processes {
		p, err := a.send(ctx, self, k, processes)
		if p != nil {
			a.partners = append(a.partners, p)
		}
		if err == nil && low {
			err = p.Lower()
		}
		if err != nil {
			return nil, a.failed(err)
		}
	}
	for _, p := range a.partners {
		ready := ""
		if err := p.Hear(&ready); err != nil {
			return nil, a.failed(err)
		}
	}
	// Long enough for each to be told.
	if a.start = time.Now().Add(20 * time.Millisecond); l.Start.After(a.start) {
		a.start = l.Start
	}
	for k, p := range a.partners {
		err := p.Tell(a.start)
		if err != nil {
			return nil, a.failed(err)
		}
		go a.hear(k)
	}
	return a, nil
}

// send starts a process and tells it its share.
func (a *Apart) send(ctx context.Context, self string, k, n int) (*process.Partner, error) {
	p, err := process.Start(ctx, self, "lean")
	if err != nil {
		return nil, err
	}
	part, whose := a.load.share(k, n)
	a.whose = append(a.whose, whose)
	out := bufio.NewWriterSize(p.In, 1<<20)
	to := gob.NewEncoder(out)
	return p, errors.Join(to.Encode(&part), to.Encode(a.short), out.Flush())
}

// failed ends all processes, and says what they complain of.
func (a *Apart) failed(err error) error {
	said := ""
	for _, p := range a.partners {
		said += p.End()
	}
	return fmt.Errorf("send from other processes: %w\n%s", err, said)
}

// hear reads the lines of a partner until its end.
func (a *Apart) hear(k int) {
	for {
		h := tidings{partner: k}
		h.err = a.partners[k].Hear(&h.line)
		a.news <- h
		if h.err != nil || h.End != nil {
			return
		}
	}
}

// Wait waits for the end of the load, and ends the processes. Its results are those of Load.Run.
func (a *Apart) Wait() (*Measured, error) {
	sum := newMeasured(len(a.load.Requests))
	sum.Began, sum.Full = a.start, !a.short
	shows := crier{load: &a.load, parts: len(a.partners), moments: map[int64]*joined{}}
	var problem error
	for left := len(a.partners); left > 0; {
		h := <-a.news
		switch {
		case h.err != nil:
			problem = errors.Join(problem, h.err)
			left--
		case h.Moment != nil:
			shows.add(h.Moment)
		case h.End != nil:
			left--
			problem = errors.Join(problem, sum.add(h.End, a.whose[h.partner], momentOf(a.load.Duration)))
		}
	}
	if problem != nil {
		return nil, a.failed(problem)
	}
	for _, p := range a.partners {
		p.End()
	}
	return sum, nil
}

// add joins what another process measured; whose are the indices of its requests.
func (m *Measured) add(t *recount, whose []int, length time.Duration) error {
	for i, h := range []*hdrhistogram.Histogram{m.Service, m.Corrected, m.Late, m.Shed} {
		other, err := hdrhistogram.Decode(t.Times[i])
		if err != nil {
			return fmt.Errorf("read a histogram: %w", err)
		}
		h.Merge(other)
	}
	m.Sent, m.Good = m.Sent+t.Sent, m.Good+t.Good
	m.Busy, m.Failed, m.Unsent = m.Busy+t.Busy, m.Failed+t.Failed, m.Unsent+t.Unsent
	m.Acked, m.Refused = m.Acked+t.Acked, m.Refused+t.Refused
	m.Sampled += t.Sampled
	m.ThreadCPU, m.ProcessCPU = m.ThreadCPU+t.ThreadCPU, m.ProcessCPU+t.ProcessCPU
	m.Processes, m.Nice = m.Processes+1, t.Nice
	m.Took, m.Full = max(m.Took, t.Took), m.Full && t.Full
	if m.Failure == "" {
		m.Failure = t.Failure
	}
	m.Moments = mergeMoments(m.Moments, t.Moments, length)
	for i, at := range whose {
		if t.Bits[i/64]>>(i%64)&1 == 1 {
			m.good[at/64] |= 1 << (at % 64)
		}
	}
	return nil
}

// joined is a moment of which some processes have told.
type joined struct {
	Moment
	parts int
}

// crier makes Progress of the moments of several processes.
type crier struct {
	load    *Load
	parts   int
	moments map[int64]*joined
	tell    func(Moment)
}

// add adds a moment of one process. When all have told of it, it is shown.
func (s *crier) add(m *Moment) {
	if s.load.Progress == nil {
		return
	}
	if s.tell == nil {
		s.tell = s.load.teller()
	}
	length := momentOf(s.load.Duration)
	slot := int64((m.End + length/2) / length)
	of := s.moments[slot]
	if of == nil {
		of = &joined{Moment: *m}
		s.moments[slot] = of
	} else {
		of.add(m)
	}
	if of.parts++; of.parts < s.parts {
		return
	}
	// A process that stood still has left out moments: nobody will complete those that are older.
	for _, at := range slices.Sorted(maps.Keys(s.moments)) {
		if at <= slot {
			s.tell(s.moments[at].Moment)
			delete(s.moments, at)
		}
	}
}

// Serve is the main function of a process that sends a share of a load. It reads the share and the
// instant of the start from in, and writes lines to out.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	from := bufio.NewReaderSize(in, 1<<20)
	var l Load // planned
	var short bool
	share := gob.NewDecoder(from)
	if err := errors.Join(share.Decode(&l), share.Decode(&short)); err != nil {
		return fmt.Errorf("read what to send: %w", err)
	}
	if err := l.validate(); err != nil {
		return err
	}
	answers := json.NewEncoder(out)
	l.moment = func(m Moment) {
		_ = answers.Encode(line{Moment: &m}) // whether anybody listens shows at the end
	}
	m, err := l.run(ctx, short, func() (at time.Time, err error) {
		if err := answers.Encode("ready"); err != nil {
			return at, err
		}
		return at, process.ReadLine(from, &at)
	})
	if m == nil {
		return err
	}
	t := recount{Measured: *m, Bits: m.good}
	for i, h := range []*hdrhistogram.Histogram{m.Service, m.Corrected, m.Late, m.Shed} {
		if t.Times[i], err = h.EncodeV2(); err != nil {
			return fmt.Errorf("encode a histogram: %w", err)
		}
	}
	return answers.Encode(line{End: &t})
}
