package socket

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/api/wire/live"
)

// Room holds all sockets that take orders. Any goroutine may use it.
type Room struct {
	meters meters

	mutex    sync.Mutex // guards what follows
	sessions map[*session]struct{}
	closed   bool
}

// NewRoom makes an empty Room.
func NewRoom() *Room {
	return &Room{meters: newMeters(), sessions: make(map[*session]struct{})}
}

// leavePause is how long Close waits until it looks again whether all has been answered.
const leavePause = 5 * time.Millisecond

// Close has all sockets answer what is in work, at most until ctx is done, and closes them. New
// sockets are closed at once.
func (r *Room) Close(ctx context.Context) {
	r.mutex.Lock()
	r.closed = true
	r.mutex.Unlock()
	for !r.quiet() && ctx.Err() == nil {
		time.Sleep(leavePause)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for s := range r.sessions {
		s.close(live.Leaving, "the node stops")
	}
}

// quiet reports whether nothing is in work.
func (r *Room) quiet() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for s := range r.sessions {
		if s.inWork.Load() > 0 {
			return false
		}
	}
	return true
}

// enter adds a socket, and reports whether it may stay.
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
			"Writes that answered requests: each has one answer or more."))),
		bytes: prometheus.NewCounter(prometheus.CounterOpts(name("bytes_total",
			"Bytes of frames with answers."))),
		closes: prometheus.NewCounterVec(prometheus.CounterOpts(name("closes_total",
			"Sockets that the node has closed, by reason.")), []string{"reason"}),
	}
}

// Collectors are the Room's metrics, for the one registry of the process.
func (r *Room) Collectors() []prometheus.Collector {
	f := &r.meters
	return []prometheus.Collector{f.sockets, f.requests, f.writes, f.bytes, f.closes}
}
