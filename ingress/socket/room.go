package socket

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/api/wire/live"
)

// Room is the set of all open sockets that take orders. Any goroutine may use it.
type Room struct {
	meters meters

	mutex    sync.Mutex // guards what follows
	sessions map[*session]struct{}
	closed   bool
}

// NewRoom returns an empty Room.
func NewRoom() *Room {
	return &Room{meters: newMeters(), sessions: make(map[*session]struct{})}
}

// leavePause is the time between two checks of Close whether all requests are answered. readPause
// is how long Close then waits for clients to read their answers. leaving is the close reason.
const (
	leavePause = 5 * time.Millisecond
	readPause  = time.Second
	leaving    = "the node stops"
)

// Close waits until all sockets have answered the requests in work, at most until ctx is done, and
// then closes the sockets. It returns when all calls of Serve have returned, or when ctx is done.
// New sockets are closed at once.
func (r *Room) Close(ctx context.Context) {
	r.mutex.Lock()
	r.closed = true
	r.mutex.Unlock()
	for last := time.Now(); ctx.Err() == nil; time.Sleep(leavePause) {
		working, pending := r.busy()
		if pending == 0 || working == 0 && time.Since(last) > readPause {
			break
		}
		if working > 0 {
			last = time.Now()
		}
	}
	r.mutex.Lock()
	for s := range r.sessions {
		s.close(live.Leaving, leaving)
	}
	r.mutex.Unlock()
	for ctx.Err() == nil && !r.empty() {
		time.Sleep(leavePause)
	}
}

// busy returns how many sockets have requests in work, and how many have these or unread answers.
func (r *Room) busy() (working, pending int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for s := range r.sessions {
		if s.inWork.Load() > 0 {
			working++
		}
		if s.pending() {
			pending++
		}
	}
	return working, pending
}

func (r *Room) empty() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.sessions) == 0
}

// enter adds a socket, and reports whether it may stay: a closed Room takes none.
func (r *Room) enter(s *session) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.closed {
		return false
	}
	r.sessions[s] = struct{}{}
	r.meters.sockets.Inc()
	return true
}

func (r *Room) leave(s *session) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.sessions, s)
	r.meters.sockets.Dec()
}

// meters are the metrics of a Room.
type meters struct {
	sockets                 prometheus.Gauge
	requests, writes, bytes prometheus.Counter
	closes                  *prometheus.CounterVec
}

func newMeters() meters {
	name := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "clobd", Subsystem: "entry", Name: name, Help: help}
	}
	return meters{
		sockets: prometheus.NewGauge(prometheus.GaugeOpts(name("sockets",
			"Open sockets that take orders."))),
		requests: prometheus.NewCounter(prometheus.CounterOpts(name("requests_total",
			"Requests that came over sockets."))),
		writes: prometheus.NewCounter(prometheus.CounterOpts(name("writes_total",
			"Writes of answers: each has one or more, or a part of a long one."))),
		bytes: prometheus.NewCounter(prometheus.CounterOpts(name("bytes_total",
			"Bytes of frames with answers."))),
		closes: prometheus.NewCounterVec(prometheus.CounterOpts(name("closes_total",
			"Sockets that the node has closed, by reason.")), []string{"reason"}),
	}
}

// Collectors returns the Room's metrics, for the one registry of the process.
func (r *Room) Collectors() []prometheus.Collector {
	f := &r.meters
	return []prometheus.Collector{f.sockets, f.requests, f.writes, f.bytes, f.closes}
}
