package page

import "github.com/arl/statsviz"

// trace is one line of a plot: the name of a figure, and how its value comes from a trend.
type trace struct {
	name string
	read func(t *trend) float64
}

// plots are the node's own curves. Latencies are those of the last 10 s, rates those of the last
// sample.
func (c *curves) plots() []statsviz.TimeSeriesPlotConfig {
	const micro, milli = 1e6, 1e3
	stage := func(q int) (lines []trace) {
		for _, name := range []string{"parse", "authenticate", "verify", "wait", "match", "append", "sync",
			"publish", "answer"} {
			lines = append(lines, latency(name, `clobd_stage_seconds{stage="`+name+`"}`, q, micro))
		}
		return lines
	}
	const order = `clobd_http_request_seconds{route="post_order"}`
	return []statsviz.TimeSeriesPlotConfig{
		c.plot("orders", "Orders, fills, cancels: clobd_sequencer_…_total", "each second",
			growth("orders", "clobd_sequencer_orders_total"), growth("fills", "clobd_sequencer_fills_total"),
			growth("cancels", "clobd_sequencer_cancels_total"),
			growth("frames", "clobd_sequencer_frames_total")),
		c.plot("post-order", "POST /order: clobd_http_request_seconds", "ms",
			latency("p50", order, p50, milli), latency("p99", order, p99, milli)),
		c.plot("stage-p50", "Stages, median: clobd_stage_seconds", "µs", stage(p50)...),
		c.plot("stage-p99", "Stages, p99: clobd_stage_seconds", "µs", stage(p99)...),
		c.plot("stage-rate", "Stages, samples: clobd_stage_seconds", "each second", stage(rate)...),
		c.plot("queues", "Queues: clobd_sequencer_ring_depth, clobd_verify_queue", "waiting",
			value("clobd_sequencer_ring_depth"), value("clobd_verify_queue"),
			value("clobd_verify_queue_limit")),
		c.plot("sync", "Sync: clobd_journal_sync_seconds", "ms",
			latency("p50", "clobd_journal_sync_seconds", p50, milli),
			latency("p99", "clobd_journal_sync_seconds", p99, milli)),
		c.plot("lag", "Lag: clobd_index_lag_commands, clobd_follower_lag_commands", "commands",
			value("clobd_index_lag_commands"), value("clobd_follower_lag_commands")),
		c.plot("sockets", "Sockets: clobd_stream_…, clobd_entry_…", "open", value("clobd_stream_sockets"),
			value("clobd_stream_readers"), value("clobd_entry_sockets")),
		c.plot("messages", "Streams: clobd_stream_messages_total", "each second",
			growth("messages", "clobd_stream_messages_total"),
			growth("conflated", "clobd_stream_conflated_total")),
		c.plot("stream-lag", "Streams: clobd_stream_lag_seconds", "ms",
			latency("p50", "clobd_stream_lag_seconds", p50, milli),
			latency("p99", "clobd_stream_lag_seconds", p99, milli)),
	}
}

// What latency reads of a pace.
const (
	p50 = iota
	p99
	rate
)

func latency(name, metric string, q int, unit float64) trace {
	return trace{name, func(t *trend) float64 {
		x, y, each, _ := t.now.pace(metric, t.short)
		return [...]float64{p50: x * unit, p99: y * unit, rate: each}[q]
	}}
}

func growth(name, metric string) trace {
	return trace{name, func(t *trend) float64 { return t.now.rate(metric, t.before) }}
}

func value(metric string) trace {
	return trace{metric, func(t *trend) float64 { return t.now.figures[metric] }}
}

func (c *curves) plot(name, title, unit string, lines ...trace) statsviz.TimeSeriesPlotConfig {
	p := statsviz.TimeSeriesPlotConfig{Name: "clobd-" + name, Title: title, Type: statsviz.Scatter,
		InfoText: "Of the last 10 s if it is a latency, else of the last second.", YAxisTitle: unit}
	for _, l := range lines {
		p.Series = append(p.Series, statsviz.TimeSeries{Name: l.name, Unitfmt: ".4s",
			GetValue: func() float64 {
				if t := c.present(); t.now != nil {
					return l.read(t)
				}
				return 0
			}})
	}
	return p
}
