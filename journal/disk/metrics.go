package disk

import "github.com/prometheus/client_golang/prometheus"

// Subsystem is the part of the node that a metric is of: the word behind clobd_ in its name.
type Subsystem string

// Counter makes a counter, registered nowhere.
func (s Subsystem) Counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "clobd", Subsystem: string(s), Name: name, Help: help})
}

// Flag makes a gauge that is 1 while something is true, and 0 otherwise.
func (s Subsystem) Flag(name, help string, is func() bool) prometheus.Collector {
	return s.Gauge(name, help, func() float64 {
		if is() {
			return 1
		}
		return 0
	})
}

// Gauge makes a gauge that is read when it is asked for, registered nowhere.
func (s Subsystem) Gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "clobd", Subsystem: string(s), Name: name, Help: help}, value)
}
