package bench

import (
	"strings"
	"testing"
	"time"
)

func TestDrifts(t *testing.T) {
	laps := func(differ func(i int, l *Lap)) []Lap {
		list := make([]Lap, 20)
		for i := range list {
			list[i] = Lap{Done: 1000, Memory: 100e6, Goroutines: 100, Files: 50, CPUMicros: new(50.0),
				Corrected: Latency{P50: 500, P99: 5000}, Disk: 1e9 + float64(i)*500_000}
			differ(i, &list[i])
		}
		return list
	}
	for _, c := range []struct {
		name   string
		differ func(i int, l *Lap)
		says   string
	}{
		{"nothing", func(int, *Lap) {}, ""},
		{"a leak of goroutines", func(i int, l *Lap) { l.Goroutines += float64(5 * i) }, "goroutines"},
		{"a leak of memory", func(i int, l *Lap) { l.Memory += 20e6 * float64(i) }, "memory"},
		{"a leak of files", func(i int, l *Lap) { l.Files += 10 * float64(i) }, "open files"},
		{"a slower median", func(i int, l *Lap) { l.Corrected.P50 += 150 * float64(i) }, "p50"},
		{"one slow lap", func(i int, l *Lap) {
			if i == 10 {
				l.Corrected.P99 = 1e6
			}
		}, ""},
		{"more work an order", func(i int, l *Lap) { l.CPUMicros = new(50 + 3*float64(i)) }, "node's CPU"},
		{"too much on disk", func(i int, l *Lap) { l.Disk += 20e6 * float64(i) }, "disk"},
		{"no metrics", func(_ int, l *Lap) { l.CPUMicros = nil }, ""},
	} {
		s := &Soaked{Drifts: drifts(laps(c.differ))}
		err := s.Verdict()
		if len(s.Drifts) < 6 || (err == nil) != (c.says == "") ||
			err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestPieces(t *testing.T) {
	for _, c := range []struct {
		rate     float64
		duration time.Duration
		want     time.Duration
	}{
		{100, time.Second, 100 * time.Millisecond},
		{1000, time.Hour, time.Minute},
		{10_000, time.Hour, 20 * time.Second},
	} {
		s := Soak{Run{Rate: c.rate, Duration: c.duration}}
		if got := s.piece(); got != c.want {
			t.Errorf("%v at %.0f/s: pieces of %v, want %v", c.duration, c.rate, got, c.want)
		}
	}
}
