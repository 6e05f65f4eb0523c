package stream

import "github.com/prometheus/client_golang/prometheus"

// figures are the metrics of a Hub.
type figures struct {
	sockets, tokens, readers prometheus.Gauge
	batches                  prometheus.Gauge
	messages, bytes          prometheus.Counter
	closes, resumes          *prometheus.CounterVec
	conflated                prometheus.Counter
	lag                      prometheus.Histogram
}

func newFigures() figures {
	name := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "clobd", Subsystem: "stream", Name: name, Help: help}
	}
	return figures{
		sockets: prometheus.NewGauge(prometheus.GaugeOpts(name("sockets", "Open sockets."))),
		tokens: prometheus.NewGauge(prometheus.GaugeOpts(name("subscriptions",
			"Tokens that open sockets are subscribed to."))),
		readers: prometheus.NewGauge(prometheus.GaugeOpts(name("readers",
			"Open sockets of the user channel."))),
		batches: prometheus.NewGauge(prometheus.GaugeOpts(name("io_uring",
			"1 if the kernel takes writes to many sockets at once, 0 if it takes each by itself."))),
		messages: prometheus.NewCounter(prometheus.CounterOpts(name("messages_total",
			"Messages handed to sockets."))),
		bytes: prometheus.NewCounter(prometheus.CounterOpts(name("bytes_total",
			"Bytes of frames handed to sockets."))),
		conflated: prometheus.NewCounter(prometheus.CounterOpts(name("conflated_total",
			"Changes that another message stood for, as their subscriber lagged."))),
		closes: prometheus.NewCounterVec(prometheus.CounterOpts(name("closes_total",
			"Sockets that the node has closed, by reason.")), []string{"reason"}),
		resumes: prometheus.NewCounterVec(prometheus.CounterOpts(name("resumes_total",
			"Subscriptions that went on from a Sequence, by where what was missed came from.")),
			[]string{"source"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "clobd", Subsystem: "stream",
			Name: "lag_seconds", Help: "Time from the stamp of a Snapshot until it is told.",
			Buckets: []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5}}),
	}
}

// Collectors returns the Hub's metrics, for the one registry of the process.
func (h *Hub) Collectors() []prometheus.Collector {
	g := &h.figures
	return []prometheus.Collector{g.sockets, g.tokens, g.readers, g.messages, g.bytes, g.closes,
		g.resumes, g.lag, g.conflated, g.batches}
}
