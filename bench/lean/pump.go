package lean

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"clobd/bench/process"
)

// pump is a load in work. One thread owns it. Times are in ns from the start of the load.
type pump struct {
	Load     // planned
	open     bool
	short    bool // an open loop has fewer requests than the duration has room for
	to       syscall.Sockaddr
	stencils []*stencil
	early    early
	lanes    []lane
	poller   *poller
	room     []byte  // what was read last
	out      []byte  // what is sent next
	text     []byte  // of desks: the message in the making
	sends    []int64 // of desks: when each request was sent, 0 if it was not, or answered
	m        *Measured
	calm     *Measured   // what is due before the loop has settled; nil: nothing is
	codes    [][]byte    // of Sheds, as they stand in an answer
	stopped  atomic.Bool // by ctx

	began    time.Time // the start
	now      int64
	last     int64 // the last answer
	end      int64 // of the duration; after it a closed loop sends nothing
	deadline int64 // after it an open loop sends nothing
	cursor   int   // the first request of an open loop that was not yet due
	left     int   // requests that were not sent
	inFlight int
	pauses   standstills // in which the thread stood still, oldest first
	resting  int         // lanes that do nothing until lane.again
	over     bool        // nothing is sent any more
	settled  bool        // Settle is over
	patient  int64       // until when answers are awaited after the end of ctx, 0 before that

	thread, all time.Duration // CPU time of the thread and the process when the measured part began

	second  []byte // the time in seconds after 1970, as text
	stale   int64  // when it no longer holds
	scribe  *scribe
	leaf    *leaf
	turnsAt int64 // the end of the moment
}

// forever is later than anything.
const forever = int64(1) << 62

// connectTime is how long all connections may take to open.
const connectTime = 10 * time.Second

// Run sends the load from a thread of this process. An error means that there was no load: bad
// parameters, no connection. What fails later is in Measured. If ctx ends, nothing more is sent;
// Run returns when what was in flight is answered, or after lastAnswers, with what it measured so
// far and the error of ctx.
func (l *Load) Run(ctx context.Context) (*Measured, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	planned, short := l.planned()
	return planned.run(ctx, short, func() (time.Time, error) { return l.Start, nil })
}

// run sends a load that was planned. ready is called when all connections are open, and returns
// when to start.
func (l *Load) run(ctx context.Context, short bool, ready func() (time.Time, error)) (
	*Measured, error) {
	p := &pump{Load: *l, open: l.open(), short: short}
	if p.Patience == 0 {
		p.Patience = time.Minute
	}
	if err := p.prepare(ctx); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { p.stopped.Store(true) })
	defer stop()
	ended := make(chan error, 1)
	go func() {
		// The thread must outlive this goroutine: processes that were started from it would end with
		// it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		exactTimers(true)
		defer exactTimers(false)
		ended <- p.work(ctx, ready)
	}()
	if err := <-ended; err != nil {
		return nil, err
	}
	return p.m, ctx.Err()
}

// prepare makes all that the thread needs but the connections.
func (p *pump) prepare(ctx context.Context) (err error) {
	if p.to, err = resolve(ctx, p.Addr); err != nil {
		return fmt.Errorf("find %s: %w", p.Addr, err)
	}
	for i := range p.Routes {
		if p.Flight > 0 {
			p.sends = make([]int64, len(p.Requests))
			break // a desk is authenticated once
		}
		s, err := newStencil(&p.Routes[i], p.Addr)
		if err != nil {
			return fmt.Errorf("prepare %s %s: %w", p.Routes[i].Method, p.Routes[i].Path, err)
		}
		p.stencils = append(p.stencils, s)
	}
	p.signEarly()
	p.deal()
	p.room, p.out = make([]byte, 256<<10), make([]byte, 0, 64<<10)
	p.m = newMeasured(len(p.Requests))
	p.m.Processes, p.m.Nice = 1, process.Niceness()
	if p.Settle > 0 {
		p.calm = newMeasured(0)
	}
	for _, code := range p.Sheds {
		p.codes = append(p.codes, fmt.Appendf(nil, `"code":"%s"`, code))
	}
	p.left, p.end, p.deadline = len(p.Requests), forever, forever
	if p.Duration > 0 {
		p.end, p.deadline = int64(p.Duration), 2*int64(p.Duration)-int64(p.Settle)
	}
	if p.Repeat {
		p.left = int(forever)
	}
	return nil
}

// work is the main function of the thread.
func (p *pump) work(ctx context.Context, ready func() (time.Time, error)) (err error) {
	if p.poller, err = newPoller(); err != nil {
		return fmt.Errorf("wait for sockets: %w", err)
	}
	defer p.poller.close()
	defer func() {
		for i := range p.lanes {
			p.hangUp(&p.lanes[i])
		}
	}()
	p.began = time.Now()
	if err := p.connect(ctx); err != nil {
		return err
	}
	for i := range p.lanes {
		if l := &p.lanes[i]; p.Flight > 0 && l.phase == idle {
			if err := (parley{p, l}).enter(ctx); err != nil {
				return err
			}
		}
	}
	if err := p.stand(ready); err != nil {
		return fmt.Errorf("wait for the start: %w", err)
	}
	p.thread, p.all = threadCPU(), processCPU()
	p.start()
	err = p.loop()
	p.m.ThreadCPU, p.m.ProcessCPU = threadCPU()-p.thread, processCPU()-p.all
	p.finish()
	return err
}

// stand waits for the start. Desks answer pings while ready waits for other processes, too.
func (p *pump) stand(ready func() (time.Time, error)) error {
	told := make(chan error, 1)
	var at time.Time // when told has had its value
	ask := func() {
		begin, err := ready()
		at = begin
		told <- err
	}
	if p.Flight > 0 {
		go ask()
	} else {
		ask()
	}
	for known := false; ; {
		select {
		case err := <-told:
			if known = true; err != nil {
				return err
			}
		default:
		}
		d := time.Millisecond
		if known {
			if d = min(time.Until(at), longestWait); d <= 0 || p.stopped.Load() {
				return nil
			}
		}
		n, err := p.poller.wait(d)
		if err != nil {
			return err
		}
		for _, e := range p.poller.events[:n] {
			if p.Flight == 0 {
				return errors.New("the server closes a connection")
			}
			if err := (parley{p, &p.lanes[e.Fd]}).receive(); err != nil {
				return err
			}
		}
	}
}

// connect opens the connections of all lanes, but not of those that would be desks and have no
// requests.
func (p *pump) connect(ctx context.Context) error {
	all := 0
	for i := range p.lanes {
		l := &p.lanes[i]
		if p.Flight > 0 && len(l.list) == 0 {
			l.again = forever
			continue
		}
		if err := p.dial(l); err != nil {
			return err
		}
		all++
	}
	for open := 0; open < all; {
		n, err := p.poller.wait(longestWait)
		switch {
		case err != nil:
			return fmt.Errorf("wait for sockets: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Since(p.began) > connectTime:
			return fmt.Errorf("connect to %s: %d of %d connections are open after %v", p.Addr, open,
				all, connectTime)
		}
		for _, e := range p.poller.events[:n] {
			l := &p.lanes[e.Fd]
			if l.phase != dialing {
				return fmt.Errorf("connect to %s: the server closes a connection", p.Addr)
			}
			if err := p.dialed(l); err != nil {
				return err
			}
			open++
		}
	}
	return nil
}

// start starts the clock.
func (p *pump) start() {
	p.began, p.now, p.stale = time.Now(), 0, 0
	p.m.Began = p.began
	if lag := p.began.Sub(p.Start); p.open && !p.Start.IsZero() {
		p.Due = slices.Clone(p.Due)
		for i := range p.Due {
			p.Due[i] -= lag
		}
		p.deadline -= int64(lag)
	}
	for i := range p.lanes {
		l := &p.lanes[i]
		l.sent, l.free, l.filled = 0, 0, 0
	}
	p.turnsAt = int64(momentOf(p.Duration))
	p.scribe, p.leaf = newScribe(p.teller())
	if !p.open {
		for i := range p.lanes {
			p.proceed(&p.lanes[i])
		}
	}
}

// teller makes Progress of Moments; nil if nobody asks.
func (l *Load) teller() func(Moment) {
	if l.Progress == nil {
		return l.moment
	}
	var sum Progress
	return func(m Moment) {
		sum.Rate = float64(m.Done) / max(m.End-sum.Elapsed, 1).Seconds()
		sum.P50, sum.P99, sum.Elapsed = m.P50, m.P99, m.End
		sum.Done, sum.Failed = sum.Done+m.Done, sum.Failed+m.Failed
		if l.Duration > 0 {
			sum.Left = max(l.Duration-m.End, 0)
		}
		l.Progress(sum)
	}
}

// longestWait bounds a wait, so that an end of ctx is soon seen.
const longestWait = 50 * time.Millisecond

// lastAnswers is how long the answers to what is in flight may take after the end of ctx.
const lastAnswers = 2 * time.Second

// given sends nothing more, and reports whether the answers have had their time. A request whose
// answer nobody awaits may be carried out after what its sender does next: an order, after the
// cancel of all orders.
func (p *pump) given() bool {
	if p.patient == 0 {
		p.over, p.patient = true, p.clock()+int64(lastAnswers)
	}
	return p.clock() > p.patient
}

// loop runs until all is sent and answered, or the time is over.
func (p *pump) loop() error {
	for p.inFlight > 0 || p.left > 0 && !p.over {
		if p.stopped.Load() && p.given() {
			break
		}
		d := p.untilNext()
		wake := p.clock()
		p.pauses.note(p.now, wake) // no CPU since the last wait
		wake += max(int64(d), 0)
		n, err := p.poller.wait(d)
		if err != nil {
			return fmt.Errorf("wait for sockets: %w", err)
		}
		p.now = p.clock()
		p.pauses.note(wake, p.now)
		if p.settled != (p.now >= int64(p.Settle)) {
			p.settled, p.thread, p.all = true, threadCPU(), processCPU()
		}
		if p.now >= p.end && !p.open && !p.over {
			p.over, p.m.Full = true, true
		}
		for _, e := range p.poller.events[:n] {
			// What one wait reports was there at its end: later work must not age it.
			now := p.now
			p.event(&p.lanes[e.Fd], e.Events)
			p.now = now
		}
		if p.open {
			p.sendDue()
		}
		p.turn()
	}
	return nil
}

// untilNext is how long to wait for sockets.
func (p *pump) untilNext() time.Duration {
	now := p.clock()
	at := min(now+int64(longestWait), p.turnsAt)
	if p.open && p.cursor < len(p.Due) {
		at = min(at, int64(p.Due[p.cursor]))
	}
	if p.resting > 0 {
		for i := range p.lanes {
			if l := &p.lanes[i]; l.phase == pausing || l.phase == shut && p.open && !p.over {
				at = min(at, l.again)
			}
		}
	}
	return asDuration(at - now)
}

// sendDue sends what has become due on idle lanes. What is due on a busy lane follows its answer.
func (p *pump) sendDue() {
	p.now = p.clock()
	for range eventsAtOnce {
		if p.cursor == len(p.Due) || int64(p.Due[p.cursor]) > p.now || p.over {
			return
		}
		i := p.cursor
		p.cursor++
		l := &p.lanes[p.Requests[i].Lane]
		if l.phase == idle && l.next < len(l.list) && int(l.list[l.next]) == i {
			p.proceed(l)
		}
	}
}

// turn does what is done now and then.
func (p *pump) turn() {
	p.resume()
	if p.now < p.turnsAt {
		return
	}
	p.overdue()
	length := int64(momentOf(p.Duration))
	p.leaf = p.scribe.turn(p.leaf, p.now)
	p.turnsAt = p.now - p.now%length + length
}

// clock is the time since the start.
func (p *pump) clock() int64 { return int64(time.Since(p.began)) }

// stamp is the time in seconds after 1970, as text.
func (p *pump) stamp() []byte {
	if p.now >= p.stale {
		wall := time.Now()
		p.second = strconv.AppendInt(p.second[:0], wall.Unix(), 10)
		p.stale = p.now + int64(time.Second) - int64(wall.Nanosecond())
	}
	return p.second
}

// finish adds up.
func (p *pump) finish() {
	m := p.m
	m.Moments = p.scribe.end(p.leaf, p.clock())
	took := p.last
	if p.open {
		m.Unsent = int64(p.left)
		m.Full = p.left == 0 && p.Duration > 0 && !p.short
		// How long the requests that were given up have waited stands in for what they would have
		// taken, which is longer. Without them the corrected times of a server that is too slow would be
		// too short.
		end := p.clock()
		for i := range p.lanes {
			l := &p.lanes[i]
			for _, k := range l.list[l.next:] {
				if due := int64(p.Due[k]); due <= end {
					note(p.measured(k).Corrected, end-due)
				}
			}
		}
		if n := len(p.Due); n > 0 && p.left == 0 {
			took = max(took, int64(p.Due[n-1]))
		}
	}
	if m.Full {
		took = max(took, int64(p.Duration))
	}
	m.Took = max(asDuration(took)-p.Settle, 0)
}

// asDuration names the unit of the times of a pump.
func asDuration(ns int64) time.Duration { return time.Duration(ns) }

// processCPU is user plus system time of this process.
func processCPU() time.Duration {
	d, _ := process.CPUTime() // of oneself does not fail
	return d
}
