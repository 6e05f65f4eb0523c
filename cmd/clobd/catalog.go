package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/api"
	"clobd/api/catalog"
	"clobd/cmd/cli"
	"clobd/engine"
)

const catalogHint = "--catalog takes a file of records as a JSON array or lines, a folder of such " +
	"files, or the base address of a service with the same lists"

// checkCatalog looks at the catalog before anything else is done: a source that can be none ends
// the start while nothing has been written.
func (n *node) checkCatalog(context.Context) error {
	if n.Catalog == "" {
		return nil
	}
	if err := catalog.Check(n.Catalog); err != nil {
		return cli.Hint(err, catalogHint)
	}
	return nil
}

// openCatalog opens what is known of the markets and reads what is new, before anything is
// journaled. The journal's lock says that nobody else has the folder open.
func (n *node) openCatalog(ctx context.Context) error {
	bar := newBar(os.Stderr)
	n.values = api.NewValues(n.board, n.index.History)
	var err error
	n.describe, err = catalog.Open(catalog.Options{Dir: filepath.Join(n.Data, "catalog"),
		Source: n.Catalog, List: n.list, Close: n.closeMarkets, Live: n.values.Live,
		Progress: bar.show, Log: n.log})
	if err != nil {
		return fmt.Errorf("open the catalog's folder: %w", err)
	}
	n.metrics.MustRegister(catalogMetrics(n.describe)...)
	var report catalog.Report
	switch {
	case n.Catalog != "":
		report, err = n.describe.Look(ctx)
	case n.Demo:
		report, err = n.describe.Read(bytes.NewReader(catalog.Demo()))
	}
	bar.end()
	known := n.describe.Current().Markets.Len()
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil && strings.Contains(n.Catalog, "://"):
		// The service may come back; what is known is served until then.
		n.log.Warn("catalog source", "source", n.Catalog, "error", err.Error(), "known", known)
	case err != nil:
		return cli.Hint(err, catalogHint)
	default:
		n.log.Info("catalog", "read", report.String(), "known", known)
	}
	return nil
}

// beginCatalog lists what is known.
func (n *node) beginCatalog() error {
	report, err := n.describe.Begin()
	if err != nil {
		return fmt.Errorf("catalog: %w", err)
	}
	n.log.Info("catalog", "listed", report.Listed, "unopened", report.Unopened,
		"closed", report.Closed, "refused", report.Refused)
	return nil
}

// syncCatalog keeps looking at the source until ctx is done; SIGHUP makes it look at once. What it
// returns waits until it has stopped.
func (n *node) syncCatalog(ctx context.Context) (wait func()) {
	if n.Catalog == "" {
		return func() {}
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { n.describe.Sync(ctx) })
	running.Go(func() {
		defer signal.Stop(again)
		for {
			select {
			case <-again:
				n.describe.Again()
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// closeMarkets ends trading in what the source has closed or archived. That is all a source can do
// to a market that trades: only the operator resolves. A market that the operator opens again is
// closed again at the next start, as long as the source says so.
func (n *node) closeMarkets(conditions []engine.Condition) error {
	for _, condition := range conditions {
		m := n.board.Directory.Condition(condition)
		if m == nil || m.State == engine.Closed || m.State == engine.Settled {
			continue
		}
		receipt, err := n.writer.Submit(&engine.Command{Kind: engine.SetState, Market: m.No,
			State: engine.Closed})
		if err != nil {
			return fmt.Errorf("close %s: %w", condition.Hex(), err)
		}
		n.log.Info("the catalog's source has closed a market", "market", condition.Hex(),
			"answer", receipt.Text())
	}
	return nil
}

// catalogMetrics are the collectors of a Store.
func catalogMetrics(s *catalog.Store) []prometheus.Collector {
	counter := func(name, help string, read func(catalog.Status) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "clobd",
			Subsystem: "catalog", Name: name, Help: help},
			func() float64 { return float64(read(s.Status())) })
	}
	gauge := func(name, help string, read func(catalog.Status) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "clobd",
			Subsystem: "catalog", Name: name, Help: help},
			func() float64 { return read(s.Status()) })
	}
	return []prometheus.Collector{
		counter("loads_total", "Loads that were entered.",
			func(s catalog.Status) uint64 { return s.Loads }),
		counter("failures_total", "Looks at the source that failed.",
			func(s catalog.Status) uint64 { return s.Failures }),
		counter("requests_total", "Requests to the source, and looks at its files.",
			func(s catalog.Status) uint64 { return s.Asked }),
		counter("unchanged_total", "Requests that were answered with nothing new.",
			func(s catalog.Status) uint64 { return s.Unchanged }),
		counter("refused_records_total", "Records that contradict themselves or what is known.",
			func(s catalog.Status) uint64 { return s.Refused }),
		counter("broken_records_total", "Records that could not be read.",
			func(s catalog.Status) uint64 { return s.Broken }),
		gauge("markets", "Markets that are described.",
			func(s catalog.Status) float64 { return float64(s.Markets) }),
		gauge("events", "Events that are described.",
			func(s catalog.Status) float64 { return float64(s.Events) }),
		gauge("last_load_seconds", "How long the last load took.",
			func(s catalog.Status) float64 { return s.LastLoad.Seconds() }),
		gauge("last_success_age_seconds", "Time since the source was last read as far as it goes; "+
			"-1 if it never was.", func(s catalog.Status) float64 {
			if s.LastSuccess.IsZero() {
				return -1
			}
			return time.Since(s.LastSuccess).Seconds()
		}),
	}
}

// bar shows how far a load is: on a terminal as one line that changes, elsewhere as a line every
// few seconds.
type bar struct {
	out      *os.File
	terminal bool
	began    time.Time
	told     time.Time
}

const (
	// barDelay is how long a load may take without a word.
	barDelay  = time.Second
	barEvery  = 5 * time.Second
	barLength = 30
)

func newBar(out *os.File) *bar {
	about, err := out.Stat()
	return &bar{out: out, began: time.Now(),
		terminal: err == nil && about.Mode()&os.ModeCharDevice != 0}
}

// show is told of progress.
func (b *bar) show(p catalog.Progress) {
	now := time.Now()
	if now.Sub(b.began) < barDelay || !b.terminal && now.Sub(b.told) < barEvery {
		return
	}
	b.told = now
	line := progressLine(p, now.Sub(b.began))
	if b.terminal {
		line = "\r\x1b[K" + line
	} else {
		line += "\n"
	}
	_, _ = b.out.WriteString(line)
}

// progressLine is a bar if the end is known, and how much was read.
func progressLine(p catalog.Progress, took time.Duration) string {
	line := fmt.Sprintf("catalog: %d records in %.0f s", p.Records, took.Seconds())
	if p.Total > 0 {
		full := int(min(p.Done, p.Total) * barLength / p.Total)
		line = fmt.Sprintf("catalog [%s%s] %3d %% %d records", strings.Repeat("=", full),
			strings.Repeat(" ", barLength-full), min(p.Done, p.Total)*100/p.Total, p.Records)
	}
	return line
}

// end leaves the terminal's line and hears no more of the loads to come.
func (b *bar) end() {
	if b.terminal && !b.told.IsZero() {
		_, _ = b.out.WriteString("\n")
	}
	b.began = time.Now().Add(1 << 62) // only the first load is shown
}
