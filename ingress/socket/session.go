package socket

import (
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"clobd/api/wire"
	"clobd/api/wire/live"
)

// Bounds of one socket.
const (
	MaxText    = 260 << 10              // bytes of a message: a whole list and what stands around it
	firstText  = 4 << 10                // bytes of the first message: strangers send it
	readAhead  = 16 << 10               // bytes that are read at once
	mostInWork = 256                    // requests that are not answered yet
	mostBatch  = 32                     // requests that are judged together
	firstWish  = 10 * time.Second       // until the login
	patience   = 10 * time.Second       // for a sign of life
	pingPause  = 3 * time.Second        // between two pings
	goodbye    = time.Second            // for a client to read why the node hangs up, or more of it
	farewell   = 10 * time.Second       // for it to read all of that, at most
	firstRetry = time.Millisecond       // before the first retry on a full socket
	lastRetry  = 64 * time.Millisecond  // before later retries, at most
	mostStuck  = 10 * time.Second       // for someBytes to leave a full socket
	someBytes  = 4 << 10                // bytes; see mostStuck
	piece      = 256 << 10              // bytes of a frame, and those that the socket gets at once
	maxBehind  = 1 << 20                // bytes that may wait when another answer comes
	mostStrays = 100                    // strays: messages that no rate limit counts, at once
	strayBack  = 100 * time.Millisecond // until one stray is forgotten
)

var (
	refuseCrowd = wire.Refuse(429, "rate_limited", "too many requests in work on this socket",
		"wait for answers: "+strconv.Itoa(mostInWork)+" may be in work at once")
	refuseText = wire.Refuse(400, "bad_request", "malformed request",
		`send {"id":1,"method":"order.place","params":{…}}; id is a number or at most 64 characters`)
	refuseLogin = wire.Refuse(401, "unauthorized", "log in first", "")
)

// session serves one socket, from its login to its end.
type session struct {
	door Door
	room *Room
	live *live.Socket

	inWork  atomic.Int32     // requests that are not answered yet
	entered chan []*Exchange // passed from the reader to the teller
	told    chan struct{}    // has a value when other goroutines have put answers into out
	late    sync.WaitGroup   // stories that finish in goroutines of their own
	strays  time.Time        // when all strays so far are forgotten

	mutex  sync.Mutex // guards what follows
	pinger *time.Timer
	out    []byte    // frames that were not handed to the socket yet
	rest   int       // bytes that the socket has accepted and not sent
	since  time.Time // when someBytes of rest last left, or rest was 0
	mark   int       // rest at that time
	ended  bool      // the socket is closed, or its close frame was handed over: out goes nowhere
}

// exchanges holds Exchanges that were answered, to be used again.
var exchanges = sync.Pool{New: func() any { return new(Exchange) }}

// Serve takes the requests of a client until the socket ends, and returns when every request that
// has entered is answered.
func (r *Room) Serve(socket *live.Socket, door Door) {
	s := &session{door: door, room: r, live: socket, told: make(chan struct{}, 1)}
	if !r.enter(s) {
		socket.Close(live.Leaving, leaving)
		return
	}
	defer r.leave(s)
	defer s.survive()
	if !s.login() {
		return
	}
	s.entered = make(chan []*Exchange, mostInWork)
	var teller sync.WaitGroup
	teller.Go(s.tell)
	defer teller.Wait()
	defer close(s.entered)
	defer s.survive()
	s.gone(s.read())
}

// survive is deferred by all goroutines of a socket: a panic ends only that socket.
func (s *session) survive() {
	if cause := recover(); cause != nil {
		s.door.Panicked(cause)
		s.close(live.Broken, "internal error")
	}
}

// login reads and answers the first message, and reports whether the client is logged in.
func (s *session) login() bool {
	s.live.Limit(firstText)
	late := time.AfterFunc(firstWish, func() { s.close(live.Forbidden, "no login in time") })
	text, err := s.live.Read(firstWish + patience)
	if !late.Stop() || err != nil {
		s.gone(err)
		return false
	}
	x := exchange(time.Now())
	s.inWork.Add(1)
	if !x.read(text) || x.Method != methodLogin {
		refuseLogin.Send(&x.Ctx)
	} else {
		s.door.Login(x)
	}
	status := x.Ctx.Response.StatusCode()
	s.answer(x)
	switch {
	case status == 200:
		s.flush()
		return true
	case status == 429 || status >= 500:
		s.close(live.TryLater, "try again later")
	default:
		s.close(live.Forbidden, "unauthorized")
	}
	s.listen()
	return false
}

// read reads requests until the socket ends. It returns the error of the connection.
func (s *session) read() error {
	s.live.Limit(MaxText)
	s.live.ReadAhead(readAhead)
	s.beginPings()
	var batch []*Exchange
	for !s.over() {
		text, err := s.live.Read(patience)
		if err != nil {
			return err
		}
		batch = append(make([]*Exchange, 0, cap(batch)), s.begin(text))
		for len(batch) < mostBatch && s.live.More() && !s.over() {
			if text, err = s.live.Read(patience); err != nil {
				break
			}
			batch = append(batch, s.begin(text))
		}
		s.room.meters.requests.Add(float64(len(batch)))
		s.enter(batch)
		if err != nil {
			return err
		}
	}
	s.listen()
	return nil
}

// listen reads on after the end, until the client hangs up or part does: if a connection is closed
// with unread bytes, the kernel resets it, and the client loses what was sent.
func (s *session) listen() {
	for err := error(nil); err == nil; {
		_, err = s.live.Read(farewell + goodbye)
	}
}

// rouse wakes the teller, which sends what other goroutines have left to it.
func (s *session) rouse() {
	select {
	case s.told <- struct{}{}:
	default:
	}
}

// exchange returns an Exchange for a request that has arrived now.
func exchange(now time.Time) *Exchange {
	x := exchanges.Get().(*Exchange)
	x.Began, x.id = now, append(x.id[:0], "null"...)
	return x
}

// begin reads a request, and begins its story or answers it.
func (s *session) begin(text []byte) *Exchange {
	x := exchange(time.Now())
	inWork := s.inWork.Add(1)
	switch {
	case string(text) == "PING": // the other channels answer this text, too
		x.Method = "PING"
	case !x.read(text):
		refuseText.Send(&x.Ctx)
	case inWork > mostInWork:
		refuseCrowd.Send(&x.Ctx)
	default:
		s.door.Begin(x)
	}
	if !x.Counted {
		s.countStray(x.Began)
	}
	return x
}

// countStray counts a stray, and closes the socket if there are too many.
func (s *session) countStray(now time.Time) {
	if s.strays.Before(now) {
		s.strays = now
	}
	if s.strays = s.strays.Add(strayBack); s.strays.Sub(now) > mostStrays*strayBack {
		s.close(live.Forbidden, "too many messages")
	}
}

// enter lets the door check a batch, and enters it. Leading requests without signatures enter
// first: they need not wait until the signatures of the others are checked.
func (s *session) enter(batch []*Exchange) {
	defer s.door.Entered()
	lead := 0
	for lead < len(batch) && !batch[lead].Signed {
		lead++
	}
	s.enterAll(batch[:lead:lead])
	if batch = batch[lead:]; len(batch) > 0 {
		s.door.Judge(batch)
		s.enterAll(batch)
	}
}

// enterAll enters requests that were checked. It answers requests that wait for nothing itself,
// because the teller may be waiting for the disk.
func (s *session) enterAll(batch []*Exchange) {
	waiting := batch[:0]
	for _, x := range batch {
		if x.Story != nil {
			x.Story.Enter()
		}
		if x.Story == nil || x.Story.Ready() {
			s.tellOne(x)
		} else {
			waiting = append(waiting, x)
		}
	}
	if len(waiting) > 0 {
		s.entered <- waiting
	}
	if len(waiting) < len(batch) && s.flush() {
		s.rouse()
	}
}

// tell answers requests in the order in which they entered, because their Receipts come in that
// order. Answers that are ready at the same time go out in one write.
func (s *session) tell() {
	retry, pause := time.NewTimer(time.Hour), firstRetry
	defer retry.Stop()
	for {
		var batch []*Exchange
		open := true
		select {
		case batch, open = <-s.entered:
		default:
			if s.flush() {
				retry.Reset(pause)
				pause = min(2*pause, lastRetry)
			} else {
				pause = firstRetry
			}
			select {
			case batch, open = <-s.entered:
			case <-s.told:
			case <-retry.C:
			}
		}
		if !open {
			s.late.Wait()
			return
		}
		for _, x := range batch {
			s.tellOne(x)
		}
	}
}

// tellOne waits for the Receipts of a request and answers it. If the answer must wait for anything
// else, another goroutine finishes the request.
func (s *session) tellOne(x *Exchange) {
	defer s.survive()
	if x.Story == nil {
		s.answer(x)
		return
	}
	if !x.Story.Ready() {
		if runtime.Gosched(); !x.Story.Ready() { // other Receipts of the frame may be about to come
			s.flush()
		}
	}
	if x.Story.Await(); !x.Story.Late() {
		s.finish(x)
		return
	}
	s.late.Go(func() {
		defer s.survive()
		s.finish(x)
		s.rouse()
	})
}

// finish answers a request that has its Receipts.
func (s *session) finish(x *Exchange) {
	timed, began := x.Timed && s.door.Answering != nil, time.Time{}
	if timed {
		began = time.Now()
	}
	if x.Story.Finish(); timed {
		s.door.Answering.Observe(time.Since(began).Seconds())
	}
	s.answer(x)
}

// answer appends the answer of a request to out. If too much waits already, it closes the socket.
func (s *session) answer(x *Exchange) {
	s.door.Answered(x)
	frame := x.appendFrame(make([]byte, 0, 512))
	s.mutex.Lock()
	if s.rest+len(s.out) > maxBehind {
		s.end(live.TryLater, "slow consumer")
	}
	if !s.ended {
		s.out = append(s.out, frame...)
	}
	s.mutex.Unlock()
	s.inWork.Add(-1)
	x.Ctx.Request.Reset()
	x.Ctx.Response.Reset()
	x.Ctx.ResetUserValues()
	x.Ctx.Init2(nil, nil, false)
	x.Story, x.Signed, x.Counted, x.Timed, x.Method, x.MaxAge = nil, false, false, false, "", ""
	exchanges.Put(x)
}

// flush sends what there is room for, even after the end, and reports whether something is left.
func (s *session) flush() (left bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.rest > 0 {
		_, err := s.live.Flush()
		s.measure(err)
	}
	s.send()
	if s.rest > 0 && time.Since(s.since) > mostStuck {
		s.end(live.TryLater, "slow consumer")
	}
	return s.rest > 0
}

// send hands whole frames to the socket until it is full: no more than it may keep unsent.
func (s *session) send() {
	for !s.ended && s.rest == 0 && len(s.out) > 0 {
		n := live.Cut(s.out, piece)
		s.room.meters.writes.Inc()
		s.room.meters.bytes.Add(float64(n))
		_, err := s.live.Send(s.out[:n])
		if s.out = s.out[:copy(s.out, s.out[n:])]; len(s.out) == 0 && cap(s.out) > piece {
			s.out = nil
		}
		s.measure(err)
	}
}

// measure notes how many bytes the socket has accepted and not sent. After an error it is closed.
func (s *session) measure(err error) {
	if err != nil {
		s.ended, s.rest = true, 0
		return
	}
	rest := s.live.Rest()
	if rest == 0 || s.rest == 0 || rest+someBytes <= s.mark {
		s.since, s.mark = time.Now(), rest
	}
	s.rest = rest
}

// pending reports whether a request is in work, or an answer waits for the client to read it.
func (s *session) pending() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.inWork.Load() > 0 || !s.ended && s.rest+len(s.out) > 0
}

func (s *session) beginPings() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.pinger = time.AfterFunc(pingPause, s.ping)
}

// ping pings the client, and closes the socket if its key was revoked. It has a goroutine of its
// own, because the teller may be waiting for the disk.
func (s *session) ping() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.door.Revoked() {
		s.end(live.Forbidden, "the key is revoked")
	} else if !s.ended {
		_ = s.live.Ping() // Read notices if the client is gone
		s.pinger.Reset(pingPause)
	}
}

func (s *session) over() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.ended
}

// gone notes that the connection has ended. It counts the reason, unless end has counted one.
func (s *session) gone(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.ended {
		var why live.Ended
		if !errors.As(err, &why) {
			why = "client"
		}
		s.room.meters.closes.WithLabelValues(string(why)).Inc()
	}
	s.ended = true
	if s.pinger != nil {
		s.pinger.Stop()
	}
}

// close closes the socket and tells the client why.
func (s *session) close(code int, why string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.end(code, why)
}

// end hands over the answers that the socket has room for, and the close frame. The teller sends
// what is left of them.
func (s *session) end(code int, why string) {
	if s.ended {
		return
	}
	s.send()
	s.room.meters.closes.WithLabelValues(why).Inc()
	s.live.Tell(code, why)
	s.ended, s.out = true, nil
	s.measure(nil)
	s.rouse()
	s.since = time.Now()
	go s.part(s.since.Add(farewell))
}

// part closes the connection when goodbye has passed since a full socket last had room for more of
// the rest, and at the last instant in any case.
func (s *session) part(last time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if wait := min(goodbye-time.Since(s.since), time.Until(last)); wait > 0 {
		time.AfterFunc(wait, func() { s.part(last) })
	} else {
		s.live.End()
	}
}
