package limits

import (
	"math/rand/v2"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// arrivals draws the times of n requests in a form that a caller may have: even, in bursts, or in
// bursts that lie about a period apart, which a window that weighs two buckets lets through.
func arrivals(r *rand.Rand, w Window, n int) []int64 {
	t := r.Int64N(int64(w.Period))
	even := 1 + int64(w.Period)/int64(1+r.IntN(3*int(w.Limit)))
	burst := 1 + r.IntN(2*int(w.Limit))
	shape := r.IntN(3)
	times := make([]int64, n)
	for i := range times {
		switch {
		case shape == 0:
			t += r.Int64N(2 * even)
		case i%burst > 0:
			t += r.Int64N(1000)
		case shape == 1:
			t += r.Int64N(2 * int64(w.Period))
		default:
			t += int64(w.Period) - 1 + r.Int64N(3) + r.Int64N(int64(w.Period))/16
		}
		times[i] = t
	}
	return times
}

// TestWindowIsExact: whatever the arrivals and their phase, no period holds more requests than the
// limit, and a refused request would have made one of the last slots+1 parts of a period too full.
func TestWindowIsExact(t *testing.T) {
	for seed := range uint64(setting.Size(t, 2000, 200)) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := Window{uint32(1 + r.IntN(400)), []time.Duration{ten, 10 * time.Minute}[r.IntN(2)]}
		var c counter
		var passed []int64
		longer := int64(w.Period) / slots * (slots + 1)
		for _, at := range arrivals(r, w, 3000) {
			within := func(span int64) (n uint32) {
				for i := len(passed) - 1; i >= 0 && at-passed[i] < span; i-- {
					n++
				}
				return n
			}
			wait := c.wait(w, at, 1)
			if wait > 0 && within(longer) < w.Limit {
				t.Fatalf("seed %d: refused at %d, only %d of %d came lately", seed, at,
					within(longer), w.Limit)
			}
			if wait > 0 {
				if left := c.wait(w, at+int64(wait), 1); left > 0 {
					t.Fatalf("seed %d: told to wait %v, then %v more", seed, wait, left)
				}
				// The question above has forgotten what the past no longer may.
				c = counter{}
				for _, p := range passed[max(0, len(passed)-int(w.Limit)):] {
					c.count(w, p, 1)
				}
				continue
			}
			c.count(w, at, 1)
			passed = append(passed, at)
			if n := within(int64(w.Period)); n > w.Limit {
				t.Fatalf("seed %d: %d in a period, the limit is %d", seed, n, w.Limit)
			}
		}
		if len(c.sent) > slots+1 || cap(c.sent) > 2*(slots+1) {
			t.Fatalf("seed %d: %d entries, room for %d", seed, len(c.sent), cap(c.sent))
		}
	}
}

// TestWindowLosesLittle: a caller who sends all the time gets at least 98 % of the limit.
func TestWindowLosesLittle(t *testing.T) {
	for _, w := range []Window{{200, ten}, {2400, ten}, {24000, 10 * time.Minute}, {50, ten}} {
		var c counter
		passed := 0
		step := int64(w.Period) / int64(w.Limit) / 4
		for at := int64(12_345); at < 100*int64(w.Period); at += step {
			if c.wait(w, at, 1) == 0 {
				c.count(w, at, 1)
				passed++
			}
		}
		if least := 100 * int(w.Limit) * 98 / 100; passed < least {
			t.Errorf("%d in %v: %d passed in 100 periods, want %d", w.Limit, w.Period, passed, least)
		}
	}
}
