package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/trace"
	"slices"
	"time"

	"clobd/journal/disk"
)

// blackBox keeps a runtime trace of the last seconds in memory, and writes it into the data folder
// when POST /order is slow.
//
//	every 5 s: p99 of POST /order since the last look ──► above the bound? ──► DATA/traces/….trace
//
// Five files of some 16 MiB, at most 32 MiB, are kept. None is written while the disk gets full.
type blackBox struct {
	*node
	recorder *trace.FlightRecorder
	seen     quantiles // at the last look
	wrote    time.Time
}

const (
	boxLook   = 5 * time.Second  // between two looks at the p99
	boxPause  = time.Minute      // between two traces
	boxLeast  = 100              // orders since the last look, else it says nothing of a p99
	boxFiles  = 5                // traces that are kept
	boxWindow = 10 * time.Second // that a trace shows, unless it would be too large
	boxBytes  = 16 << 20         // of the trace in memory, as the runtime tries to keep it
	boxMost   = 2 * boxBytes     // of a file: the runtime promises nothing
)

// record starts the flight recorder and looks at the p99 until ctx is done. Without --trace-slow it
// does nothing, because recording takes CPU time all the while.
func (n *node) record(ctx context.Context) {
	if n.TraceSlow == 0 {
		return
	}
	b := blackBox{node: n, recorder: trace.NewFlightRecorder(trace.FlightRecorderConfig{
		MinAge: boxWindow, MaxBytes: boxBytes})}
	if err := b.recorder.Start(); err != nil {
		n.log.Warn("no runtime trace is kept", "error", err)
		return
	}
	defer b.recorder.Stop()
	look := time.NewTicker(boxLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-look.C:
			if err := b.look(now); err != nil {
				n.log.Warn("the runtime trace was not written", "error", err)
			}
		}
	}
}

// look writes a trace if orders were slow since the last look. On a disk that gets full it writes
// none: what is left there is for the journal.
func (b *blackBox) look(now time.Time) error {
	all, err := b.doorMetrics.Gather()
	if err != nil {
		return err
	}
	q := quantiles{}
	for _, m := range named(all, "clobd_http_request_seconds").GetMetric() {
		if len(m.GetLabel()) != 1 || m.GetLabel()[0].GetValue() != "post_order" {
			continue
		}
		q.count = m.GetHistogram().GetSampleCount()
		for _, bucket := range m.GetHistogram().GetBucket() {
			q.below = append(q.below, bucket.GetCumulativeCount())
			q.bounds = append(q.bounds, bucket.GetUpperBound())
		}
	}
	p99, some := q.since(&b.seen, 0.99)
	b.seen = q
	if !some || p99 <= b.TraceSlow.Seconds() || now.Sub(b.wrote) < boxPause ||
		b.space != nil && b.space.Status().State != disk.Roomy {
		return nil
	}
	b.wrote = now
	name, err := b.write(now)
	if err != nil {
		return err
	}
	b.log.Warn("orders were slow: go tool trace shows why", "p99_seconds", fmt.Sprintf("%.3g", p99),
		"bound", b.TraceSlow.String(), "file", name)
	return nil
}

// named returns the family of that name, nil if there is none.
func named[F interface{ GetName() string }](all []F, name string) (found F) {
	for _, f := range all {
		if f.GetName() == name {
			found = f
		}
	}
	return found
}

// write writes the trace and removes the oldest ones. An unfinished one of an earlier process is
// overwritten.
func (b *blackBox) write(now time.Time) (name string, err error) {
	dir := filepath.Join(b.Data, "traces")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	name = filepath.Join(dir, now.UTC().Format("20060102T150405Z")+".trace")
	part, err := os.OpenFile(filepath.Join(dir, "part"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	_, err = b.recorder.WriteTo(&capped{part, boxMost})
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), name)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("write %s: %w", name, err), os.Remove(part.Name()))
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.trace"))
	if err != nil {
		return "", err
	}
	slices.Sort(old)
	for _, file := range old[:max(len(old)-boxFiles, 0)] {
		err = errors.Join(err, os.Remove(file))
	}
	return name, err
}

// capped writes as many bytes as are left, and then fails.
type capped struct {
	to   io.Writer
	left int
}

// Write writes all of b or nothing.
func (c *capped) Write(b []byte) (int, error) {
	if len(b) > c.left {
		return 0, errors.New("the trace is too large")
	}
	c.left -= len(b)
	return c.to.Write(b)
}

// quantiles are the buckets of a histogram: how many samples were at most each bound.
type quantiles struct {
	bounds []float64
	below  []uint64
	count  uint64
}

// since estimates a quantile of the samples since an earlier look, as Prometheus does: within its
// bucket it lies as far up as its share of the bucket's samples; above all bounds it is the last
// one. some is false if there were too few samples.
func (q *quantiles) since(before *quantiles, quantile float64) (value float64, some bool) {
	n := q.count - before.count
	if n < boxLeast {
		return 0, false
	}
	rank, lower, passed := quantile*float64(n), 0.0, 0.0
	for i, below := range q.below {
		if len(before.below) > 0 {
			below -= before.below[i]
		}
		if here := float64(below); here >= rank {
			return lower + (q.bounds[i]-lower)*(rank-passed)/(here-passed), true
		}
		lower, passed = q.bounds[i], float64(below)
	}
	return lower, true
}
