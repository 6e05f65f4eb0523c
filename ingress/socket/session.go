package socket

import (
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
	MaxText     = 256 << 10              // bytes of a text
	readAhead   = 16 << 10               // bytes that are read at once
	mostInWork  = 256                    // requests that are not answered yet
	mostBatch   = 32                     // requests that are judged together
	firstWish   = 10 * time.Second       // until the login
	patience    = 10 * time.Second       // for a sign of life
	pingPause   = 3 * time.Second        // between two pings
	retryPause  = time.Millisecond       // until the next look at a socket without room
	mostStuck   = 10 * time.Second       // a socket may take no byte
	maxBehind   = 1 << 20                // bytes of answers that may wait for the client
	mostStrange = 100                    // texts that were no requests, at once
	strangeBack = 100 * time.Millisecond // until one of these is forgotten
)

var (
	refuseCrowd = wire.Refuse(429, "rate_limited", "too many requests in work on this socket",
		"wait for answers: "+strconv.Itoa(mostInWork)+" may be in work at once")
	refuseText = wire.Refuse(400, "bad_request", "malformed request",
		`send {"id":1,"method":"order.place","params":{…}}; id is a number or at most 64 characters`)
	refuseLogin = wire.Refuse(401, "unauthorized", "log in first", "")
)

// session is one socket.
type session struct {
	door Door
	room *Room
	live *live.Socket

	inWork  atomic.Int32     // requests that are not answered yet
	entered chan []*Exchange // from the reader to the teller
	told    chan struct{}    // has a value when others have put answers into out
	late    sync.WaitGroup   // stories that finish on their own
	pinger  *time.Timer
	strange time.Time // when all texts that were no requests are forgotten

	mutex sync.Mutex // guards what follows
	out   []byte     // frames that are not sent yet
	rest  int        // bytes that the socket has taken and not sent
	since time.Time  // when rest last became less, or there was none
	ended bool
}

// exchanges are used again once they are answered.
var exchanges = sync.Pool{New: func() any { return new(Exchange) }}

// Serve takes the requests of a client until its socket ends, and returns when all that has entered
// is answered.
func (r *Room) Serve(socket *live.Socket, door Door) {
	s := &session{door: door, room: r, live: socket,
		entered: make(chan []*Exchange, mostInWork), told: make(chan struct{}, 1)}
	if !r.enter(s) {
		socket.Close(live.Leaving, "the node stops")
		return
	}
	defer r.leave(s)
	var teller sync.WaitGroup
	teller.Go(s.tell)
	defer teller.Wait()
	defer close(s.entered)
	defer s.survive()
	s.read()
}

// survive is deferred by all goroutines of a socket: a panic ends that socket only.
func (s *session) survive() {
	if cause := recover(); cause != nil {
		s.door.Panicked(cause)
		s.close(live.Broken, "internal error")
	}
}

// read reads requests until the socket ends.
func (s *session) read() {
	s.live.Limit(MaxText)
	s.live.ReadAhead(readAhead)
	s.live.Until(time.Now().Add(firstWish))
	text, err := s.live.Read(patience)
	if err != nil || !s.login(text) {
		return
	}
	s.live.Until(time.Time{})
	s.beginPings()
	defer s.pinger.Stop()
	var batch []*Exchange
	for {
		text, err := s.live.Read(patience)
		if err != nil {
			return
		}
		batch = append(make([]*Exchange, 0, cap(batch)), s.begin(text))
		for len(batch) < mostBatch && s.live.More() {
			if text, err = s.live.Read(patience); err != nil {
				break
			}
			batch = append(batch, s.begin(text))
		}
		s.room.meters.requests.Add(float64(len(batch)))
		s.enter(batch)
		if err != nil {
			return
		}
	}
}

// login answers the first text, and reports whether the client is in.
func (s *session) login(text []byte) bool {
	x := exchange(time.Now())
	s.inWork.Add(1)
	in := false
	if !x.read(text) || x.Method != "login" {
		refuseLogin.Send(&x.Ctx)
	} else {
		in = s.door.Login(x)
	}
	if s.answer(x); in {
		s.rouse()
	} else {
		s.close(live.Forbidden, "unauthorized")
	}
	return in
}

// rouse has the teller send what others have put into out.
func (s *session) rouse() {
	select {
	case s.told <- struct{}{}:
	default:
	}
}

// exchange returns an Exchange for a request that came now.
func exchange(now time.Time) *Exchange {
	x := exchanges.Get().(*Exchange)
	x.Began, x.id = now, append(x.id[:0], "null"...)
	return x
}

// begin begins a request.
func (s *session) begin(text []byte) *Exchange {
	x := exchange(time.Now())
	inWork := s.inWork.Add(1)
	switch {
	case string(text) == "PING": // as on the other channels
		x.Method = "PING"
		s.wonder(x.Began)
	case !x.read(text):
		refuseText.Send(&x.Ctx)
		s.wonder(x.Began)
	case inWork > mostInWork:
		refuseCrowd.Send(&x.Ctx)
	default:
		s.door.Begin(x)
		if x.Story == nil && x.Ctx.Response.StatusCode() == 200 { // answered from memory
			s.wonder(x.Began)
		}
	}
	return x
}

// wonder counts a text that no window counts. Who sends too many is closed.
func (s *session) wonder(now time.Time) {
	if s.strange.Before(now) {
		s.strange = now
	}
	if s.strange = s.strange.Add(strangeBack); s.strange.Sub(now) > mostStrange*strangeBack {
		s.close(live.Forbidden, "too many messages")
	}
}

// enter has a batch judged and enters it. Requests without signatures that came first need not wait
// for the others' signatures.
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

// enterAll enters requests that are judged. Those that wait for nothing are answered at once: the
// teller may be waiting for the disk.
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

// tell answers requests in the order in which they entered, for in that order their Receipts come.
// Answers that are there at the same time go out in one write.
func (s *session) tell() {
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		var batch []*Exchange
		open := true
		select {
		case batch, open = <-s.entered:
		default:
			if s.flush() {
				retry.Reset(retryPause)
			}
			select {
			case batch, open = <-s.entered:
			case <-s.told:
			case <-retry.C:
			}
		}
		if !open {
			s.late.Wait()
			s.flush()
			return
		}
		for _, x := range batch {
			s.tellOne(x)
		}
	}
}

// tellOne answers a request once its Receipts are there, or has another goroutine do it if that
// takes longer.
func (s *session) tellOne(x *Exchange) {
	defer s.survive()
	if x.Story == nil {
		s.answer(x)
		return
	}
	if !x.Story.Ready() {
		if runtime.Gosched(); !x.Story.Ready() { // the Receipts of a frame come one after the other
			s.flush()
		}
	}
	if x.Story.Await() {
		x.Story.Finish()
		s.answer(x)
		return
	}
	s.late.Go(func() {
		defer s.survive()
		x.Story.Finish()
		s.answer(x)
		s.rouse()
	})
}

// answer puts the answer of a request among what is sent next.
func (s *session) answer(x *Exchange) {
	s.door.Answered(x)
	s.mutex.Lock()
	s.out = x.appendFrame(s.out)
	s.mutex.Unlock()
	s.inWork.Add(-1)
	x.Ctx.Request.Reset()
	x.Ctx.Response.Reset()
	x.Story, x.Signed, x.Method, x.MaxAge = nil, false, "", ""
	exchanges.Put(x)
}

// flush sends what there is room for, and reports whether something is left.
func (s *session) flush() (left bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.ended || len(s.out) == 0 && s.rest == 0 {
		s.out = s.out[:0]
		return false
	}
	if s.rest > 0 {
		if _, err := s.live.Flush(); err != nil {
			s.ended = true
			return false
		}
	}
	if s.measure(); s.rest == 0 && len(s.out) > 0 {
		s.send()
		s.measure()
	}
	if s.rest > 0 && (time.Since(s.since) > mostStuck || s.rest+len(s.out) > maxBehind) {
		s.end(live.TryLater, "slow consumer")
	}
	return !s.ended && s.rest > 0
}

// send hands what waits to the socket.
func (s *session) send() {
	s.room.meters.writes.Inc()
	s.room.meters.bytes.Add(float64(len(s.out)))
	if _, err := s.live.Send(s.out); err != nil {
		s.ended = true
	}
	if s.out = s.out[:0]; cap(s.out) > maxBehind/4 {
		s.out = nil
	}
}

// measure notes what the socket has not sent.
func (s *session) measure() {
	rest := s.live.Rest()
	if rest == 0 || rest < s.rest || s.rest == 0 {
		s.since = time.Now()
	}
	s.rest = rest
}

func (s *session) beginPings() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.pinger = time.AfterFunc(pingPause, s.ping)
}

// ping asks the client for a sign of life, and ends the socket of a revoked key. It runs beside the
// teller, who may wait for the disk.
func (s *session) ping() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.door.Revoked() {
		s.end(live.Forbidden, "the key is revoked")
	} else if !s.ended {
		_ = s.live.Ping() // whoever is gone is missed by Read
		s.pinger.Reset(pingPause)
	}
}

// close ends the socket and tells why.
func (s *session) close(code int, why string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.end(code, why)
}

func (s *session) end(code int, why string) {
	if s.ended {
		return
	}
	if s.rest == 0 && len(s.out) > 0 {
		s.send()
	}
	s.ended = true
	s.room.meters.closes.WithLabelValues(why).Inc()
	s.live.Close(code, why)
}
