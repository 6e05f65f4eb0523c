package fanout

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"clobd/bench"
)

// Measured is the result of a Plan.
type Measured struct {
	Conditions bench.Conditions `json:"conditions"`
	Peer       string           `json:"peer"` // module and version of centrifuge
	Rounds     int              `json:"rounds"`
	Seconds    float64          `json:"seconds_per_turn"`
	Nice       int              `json:"subscribers_nice"`
	Cases      []CaseResult     `json:"cases"`
	Idle       *IdleResult      `json:"idle,omitempty"`
}

// CaseResult is the result of a case: the figures of each side, and the ratios of the node's CPU
// time to that of the others.
type CaseResult struct {
	Case
	MessageBytes int          `json:"message_bytes"` // of the longest message, without frame head
	Sides        []SideResult `json:"sides"`         // clobd, bare, centrifuge
	OfBare       Ratio        `json:"cpu_ratio_to_bare"`
	OfPeer       Ratio        `json:"cpu_ratio_to_centrifuge"`
	// Repeated counts the turns that were dropped and measured again because the rate was not
	// reached, for example because the machine paused.
	Repeated int `json:"turns_repeated"`
	// Invalid says why the figures mean nothing. It is "" if all messages arrived at the rate.
	Invalid string `json:"invalid,omitempty"`
}

// SideResult holds the figures of one side, by round.
type SideResult struct {
	Name string `json:"name"`
	// CPUMicros is the user and system time of the server's process for each message that a
	// subscriber got. It includes the kernel's work to deliver the message over the loopback.
	CPUMicros []float64 `json:"cpu_micros_per_message"`
	// Last is the time from the instant at which a burst was due until the last subscriber had read
	// the burst.
	Last []bench.Latency `json:"publish_to_last_read_micros"`
	Late []float64       `json:"published_late_p99_micros"`
	// Made is the median time that the node's side takes to make the frame of a burst: engine,
	// encoding and Board. CPUMicros includes it. Made is 0 for the other sides, which make no
	// frames.
	Made     []float64 `json:"frame_made_p50_micros"`
	Messages []float64 `json:"messages_per_second"` // until the last one was read
	Bytes    []float64 `json:"bytes_per_second"`
	Gaps     int64     `json:"gaps"`
	Cuts     int64     `json:"cuts"` // sockets that ended during a turn
}

// Ratio compares the CPU time per message of two sides: median, minimum and maximum of the rounds,
// and the goal for the median.
type Ratio struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
	Goal   float64 `json:"goal"`
	Met    bool    `json:"met"`
}

// IdleResult is the memory that the server's process uses for each subscriber that gets no
// messages, without memory of the kernel.
type IdleResult struct {
	Subscribers int        `json:"subscribers"`
	Goal        float64    `json:"goal_bytes"` // for the median RSS of the node's side
	Met         bool       `json:"met"`
	Sides       []IdleSide `json:"sides"`
}

// IdleSide holds the figures of one side, by round: resident memory, and live heap and stacks after
// a garbage collection.
type IdleSide struct {
	Name string    `json:"name"`
	RSS  []float64 `json:"rss_bytes"`
	Heap []float64 `json:"heap_bytes"`
}

// goalIdle is the most resident memory that an idle subscriber of the node may cost, in bytes.
const goalIdle = 6 << 10

// ratioOf compares the rounds of two sides.
func ratioOf(a, b *SideResult, goal float64) Ratio {
	var all []float64
	for i := range min(len(a.CPUMicros), len(b.CPUMicros)) {
		all = append(all, a.CPUMicros[i]/max(b.CPUMicros[i], 1e-9))
	}
	if len(all) == 0 {
		return Ratio{Goal: goal}
	}
	r := Ratio{bench.Median(all), slices.Min(all), slices.Max(all), goal, false}
	r.Met = r.Median <= goal
	return r
}

// Verdict returns an error that lists the invalid cases, or nil if all cases are valid.
func (m *Measured) Verdict() error {
	var problems []error
	for i := range m.Cases {
		if r := &m.Cases[i]; r.Invalid != "" {
			problems = append(problems, fmt.Errorf("%s: %s", r.Case, r.Invalid))
		}
	}
	return errors.Join(problems...)
}

// WriteText prints the cases with their verdicts.
func (m *Measured) WriteText(w io.Writer) {
	fmt.Fprintf(w, "clobd's market stream (its Hub and door, engine and Board in memory, no journal), a "+
		"bare loop and %s (its own defaults, JSON over WebSocket): the same messages to the same "+
		"subscribers, a process each, subscribers in another on one CPU at nice %d; medians of %d "+
		"interleaved rounds of 3 x %.1f s or %d bursts, open loop\n", m.Peer, m.Nice, m.Rounds, m.Seconds,
		leastBursts)
	if len(m.Cases) > 0 {
		fmt.Fprintln(w, "  subscribers x burst @ bursts/s  side        CPU µs a message (least to most)  "+
			"due to last read ms p50      p99  published late p99  messages/s    MB/s  gaps  cuts")
	}
	for i := range m.Cases {
		m.Cases[i].write(w)
	}
	if m.Idle != nil {
		m.Idle.write(w)
	}
	m.Conditions.WriteText(w)
}

func (r *CaseResult) write(w io.Writer) {
	label := fmt.Sprintf("%s, %d bytes", r.Case, r.MessageBytes)
	for i := range r.Sides {
		s := &r.Sides[i]
		var p50, p99 []float64
		for _, l := range s.Last {
			p50, p99 = append(p50, l.P50/1e3), append(p99, l.P99/1e3)
		}
		fmt.Fprintf(w, "  %-30s  %-10s %8.3f (%.3f to %.3f) %30.2f %9.2f %19.2f %11.0f %7.1f %5d %5d\n",
			label, s.Name, bench.Median(s.CPUMicros), slices.Min(s.CPUMicros), slices.Max(s.CPUMicros),
			bench.Median(p50), bench.Median(p99), bench.Median(s.Late)/1e3, bench.Median(s.Messages),
			bench.Median(s.Bytes)/1e6, s.Gaps, s.Cuts)
		label = ""
	}
	if r.Invalid != "" {
		fmt.Fprintf(w, "    INVALID: %s\n", r.Invalid)
		return
	}
	fmt.Fprintf(w, "    of bare %s; of centrifuge %s; %.1f µs for the frame of a burst, %d turns repeated\n",
		&r.OfBare, &r.OfPeer, bench.Median(r.Sides[0].Made), r.Repeated)
}

// String returns the ratio with its spread and verdict.
func (r *Ratio) String() string {
	return fmt.Sprintf("%.2f (%.2f to %.2f), goal %.2f %s", r.Median, r.Least, r.Most, r.Goal,
		verdict(r.Met))
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "MISSED"
}

func (r *IdleResult) write(w io.Writer) {
	fmt.Fprintf(w, "  %d idle subscribers, KiB each beyond the kernel's own, after a collection:\n",
		r.Subscribers)
	for i := range r.Sides {
		s := &r.Sides[i]
		fmt.Fprintf(w, "    %-10s  RSS %.2f (%.2f to %.2f)  heap and stacks %.2f\n", s.Name,
			bench.Median(s.RSS)/1024, slices.Min(s.RSS)/1024, slices.Max(s.RSS)/1024,
			bench.Median(s.Heap)/1024)
	}
	fmt.Fprintf(w, "    goal %.0f of RSS: %s\n", r.Goal/1024, verdict(r.Met))
}
