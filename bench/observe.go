package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// lookEvery is how often an observer reads the node's metrics. A reading costs the node 2 ms of CPU
// time with a few markets, and this process less than 1 ms.
const lookEvery = 500 * time.Millisecond

// knocks is how often, between two readings, an observer asks /readyz just to see whether the node
// answers at all: so often that no pause of stalled length and a knock's falls between.
const knocks = 4

// stalled is the least time without progress that is marked as a stall.
const stalled = 131072 * time.Microsecond // a bound of the node's stage histograms

// scrape is what was read of a node's metrics at one instant.
type scrape struct {
	asked, at time.Time             // when it was asked for, and when it came
	values    map[string]float64    // by name, of metrics without labels
	stages    map[string]*histogram // of clobd_stage_seconds, by stage
}

// histogram is a classic histogram of Prometheus.
type histogram struct {
	bounds []float64 // seconds, ascending; the last one is +Inf
	counts []float64 // cumulative, by bound
	sum    float64
}

const stageMetric = "clobd_stage_seconds_"

// parseScrape picks out what an observer needs.
func parseScrape(text string) scrape {
	s := scrape{values: map[string]float64{}, stages: map[string]*histogram{}}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || strings.HasPrefix(name, "#") {
			continue
		}
		if rest, of := strings.CutPrefix(name, stageMetric); of {
			s.stage(rest, v)
		} else if !strings.Contains(name, "{") {
			s.values[name] = v
		}
	}
	return s
}

// stage adds a line of the stage histograms, as bucket{stage="sync",le="0.5"}.
func (s *scrape) stage(series string, v float64) {
	kind, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	var stage, bound string
	for label := range strings.SplitSeq(labels, ",") {
		key, quoted, _ := strings.Cut(label, "=")
		switch key {
		case "stage":
			stage = strings.Trim(quoted, `"`)
		case "le":
			bound = strings.Trim(quoted, `"`)
		}
	}
	h := s.stages[stage]
	if h == nil {
		h = &histogram{}
		s.stages[stage] = h
	}
	switch kind {
	case "sum":
		h.sum = v
	case "bucket":
		le, err := strconv.ParseFloat(bound, 64)
		if err == nil {
			h.bounds, h.counts = append(h.bounds, le), append(h.counts, v)
		}
	}
}

// since is what was added to the histogram after another reading of it. A node that started anew in
// between has added everything.
func (h *histogram) since(before *histogram) *histogram {
	if before == nil || len(before.counts) != len(h.counts) || before.total() > h.total() {
		return h
	}
	d := &histogram{bounds: h.bounds, counts: slices.Clone(h.counts), sum: h.sum - before.sum}
	for i := range d.counts {
		d.counts[i] -= before.counts[i]
	}
	return d
}

func (h *histogram) total() float64 {
	if len(h.counts) == 0 {
		return 0
	}
	return h.counts[len(h.counts)-1]
}

// above is how many values are beyond a bound of the histogram.
func (h *histogram) above(bound float64) float64 {
	i := slices.Index(h.bounds, bound)
	if i < 0 {
		return 0
	}
	return h.total() - h.counts[i]
}

// quantile is the value at a quantile in (0, 1], in seconds, interpolated within its bucket. Beyond
// the last finite bound it is that bound.
func (h *histogram) quantile(q float64) float64 {
	rank := q * h.total()
	i := slices.IndexFunc(h.counts, func(n float64) bool { return n >= rank && n > 0 })
	if i < 0 {
		return 0
	}
	low, under := 0.0, 0.0
	if i > 0 {
		low, under = h.bounds[i-1], h.counts[i-1]
	}
	if math.IsInf(h.bounds[i], 1) {
		return low
	}
	return low + (h.bounds[i]-low)*(rank-under)/(h.counts[i]-under)
}

// stagesBetween are the stages of the orders between two readings, in the order of an order's way.
func stagesBetween(before, after *scrape) (list []Stage) {
	for name, h := range after.stages {
		d := h.since(before.stages[name])
		if n := d.total(); n > 0 {
			list = append(list, Stage{Name: name, Count: int64(n), Mean: d.sum / n * 1e6,
				P50: d.quantile(0.5) * 1e6, P99: d.quantile(0.99) * 1e6})
		}
	}
	way := []string{"parse", "authenticate", "verify", "wait", "match", "append", "sync", "publish",
		"answer"}
	slices.SortFunc(list, func(a, b Stage) int {
		return cmp.Or(cmp.Compare(slices.Index(way, a.Name), slices.Index(way, b.Name)),
			cmp.Compare(a.Name, b.Name))
	})
	return list
}

// observer reads a node's metrics while it is measured.
type observer struct {
	desk   desk
	client http.Client // keeps its connection
	from   time.Time   // the start of the run
	first  scrape
	last   scrape
	marks  []Mark
	looked func(*scrape) // of each reading but the first; nil: nobody asks
	stop   context.CancelFunc
	ended  chan struct{}
}

// observe begins to read. A node without metrics is not observed: the observer is nil, and all
// methods do nothing.
func observe(ctx context.Context, d desk, looked func(*scrape)) *observer {
	if d.addr == "" {
		return nil
	}
	o := &observer{desk: d, client: http.Client{Timeout: 10 * time.Second}, looked: looked,
		ended: make(chan struct{})}
	var err error
	if o.first, err = o.read(ctx); err != nil || len(o.first.values) == 0 {
		return nil
	}
	o.last, o.from = o.first, time.Now()
	ctx, o.stop = context.WithCancel(ctx)
	go o.watch(ctx)
	return o
}

func (o *observer) read(ctx context.Context) (scrape, error) {
	asked := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.desk.addr+"/metrics", nil)
	if err != nil {
		return scrape{}, err
	}
	answer, err := o.client.Do(r)
	if err != nil {
		return scrape{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<23))
	if err != nil || answer.StatusCode != http.StatusOK {
		return scrape{}, fmt.Errorf("read metrics: status %d (%w)", answer.StatusCode, err)
	}
	at := time.Now()
	s := parseScrape(string(text))
	s.asked, s.at = asked, at
	return s, nil
}

// watch reads until it is stopped.
func (o *observer) watch(ctx context.Context) {
	defer close(o.ended)
	tick := time.NewTicker(lookEvery / knocks)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n%knocks == 0 {
			o.look(ctx)
		} else {
			o.knock(ctx)
		}
	}
}

// knock marks the node as silent if it takes long to answer whether it is ready.
func (o *observer) knock(ctx context.Context) {
	asked := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.desk.addr+"/readyz", nil)
	if err != nil {
		return
	}
	answer, err := o.client.Do(r)
	if err != nil {
		return // as in look
	}
	_, _ = io.Copy(io.Discard, answer.Body) // or the connection would be lost
	_ = answer.Body.Close()
	if took := time.Since(asked); took >= stalled {
		o.marks = append(o.marks, Mark{Seconds: asked.Sub(o.from).Seconds(), What: nodeSilent,
			Lasted: took.Seconds()})
	}
}

// nodeSilent is the mark of a node that did not even answer its operator: SIGSTOP, a machine that
// stood still, no CPU time.
const nodeSilent = "node silent"

// look reads once and marks what has happened since the last reading.
func (o *observer) look(ctx context.Context) {
	s, err := o.read(ctx)
	if err != nil {
		return // the node is busy or gone: the load says what that means
	}
	o.marks = append(o.marks, marksBetween(&o.last, &s, o.from)...)
	o.last = s
	if o.looked != nil {
		o.looked(&s)
	}
}

// end stops reading, after a last look, and puts what was seen into the report.
func (o *observer) end(ctx context.Context, r *Report) {
	if o == nil {
		return
	}
	o.stop()
	<-o.ended
	o.look(ctx)
	for i := range o.marks {
		if m := &o.marks[i]; len(r.windows) > 0 {
			began := o.from.Add(time.Duration(m.Seconds * float64(time.Second)))
			ended := began.Add(time.Duration(m.Lasted * float64(time.Second)))
			m.Seconds = r.onTimeline(began)
			m.Lasted = r.onTimeline(ended) - m.Seconds
		}
	}
	r.Stages, r.Marks = stagesBetween(&o.first, &o.last), joinMarks(o.marks)
}

// marksBetween is what the node did or suffered between two readings, by its metrics.
func marksBetween(before, after *scrape, from time.Time) (list []Mark) {
	mark := func(what string, began time.Time, lasted float64) {
		list = append(list, Mark{Seconds: max(began.Sub(from).Seconds(), 0), What: what, Lasted: lasted})
	}
	ago := func(seconds float64) time.Time {
		return after.at.Add(-time.Duration(seconds * float64(time.Second)))
	}
	if took := after.at.Sub(after.asked); took >= stalled {
		mark(nodeSilent, after.asked, took.Seconds())
	}
	const written = "clobd_checkpoint_writes_total"
	if after.values[written] > before.values[written] {
		took := after.values["clobd_checkpoint_seconds"]
		mark("checkpoint", ago(after.values["clobd_checkpoint_age_seconds"]+took), took)
	}
	least := stalled.Seconds()
	waits := after.values["clobd_journal_oldest_unsynced_seconds"]
	gap := after.at.Sub(before.at).Seconds()
	if waits >= least {
		mark("stall of the disk", ago(waits), waits)
	} else if added(before, after, "sync").above(least) > 0 {
		mark("stall of the disk", before.at, min(longest(added(before, after, "sync")), gap))
	}
	moved := func(name string) bool { return after.values[name] > before.values[name] }
	switch match := added(before, after, "match"); {
	case match.above(least) > 0:
		mark("stall of the matcher", before.at, min(longest(match), gap))
	case before.values["clobd_sequencer_ring_depth"] > 0 &&
		after.values["clobd_sequencer_ring_depth"] > 0 && waits < least &&
		!moved("clobd_sequencer_commands_total") && !moved("clobd_sequencer_idle_total"):
		mark("stall of the matcher", before.at, gap)
	}
	return list
}

// added is what a stage took between two readings.
func added(before, after *scrape, stage string) *histogram {
	if h := after.stages[stage]; h != nil {
		return h.since(before.stages[stage])
	}
	return &histogram{}
}

// longest is a bound below the longest value, in seconds.
func longest(h *histogram) float64 {
	for i := len(h.counts) - 1; i > 0; i-- {
		if h.counts[i] > h.counts[i-1] {
			return h.bounds[i-1]
		}
	}
	return 0
}

// joinMarks makes one mark of those that say the same of times that touch.
func joinMarks(list []Mark) (joined []Mark) {
	slices.SortStableFunc(list, func(a, b Mark) int {
		return cmp.Or(strings.Compare(a.What, b.What), cmp.Compare(a.Seconds, b.Seconds))
	})
	for _, m := range list {
		if n := len(joined); n > 0 && joined[n-1].What == m.What {
			p := &joined[n-1]
			if end := m.Seconds + m.Lasted; m.Seconds <= p.Seconds+p.Lasted+0.05 {
				p.Lasted = max(p.Lasted, end-p.Seconds)
				continue
			}
		}
		joined = append(joined, m)
	}
	slices.SortStableFunc(joined, func(a, b Mark) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return joined
}
