package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/api/catalog"
	"clobd/api/catalog/source"
	"clobd/api/gamma"
	"clobd/cmd/cli"
	"clobd/journal/disk"
)

const catalogHint = "--catalog takes a file of records as a JSON array or lines, a folder of such " +
	"files, or the base address of a service with the same lists"

// checkCatalog checks --catalog before the start writes anything: a bad source ends the start.
func (n *node) checkCatalog(context.Context) error {
	if n.Catalog == "" {
		return nil
	}
	return cli.Hint(source.Check(n.Catalog), catalogHint)
}

// startLook is how long a node that knows markets already waits for the service.
const startLook = 3 * time.Second

// openCatalog opens the kept records and reads the source before the start journals anything.
func (n *node) openCatalog(ctx context.Context) error {
	bar := newLoadBar(n.screen)
	n.values = gamma.NewValues(n.role.Board, n.index.History, nil)
	n.lister = &lister{n.role, n.poison, n.space, n.log}
	var err error
	folder := filepath.Join(n.Data, "catalog")
	n.describe, err = catalog.Open(catalog.Options{Dir: folder, List: n.lister.list,
		Close: n.lister.closeMarkets, Live: n.values.Live, Progress: bar.show, Log: n.log})
	if err != nil {
		return cli.Hint(fmt.Errorf("open the catalog's folder: %w", err), "put %s away and start with "+
			"--catalog: it is read again; or restore it from a copy", folder)
	}
	n.source = source.New(n.describe, source.Options{Address: n.Catalog, Dir: folder,
		Room: n.lister.awaitRoom, Log: n.log})
	n.metrics.MustRegister(catalogMetrics(n.describe, n.source)...)
	var report catalog.Report
	switch {
	case n.Catalog != "" && n.lister.full():
		n.log.Warn("the catalog's source is not read: the disk has too little room", "source", n.Catalog,
			"hint", "make room: it is read then")
		n.source.Again()
		return nil
	case n.Catalog != "":
		look := ctx
		if strings.Contains(n.Catalog, "://") && n.describe.Current().Markets.Len() > 0 {
			var done context.CancelFunc
			look, done = context.WithTimeout(ctx, startLook)
			defer done()
		}
		report, err = n.source.Look(look)
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

// beginCatalog lists the known markets; on a full disk listLater does.
func (n *node) beginCatalog() error {
	report, err := n.describe.Begin()
	if n.unlisted = errors.Is(err, errFull); n.unlisted {
		n.log.Warn("not all markets are listed", "why", errFull.Error(), "hint", "make room: they are "+
			"listed then")
		return nil
	}
	if err != nil {
		return fmt.Errorf("catalog: %w", err)
	}
	n.log.Info("catalog", "listed", report.Listed, "unopened", report.Unopened,
		"closed", report.Closed, "refused", report.Refused)
	return nil
}

// syncCatalog looks at the source until ctx is done, and at once after a SIGHUP, also one that came
// during the start. The returned function stops it and waits for its end.
func (n *node) syncCatalog(ctx context.Context) (wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { n.describe.Follow(ctx) })
	if n.unlisted {
		running.Go(func() { n.listLater(ctx) })
	}
	if n.Catalog != "" {
		running.Go(func() { n.source.Sync(ctx) })
		running.Go(func() {
			for {
				select {
				case <-n.again:
					n.source.Again()
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// listLater lists the markets that beginCatalog left out, once the disk has room.
func (n *node) listLater(ctx context.Context) {
	for n.unlisted {
		if n.lister.awaitRoom(ctx); ctx.Err() != nil {
			return
		}
		if err := n.beginCatalog(); err != nil {
			n.log.Error("markets cannot be listed", "error", err)
			return
		}
	}
}

func catalogMetrics(s *catalog.Store, from *source.Source) []prometheus.Collector {
	const of disk.Subsystem = "catalog"
	counter := func(name, help, outcome string, value func() uint64) prometheus.Collector {
		o := prometheus.CounterOpts{Namespace: "clobd", Subsystem: string(of), Name: name, Help: help}
		if outcome != "" {
			o.ConstLabels = prometheus.Labels{"outcome": outcome}
		}
		return prometheus.NewCounterFunc(o, func() float64 { return float64(value()) })
	}
	const requests = "Requests to the source, and looks at its files, by what came of them."
	return []prometheus.Collector{
		counter("loads_total", "Loads that were entered.", "",
			func() uint64 { return s.Status().Loads }),
		counter("failures_total", "Looks at the source that failed.", "",
			func() uint64 { return from.Health().Failures }),
		counter("requests_total", requests, "new",
			func() uint64 { return from.Health().Asked.New }),
		counter("requests_total", requests, "unchanged",
			func() uint64 { return from.Health().Asked.Unchanged }),
		counter("requests_total", requests, "failed",
			func() uint64 { return from.Health().Asked.Failed }),
		counter("refused_records_total", "Records that contradict themselves or what is known.", "",
			func() uint64 { return s.Status().Refused }),
		counter("broken_records_total", "Records that could not be read.", "",
			func() uint64 { return s.Status().Broken }),
		of.Gauge("markets", "Markets that are described.",
			func() float64 { return float64(s.Status().Markets) }),
		of.Gauge("events", "Events that are described.",
			func() float64 { return float64(s.Status().Events) }),
		of.Flag("waits_for_room", "1 while the source is not read for want of room on the disk.",
			func() bool { return from.Health().Waiting }),
		of.Gauge("cut_bytes", "Bytes of the kept records that did not check out at the start and were "+
			"put aside.", func() float64 { return float64(s.Status().Cut.Bytes) }),
		of.Gauge("last_load_seconds", "How long the last load took.",
			func() float64 { return s.Status().LastLoad.Seconds() }),
		of.Gauge("last_success_age_seconds", "Time since the source was last read as far as it goes, "+
			"also before a restart; -1 if it never was.", func() float64 {
			last := from.Health().LastSuccess
			if last.IsZero() {
				return -1
			}
			return time.Since(last).Seconds()
		}),
	}
}
