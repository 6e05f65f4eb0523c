package main

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/engine/pages"
)

// gather puts what was restored into huge pages before anybody is served. Without them all works,
// and a large exchange is slower.
func (n *node) gather(ctx context.Context) error {
	start := time.Now()
	if huge, err := pages.Gather(ctx); err != nil {
		n.log.Info("no huge pages", "reason", err.Error())
	} else {
		n.huge.Store(huge)
		n.log.Info("memory gathered", "hugeBytes", huge, "took", time.Since(start).String())
	}
	n.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "clobd",
		Subsystem: "memory", Name: "huge_page_bytes",
		Help: "Memory in huge pages, as of the last minute."},
		func() float64 { return float64(n.huge.Load()) }))
	return nil
}

// keepGathering gathers what comes to be used until ctx is done. What it returns ends it, and waits
// until it has ended.
func (n *node) keepGathering(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { pages.Keep(ctx, n.huge.Store) })
	return func() { cancel(); running.Wait() }
}
