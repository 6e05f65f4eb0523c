package answer

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestSlowest: the slowest orders of the last minute are told, the slowest first, and forgotten
// after it.
func TestSlowest(t *testing.T) {
	var s Slowest
	draw, now := rand.New(rand.NewPCG(3, 4)), time.Unix(1_000_000, 0)
	var all []time.Duration
	for i := range 5000 { // 50 s
		took := time.Duration(draw.IntN(1e9))
		s.Note(&Late{At: now.Add(time.Duration(i) * 10 * time.Millisecond), Total: took})
		all = append(all, took)
	}
	slices.Sort(all)
	slices.Reverse(all)
	got := s.Last(now.Add(50 * time.Second))
	if len(got) != lateKept {
		t.Fatalf("%d orders", len(got))
	}
	for i := range got {
		if got[i].Total != all[i] {
			t.Errorf("place %d: %v, want %v", i, got[i].Total, all[i])
		}
	}
	got = s.Last(now.Add(85 * time.Second))
	if len(got) != lateKept || got[0].At.Before(now.Add(20*time.Second)) {
		t.Errorf("after 85 s: %d, the first of %v", len(got), got[0].At)
	}
	if got := s.Last(now.Add(200 * time.Second)); len(got) != 0 {
		t.Errorf("after 200 s: %d", len(got))
	}
	s.Note(&Late{At: now.Add(300 * time.Second), Total: 1})
	if got := s.Last(now.Add(301 * time.Second)); len(got) != 1 {
		t.Errorf("after a pause: %d", len(got))
	}
}

// TestSlowestAtOnce: many may note and look at once, and no list grows.
func TestSlowestAtOnce(t *testing.T) {
	var s Slowest
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			draw := rand.New(rand.NewPCG(uint64(i), 1))
			for range 20_000 {
				s.Note(&Late{At: time.Now(), Total: time.Duration(draw.IntN(1e9))})
			}
		})
		all.Go(func() {
			for range 100 {
				if n := len(s.Last(time.Now())); n > lateKept {
					t.Errorf("%d orders", n)
				}
			}
		})
	}
	all.Wait()
	if s.Last(time.Now())[lateKept-1].Total < 9e8 {
		t.Error("the slowest of 80,000 are missing")
	}
}

// BenchmarkSlowest is what nearly every timed order pays.
func BenchmarkSlowest(b *testing.B) {
	var s Slowest
	l := Late{At: time.Now(), Total: 2}
	for range lateKept {
		s.Note(&l)
	}
	l.Total = 1
	for b.Loop() {
		s.Note(&l)
	}
	if len(s.Last(l.At)) != lateKept {
		b.Fatal("an order was kept that was not slow")
	}
}
