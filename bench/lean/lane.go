package lean

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"syscall"
)

// phase is what a lane does.
type phase uint8

const (
	shut    phase = iota // no connection; a new one is tried at lane.again
	dialing              // the connection is being opened
	idle                 // nothing is in flight
	waiting              // a request is in flight, or a part of it is unsent
	pausing              // the server was busy: until lane.again
)

// rests reports whether a lane does nothing until lane.again.
func (s phase) rests() bool { return s == shut || s == pausing }

// lane is one connection and what goes over it: a request at a time in HTTP or, on a desk, messages
// with up to Load.Flight answers due. Times are in ns from the start of the load.
type lane struct {
	number int
	fd     int
	phase  phase
	list   []int32 // the indices of its requests
	next   int     // in list
	rest   []byte  // the first bytes of an answer
	out    []byte  // the last bytes of the request in flight, which the kernel has not taken yet

	request int32 // in flight
	sent    int64 // when it was, or when the connection was begun
	free    int64 // since when nothing is in flight
	again   int64 // of shut and pausing
	busy    bool  // the last answer was 503, and the next request is the same
	since   int64 // of busy: when the request was sent first

	// Of a desk only:
	flying int   // requests in flight
	heard  int64 // its last answer, or when the first request was sent after that
	filled int64 // when the last request was sent that there was room for; free is the end of that
}

// has reports whether a request of an open loop waits for the lane.
func (p *pump) has(l *lane) bool {
	return l.next < len(l.list) && int64(p.Due[l.list[l.next]]) <= p.now
}

// dial begins to open a lane's connection.
func (p *pump) dial(l *lane) error {
	fd, err := dial(p.to, l.home(p.Homes))
	if err == nil {
		err = p.poller.watch(fd, l.number, syscall.EPOLL_CTL_ADD, syscall.EPOLLOUT)
		if err != nil {
			_ = syscall.Close(fd)
		}
	}
	if err != nil {
		return fmt.Errorf("connect to %s: %w", p.Addr, err)
	}
	p.set(l, dialing)
	l.fd, l.sent = fd, p.now
	l.rest, l.out = l.rest[:0], l.out[:0]
	return nil
}

// home is the address that a lane's connection comes from, nil for what the system picks.
func (l *lane) home(homes int) syscall.Sockaddr {
	if homes == 0 {
		return nil
	}
	return &syscall.SockaddrInet4{Addr: [4]byte{127, 1, byte(l.number % homes), 1}}
}

// dialed ends the opening of a lane's connection.
func (p *pump) dialed(l *lane) error {
	err := dialed(l.fd)
	if err == nil {
		err = p.poller.watch(l.fd, l.number, syscall.EPOLL_CTL_MOD, syscall.EPOLLIN)
	}
	if err != nil {
		p.hangUp(l)
		return fmt.Errorf("connect to %s: %w", p.Addr, err)
	}
	p.set(l, idle)
	l.free = p.now
	return nil
}

// hangUp closes a lane's connection.
func (p *pump) hangUp(l *lane) {
	if l.phase != shut {
		_ = syscall.Close(l.fd)
	}
	p.set(l, shut)
	l.again = p.now + pause
}

// set sets the phase of a lane.
func (p *pump) set(l *lane, to phase) {
	if l.phase.rests() {
		p.resting--
	}
	if l.phase = to; to.rests() {
		p.resting++
	}
}

// event handles what epoll reports of a lane.
func (p *pump) event(l *lane, events uint32) {
	if p.Flight > 0 {
		parley{p, l}.hear(events)
		return
	}
	switch l.phase {
	case dialing:
		if err := p.dialed(l); err != nil {
			p.unreachable(l, err)
			return
		}
		p.proceed(l)
	case waiting:
		if events&syscall.EPOLLOUT != 0 && len(l.out) > 0 {
			p.flush(l)
		}
		if l.phase == waiting && events&^syscall.EPOLLOUT != 0 {
			p.read(l)
		}
	case idle, pausing: // nobody asked: the server has closed the connection
		p.hangUp(l)
		if !p.open && !p.over {
			p.fail("the server closes a connection on which nothing is in flight")
		}
	}
}

// proceed sends the next request of an idle lane, if there is one to be sent now.
func (p *pump) proceed(l *lane) {
	switch {
	case l.phase != idle, p.over:
		return
	case p.open && p.now > p.deadline:
		p.over = true
		return
	case p.Flight > 0:
		parley{p, l}.converse()
		return
	case p.open:
		if p.has(l) {
			p.shoot(l)
		}
		return
	case l.next == len(l.list) && p.Repeat:
		l.next = 0
	case l.next == len(l.list):
		// What is sent from now on is less than the load says. Without a duration that is the way of
		// things.
		p.over = p.Duration > 0
		return
	}
	p.shoot(l)
}

// shoot sends the next request of a lane.
func (p *pump) shoot(l *lane) {
	i := l.list[l.next]
	l.next++
	r := &p.Requests[i]
	stamp, signature := p.signature(int(i))
	p.out = p.stencils[r.Route].append(p.out[:0], stamp, signature, r.Body)
	at := p.clock()
	due := l.sent // in a closed loop the answer to what was sent last may have come at any time since
	if p.open {
		due = int64(p.Due[i])
	}
	m := p.measured(i)
	note(m.Late, p.pauses.lateness(due, l.free, at))
	m.Sent++
	p.left--
	p.inFlight++
	p.set(l, waiting)
	l.request, l.sent, p.now = i, at, at
	p.transmit(l)
}

// transmit sends what lies in p.out. What the kernel does not take at once follows later.
func (p *pump) transmit(l *lane) {
	if len(l.out) > 0 {
		l.out = append(l.out, p.out...)
		return
	}
	n, no := send(l.fd, p.out)
	switch {
	case no == syscall.EAGAIN || no == syscall.EINTR:
		n = 0
	case no != 0:
		p.lost(l, no)
		return
	}
	if n < len(p.out) {
		l.out = append(l.out[:0], p.out[n:]...)
		p.watchOut(l, syscall.EPOLLIN|syscall.EPOLLOUT)
	}
}

// watchOut sets what is waited for while a part of a request is unsent, and then again.
func (p *pump) watchOut(l *lane, events uint32) {
	if err := p.poller.watch(l.fd, l.number, syscall.EPOLL_CTL_MOD, events); err != nil {
		p.lost(l, err)
	}
}

// flush sends more of a request that the kernel did not take at once.
func (p *pump) flush(l *lane) {
	n, no := send(l.fd, l.out)
	switch {
	case no == syscall.EAGAIN || no == syscall.EINTR:
		return
	case no != 0:
		p.lost(l, no)
		return
	}
	l.out = l.out[:copy(l.out, l.out[n:])]
	if len(l.out) == 0 {
		p.watchOut(l, syscall.EPOLLIN)
	}
}

// read reads a lane's answer, or a part of it.
func (p *pump) read(l *lane) {
	n, no := receive(l.fd, p.room)
	switch {
	case no == syscall.EAGAIN || no == syscall.EINTR:
		return
	case no != 0:
		p.lost(l, no)
		return
	case n == 0:
		p.lost(l, errors.New("the server closes the connection before the end of its answer"))
		return
	}
	b := p.room[:n]
	if len(l.rest) > 0 {
		l.rest = append(l.rest, b...)
		b = l.rest
	}
	r, whole, err := scan(b)
	switch {
	case err != nil:
		p.lost(l, err)
	case whole && len(l.out) > 0:
		p.lost(l, fmt.Errorf("status %d before the end of the request: %.300s", r.status, r.body))
	case whole:
		p.answered(l, &r)
		l.rest = l.rest[:0]
		p.proceed(l)
	case len(l.rest) == 0:
		l.rest = append(l.rest, b...)
	}
}

// pause is how long a lane waits after an answer 503 in a closed loop, and before it tries again to
// open a connection, in ns.
const pause = int64(1_000_000)

// answered handles the answer to the request in flight.
func (p *pump) answered(l *lane, r *reply) {
	p.inFlight--
	p.set(l, idle)
	l.free = p.now
	if p.mayRetry(l, r) {
		p.m.Busy++
		l.next-- // it is sent again
		p.left++
		p.set(l, pausing)
		l.again = p.now + pause
		return
	}
	l.busy = false
	if p.open && r.sheds(p.codes) {
		m := p.measured(l.request)
		m.Busy++
		note(m.Shed, p.now-l.sent)
		p.last = p.now
		if r.closes {
			p.hangUp(l)
		}
		return
	}
	p.time(l)
	p.judged(l, r)
}

// judged counts the answer to a request that was in flight as good, or as a failure.
func (p *pump) judged(l *lane, r *reply) {
	q := &p.Requests[l.request]
	w := &p.Routes[q.Route]
	refused, good := r.judge(w, q)
	var problem error
	switch {
	case r.closes:
		problem = fmt.Errorf("the server closes the connection with status %d: %.300s", r.status, r.body)
	case !good:
		problem = fmt.Errorf("status %d: %.300s", r.status, r.body)
	case p.measured(l.request).Good%sampleOf == 0:
		if p.Flight > 0 {
			r.body = firstValue(r.body)
		}
		if err := r.inspect(w, q); err != nil {
			problem = fmt.Errorf("%w: %.300s", err, r.body)
		}
		p.m.Sampled++
	}
	if problem == nil {
		p.good(l, r, refused)
		return
	}
	p.fail(fmt.Sprintf("%s %s: %v", w.Method, w.Path, problem))
	if r.closes {
		p.hangUp(l)
	}
}

// sheds reports whether a server refuses a request because it has too much work.
func (r *reply) sheds(codes [][]byte) bool {
	return r.status == http.StatusServiceUnavailable &&
		slices.ContainsFunc(codes, func(code []byte) bool { return bytes.Contains(r.body, code) })
}

// measured is where request i is counted: what is due before the loop has settled is counted apart.
func (p *pump) measured(i int32) *Measured {
	if p.calm != nil && p.Due[i] < p.Settle {
		return p.calm
	}
	return p.m
}

// mayRetry reports whether an answer says that the server is busy, and it has not been for longer
// than patience.
func (p *pump) mayRetry(l *lane, r *reply) bool {
	if r.status != http.StatusServiceUnavailable || p.open || r.closes {
		return false
	}
	if !l.busy {
		l.busy, l.since = true, l.sent
	}
	return p.now-l.since < int64(p.Patience)
}

// sampleOf is how many good answers there are for one that is parsed.
const sampleOf = 64

// good counts a good answer.
func (p *pump) good(l *lane, r *reply, refused int64) {
	i := l.request
	operations, m := p.Requests[i].operations(), p.measured(i)
	m.Good++
	m.Acked += operations
	m.Refused += refused
	p.m.good[i/64] |= 1 << (i % 64)
	p.leaf.done += operations
	took := p.now - l.sent
	if p.open {
		took = p.now - int64(p.Due[i])
	}
	note(p.leaf.times, took)
	if p.Seen != nil {
		s := Seen{Request: int(i), At: p.began.Add(asDuration(p.now)), Head: r.head}
		if p.open {
			s.Due = p.began.Add(p.Due[i])
		}
		p.Seen(s)
	}
}

// time records how long the request that was in flight took.
func (p *pump) time(l *lane) {
	m := p.measured(l.request)
	note(m.Service, p.now-l.sent)
	if p.open {
		note(m.Corrected, p.now-int64(p.Due[l.request]))
	}
	p.last = p.now
}

// fail counts a request that failed.
func (p *pump) fail(text string) {
	if p.m.Failed == 0 {
		p.m.Failure = text
	}
	p.m.Failed++
	p.leaf.failed++
	p.over = p.over || !p.open
}

// lost ends a request that will have no answer, and opens a new connection in an open loop.
func (p *pump) lost(l *lane, err error) {
	if p.Flight > 0 {
		parley{p, l}.broken(err)
		return
	}
	q := &p.Requests[l.request]
	p.inFlight--
	p.time(l)
	p.hangUp(l)
	l.free = p.now
	p.fail(fmt.Sprintf("%s %s: %v", p.Routes[q.Route].Method, p.Routes[q.Route].Path, err))
	p.reopen(l)
}

// reopen opens a lane's connection again in an open loop.
func (p *pump) reopen(l *lane) {
	if p.over || !p.open {
		return
	}
	if err := p.dial(l); err != nil {
		p.unreachable(l, err)
	}
}

// unreachable fails the requests that wait for a connection that cannot be opened, as each of them
// would find it so. Another try is made after a pause.
func (p *pump) unreachable(l *lane, err error) {
	p.hangUp(l)
	l.again = p.now + 20*pause
	if !p.open {
		p.fail(err.Error())
		return
	}
	for p.has(l) {
		i := l.list[l.next]
		m := p.measured(i)
		note(m.Corrected, p.now-int64(p.Due[i]))
		l.next++
		p.left--
		m.Sent++
		p.fail(err.Error())
	}
}

// resume wakes the lanes whose pause is over.
func (p *pump) resume() {
	if p.resting == 0 {
		return
	}
	for i := range p.lanes {
		l := &p.lanes[i]
		if l.again > p.now {
			continue
		}
		switch l.phase {
		case pausing:
			p.set(l, idle)
			l.free = p.now
			p.proceed(l)
		case shut:
			p.reopen(l)
		}
	}
}

// overdue fails what has waited for an answer, or for a connection, for longer than patience.
func (p *pump) overdue() {
	for i := range p.lanes {
		l := &p.lanes[i]
		if l.flying > 0 && p.now-l.heard >= int64(p.Patience) {
			p.lost(l, errors.New("no answer in time"))
		}
		if p.now-l.sent < int64(p.Patience) {
			continue
		}
		switch l.phase {
		case waiting:
			p.lost(l, errors.New("no answer in time"))
		case dialing:
			p.unreachable(l, fmt.Errorf("connect to %s: no answer in time", p.Addr))
		}
	}
}

// deal hands the requests to the lanes.
func (p *pump) deal() {
	p.lanes = make([]lane, p.Load.Lanes)
	p.resting = len(p.lanes)
	counts := make([]int, len(p.lanes))
	for i := range p.Requests {
		counts[p.Requests[i].Lane]++
	}
	for i := range p.lanes {
		p.lanes[i] = lane{number: i, phase: shut, list: slices.Grow([]int32(nil), counts[i])}
	}
	for i := range p.Requests {
		l := &p.lanes[p.Requests[i].Lane]
		l.list = append(l.list, int32(i))
	}
}
