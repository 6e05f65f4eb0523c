package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/engine/pages"
)

// gather puts the restored state into huge pages before the node serves anybody. Without huge pages
// a large exchange is slower.
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

// gatherEvery is how often a running node gathers its new memory.
const gatherEvery = time.Minute

// keepGathering gathers new memory until it is stopped. Nobody waits for its end: one call may take
// as long as the kernel needs to find a free page.
func (n *node) keepGathering(ctx context.Context, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go pages.Keep(ctx, every, n.huge.Store)
	return cancel
}
