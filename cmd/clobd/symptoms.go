package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/journal/disk"
)

// symptom is something about the node that an operator wants to know now.
type symptom struct {
	What   string    `json:"what"`
	Since  time.Time `json:"since"`  // when the node first saw it, or when it began if that is known
	Metric string    `json:"metric"` // that shows it
}

// symptoms are those of one moment. With a reason the node is not ready: it cannot keep its promise
// now. With warnings alone it works, and a load balancer lets it work.
type symptoms struct{ reasons, warnings []symptom }

// The limits of warnings. Alerts of scripts/ops with the same subject have the same.
const (
	lookEvery   = 500 * time.Millisecond // how exact the beginning of a stall is
	recently    = 10 * time.Second       // over which rates are taken
	ringShare   = 2                      // a half of the ring is full
	attackRate  = 50.0                   // requests and connections turned away in a second
	lateIndex   = 20_000                 // Commands
	oldCatalog  = 30 * time.Minute
	almostEnded = 14 * 24 * time.Hour // before the end of the certificate
)

// watchman looks at a node and remembers since when something is wrong. Any goroutine may call
// look.
type watchman struct {
	*node
	mutex  sync.Mutex
	found  symptoms             // of this look
	since  map[string]time.Time // of the last look, by metric
	now    time.Time
	served bool // the node has been ready
	busy   pace
	turned pace
}

// keep looks again and again until ctx is done, so that a stall is seen although nobody asks.
func (w *watchman) keep(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.look(now)
		}
	}
}

// look returns what is wrong now. It waits for no disk and for no order.
func (w *watchman) look(now time.Time) symptoms {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.now, w.found = now, symptoms{[]symptom{}, []symptom{}}
	if s := w.renewing.Load(); s != nil {
		w.reason(s.Metric, now, "%s", s.What)
	} else if w.ready.Load() {
		w.served = true
		w.stalls()
		w.orders()
		w.storage()
		w.upkeep()
	} else if w.served {
		w.reason("clobd_ready", now, "stopping: orders are not taken any more")
	} else {
		w.reason("clobd_ready", now, "starting: orders are not taken yet")
	}
	since := make(map[string]time.Time)
	for _, list := range [][]symptom{w.found.reasons, w.found.warnings} {
		for i := range list {
			s := &list[i]
			if first, known := w.since[s.Metric]; known && first.Before(s.Since) {
				s.Since = first
			}
			since[s.Metric] = s.Since
		}
	}
	w.since = since
	return w.found
}

// hasServed reports whether the node was ever ready. A node that did not get as far as to have a
// watchman never was.
func (w *watchman) hasServed() bool {
	if w == nil {
		return false
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.served
}

func (w *watchman) reason(metric string, since time.Time, format string, args ...any) {
	w.found.reasons = append(w.found.reasons, symptom{fmt.Sprintf(format, args...), since, metric})
}

func (w *watchman) warn(metric, format string, args ...any) {
	w.found.warnings = append(w.found.warnings, symptom{fmt.Sprintf(format, args...), w.now, metric})
}

// stalls looks at who keeps orders waiting. While the disk hangs the writer waits, too, and the
// disk alone is blamed: a frame has waited for the disk at least as long as its callers for it.
func (w *watchman) stalls() {
	if why := w.role.Unready(); why != "" {
		w.reason("clobd_cluster_leader_silent_seconds", w.now, "%s", why)
	}
	_, still := w.role.Writer()
	switch age := w.role.Journal.Unsynced(); {
	case age >= disk.StallTime:
		w.reason("clobd_journal_oldest_unsynced_seconds", w.now.Add(-age), "disk stalled for %.1f s",
			age.Seconds())
	case still >= disk.StallTime:
		w.reason("clobd_sequencer_stalled_seconds", w.now.Add(-still), "matcher stalled for %.1f s",
			still.Seconds())
	}
}

// orders looks at what comes in.
func (w *watchman) orders() {
	c, _ := w.role.Writer()
	switch rate := w.busy.rate(w.now, func() float64 { return float64(c.Busy) }); {
	case rate > 0:
		w.warn("clobd_sequencer_busy_total", "the ring was full: %.1f requests a second were refused",
			rate)
	case c.Slots > 0 && c.Depth*ringShare >= c.Slots:
		w.warn("clobd_sequencer_ring_depth", "%d of %d slots of the ring are taken", c.Depth, c.Slots)
	}
	if rate := w.turned.rate(w.now, w.turnedAway); rate > attackRate {
		w.warn("clobd_http_requests_total", "the door is attacked: %.0f requests and connections a "+
			"second are turned away", rate)
	}
}

// turnedAway counts the requests that were refused for who sent them or how many they were, and
// the connections that were, as the alert ClobdDoorAttacked does. If they cannot be counted,
// nothing was added.
func (w *watchman) turnedAway() (count float64) {
	all, err := w.doorMetrics.Gather()
	if err != nil {
		return w.turned.last()
	}
	for _, m := range named(all, "clobd_http_requests_total").GetMetric() {
		is := make(map[string]string)
		for _, l := range m.GetLabel() {
			is[l.GetName()] = l.GetValue()
		}
		switch {
		case is["route"] == "connect", is["route"] == "unreadable", is["status"] == "401",
			is["status"] == "403", is["status"] == "429":
			count += m.GetCounter().GetValue()
		}
	}
	return count
}

// storage looks at what is kept on the disk.
func (w *watchman) storage() {
	switch w.space.Status().State {
	case disk.Full:
		w.warn("clobd_disk_state", "the disk is full: only cancels are taken")
	case disk.Low:
		w.warn("clobd_disk_state", "the disk gets full: no checkpoints are written")
	}
	if s := w.role.Standing(); s != nil && s.Leader == "" {
		w.warn("clobd_cluster_leader_known", "no node leads: reads are answered, writes wait")
	}
	// Everybody may read what is said here, so causes, which name paths and addresses, are in the log.
	if w.index.History.Failed() != nil {
		w.warn("clobd_index_held", "the index does not move: the log says why")
	}
	if done, last := w.index.History.Sequence(), w.role.Journal.Sequence(); last > done+lateIndex {
		w.warn("clobd_index_lag_commands", "the index lags %d commands behind the journal", last-done)
	}
	if w.role.Follower.Status().Error != nil {
		w.warn("clobd_checkpoint_failures_total", "the last checkpoint failed: the log says why")
	}
	if note := w.scrubber.status(); note != nil && note.Damaged > 0 {
		w.warn("clobd_scrub_damaged", "%d parts of old data are damaged", note.Damaged)
	}
	if cut := w.describe.Status().Cut.Bytes; cut > 0 {
		w.warn("clobd_catalog_cut_bytes", "%d bytes of the catalog were damaged and are put aside", cut)
	}
}

// upkeep looks at what somebody else has to renew.
func (w *watchman) upkeep() {
	health := w.source.Health()
	switch age := w.now.Sub(health.LastSuccess); {
	case w.Catalog == "":
	case health.LastSuccess.IsZero() && health.Failures > 0:
		w.warn("clobd_catalog_failures_total", "the catalog was never read: the log says why")
	case !health.LastSuccess.IsZero() && age > oldCatalog:
		since := ""
		if health.LastError != "" {
			since = ", and could not be read since: the log says why"
		}
		w.warn("clobd_catalog_last_success_age_seconds", "the catalog was last read %v ago%s",
			age.Round(time.Second), since)
	case health.LastError != "":
		w.warn("clobd_catalog_failures_total", "the catalog could not be read, last with success %v ago: "+
			"the log says why", age.Round(time.Second))
	}
	if w.front.ends == nil {
		return
	}
	switch left := w.front.ends().Sub(w.now); {
	case left <= 0:
		w.warn("clobd_tls_certificate_end_seconds", "the certificate has ended")
	case left < almostEnded:
		w.warn("clobd_tls_certificate_end_seconds", "the certificate ends in %.0f hours", left.Hours())
	}
}

// collectors are the gauges of what look finds, and of when the certificate ends.
func (w *watchman) collectors() []prometheus.Collector {
	all := []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "clobd_ready",
		Help: "1 while the node keeps its promise, 0 while it starts, stalls or stops: /readyz says why.",
	}, func() float64 {
		if len(w.look(time.Now()).reasons) > 0 {
			return 0
		}
		return 1
	})}
	if w.front.ends != nil {
		const of disk.Subsystem = "tls"
		all = append(all, of.Gauge("certificate_end_seconds", "When the certificate in use ends, in "+
			"unix seconds.", func() float64 { return float64(w.front.ends().Unix()) }))
	}
	return all
}

// pace is how fast a count has grown recently.
type pace struct{ samples []countAt }

type countAt struct {
	at    time.Time
	count float64
}

// last is the newest count, 0 without any.
func (p *pace) last() float64 {
	if len(p.samples) == 0 {
		return 0
	}
	return p.samples[len(p.samples)-1].count
}

// rate is the growth within recently, a second. It reads the count once a second at most.
func (p *pace) rate(now time.Time, read func() float64) float64 {
	if n := len(p.samples); n == 0 || now.Sub(p.samples[n-1].at) >= time.Second {
		p.samples = append(p.samples, countAt{now, read()})
	}
	// The first countAt is the last one from before: what was counted since is recent.
	for len(p.samples) > 1 && now.Sub(p.samples[1].at) >= recently {
		p.samples = p.samples[1:]
	}
	last := len(p.samples) - 1
	return (p.samples[last].count - p.samples[0].count) / recently.Seconds()
}
