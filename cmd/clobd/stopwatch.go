package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/engine/sequencer"
	"clobd/ingress"
)

// stopwatches are the histograms of clobd_stage_seconds: where orders, and the frames that carry
// them, spend their time.
type stopwatches struct {
	parse, authenticate, verify, answer prometheus.Observer // of a request
	wait, match, log, sync, publish     prometheus.Observer // of a frame
}

// newStopwatches makes and registers the histograms. Each is classic and native.
func newStopwatches(r *prometheus.Registry) *stopwatches {
	all := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "clobd", Name: "stage_seconds",
		Help: "Time in a stage of the order path. Of one request in four: authenticate, parse, verify, answer; of requests " +
			"on a socket without authenticate, because a socket is authenticated once, at its login. " +
			"Of a frame: wait (its first Command, in the ring), match, append, sync, publish.",
		Buckets:                     prometheus.ExponentialBuckets(1e-6, 2, 22), // 1 us to 2 s
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
		NativeHistogramMinResetDuration: time.Hour,
	}, []string{"stage"})
	r.MustRegister(all)
	of := func(name string) prometheus.Observer { return all.WithLabelValues(name) }
	return &stopwatches{parse: of("parse"), authenticate: of("authenticate"), verify: of("verify"),
		answer: of("answer"), wait: of("wait"), match: of("match"), log: of("append"),
		sync: of("sync"), publish: of("publish")}
}

// supply lets a door observe its stages.
func (s *stopwatches) supply(door *ingress.Options) {
	to := &door.Stages
	to.Parse, to.Verify, to.Authenticate, to.Answer = s.parse, s.verify, s.authenticate, s.answer
}

// spent observes the stages of a frame.
func (s *stopwatches) spent(t *sequencer.Spent) {
	s.wait.Observe(t.Wait.Seconds())
	s.match.Observe(t.Match.Seconds())
	s.log.Observe(t.Append.Seconds())
	s.sync.Observe(t.Sync.Seconds())
	s.publish.Observe(t.Publish.Seconds())
}
