package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Slow is one of a node's slowest orders, as its operator's page tells them. The node times one
// request in four by stage, from its first byte to its answer: what an order waited for a lane of
// the load, or in the kernel's buffers, is not in it.
type Slow struct {
	Seconds     float64     `json:"seconds"` // of its answer, since the start of the load
	TotalMicros float64     `json:"total_micros"`
	Stages      []SlowStage `json:"stages"` // in the order of its way, without those that it did not reach
}

// SlowStage is what an order spent in a stage.
type SlowStage struct {
	Name   string  `json:"name"`
	Micros float64 `json:"micros"`
}

// slowShown is how many of the slowest orders are reported of a load.
const slowShown = 3

// slowest returns the node's slowest orders answered in [from, to), at most three, the slowest
// first. The node knows the 20 slowest of its last minute. One that has no page tells none.
func (d desk) slowest(ctx context.Context, from, to time.Time) ([]Slow, error) {
	status, body, err := get(ctx, "http://"+d.addr+"/page.json")
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the slowest orders: %w", err)
	case status == http.StatusNotFound:
		return nil, nil
	case status != http.StatusOK:
		return nil, fmt.Errorf("read the slowest orders: status %d", status)
	}
	return parseSlowest(body, from, to)
}

// parseSlowest picks the slowest orders of a span out of the page's JSON.
func parseSlowest(body []byte, from, to time.Time) (list []Slow, err error) {
	var page struct {
		Stages  []string
		Slowest []struct {
			At, Total int64 // unix milliseconds, microseconds
			Stages    []int64
		}
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("read the slowest orders: %w", err)
	}
	for _, o := range page.Slowest {
		at := time.UnixMilli(o.At)
		if at.Before(from) || !at.Before(to) || len(list) == slowShown {
			continue
		}
		s := Slow{Seconds: at.Sub(from).Seconds(), TotalMicros: float64(o.Total)}
		for i, took := range o.Stages {
			if took > 0 && i < len(page.Stages) {
				s.Stages = append(s.Stages, SlowStage{page.Stages[i], float64(took)})
			}
		}
		list = append(list, s)
	}
	return list, nil
}

// String is the order in one line: its stages that took a twentieth of its time or more, and what
// it spent between stages, waiting for a processor for example.
func (s *Slow) String() string {
	var parts []string
	between := SlowStage{"between stages", s.TotalMicros}
	for _, p := range s.Stages {
		between.Micros -= p.Micros
	}
	for _, p := range append(slices.Clone(s.Stages), between) {
		if p.Micros >= s.TotalMicros/20 {
			parts = append(parts, fmt.Sprintf("%s %.1f", p.Name, p.Micros/1e3))
		}
	}
	return fmt.Sprintf("%.1f ms at %.2f s: %s", s.TotalMicros/1e3, s.Seconds,
		strings.Join(parts, ", "))
}

// writeSlowest prints the slowest orders of a step, and what the machine itself paused meanwhile: a
// stage cannot be blamed for a pause that the hiccup meter saw as well.
func writeSlowest(w io.Writer, list []Slow, machine *Hiccup) {
	if len(list) == 0 {
		return
	}
	parts := make([]string, len(list))
	for i := range list {
		parts[i] = list[i].String()
	}
	fmt.Fprintf(w, "      slowest in the node: %s; the machine paused p99 %.1f, at most %.1f ms\n",
		strings.Join(parts, "; "), machine.P99Millis, machine.MaxMillis)
}
